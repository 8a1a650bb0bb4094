"""Downloads of corpora: resumable, checked by size and checksum, and only then moved into place."""

import errno
import gzip
import hashlib
import http.client
import os
import shutil
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from pathlib import Path
from typing import Any

from regard.config.corpora import CorpusFile, KnownCorpus, cache_directory, locate_file
from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress

CHUNK = 1 << 16
TIMEOUT = 30.0
"""Seconds to wait for a silent server."""
ATTEMPTS = 4
"""Number of attempts after which a failing connection is given up."""
PAUSE = 1.0
"""Seconds before the second attempt; doubled before each later one."""


class Mismatch(RegardError):
    """The downloaded file differs from what the registry describes."""


def fetch_corpus(
    corpus: KnownCorpus, files: list[CorpusFile], progress: Progress | None = None, into: Path | None = None
) -> Path:
    """Download those files of a corpus that are not on this machine yet, and return the directory they are in."""
    directory = (into or cache_directory()) / corpus.name
    missing = [file for file in files if locate_file(corpus, file) is None]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _check_room(directory, missing)
        for file in missing:
            fetch_file(file, directory / file.path, progress)
        durable.write(
            directory / "SOURCE.md",
            f"# {corpus.title}\n\nOrigin: {corpus.page}\nLicence: {corpus.licence}\nCite: {corpus.citation}\n",
        )
    except OSError as error:
        raise _storage_error(error, directory) from error
    return directory


def fetch_file(file: CorpusFile, target: Path, progress: Progress | None = None) -> None:
    """Download one file to `target`; what has arrived so far is kept in `target.part` and resumed."""
    if file.url is None:
        raise RegardError(f"{file.path} has no public address, so it cannot be downloaded.")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    resumed = part.exists() and part.stat().st_size > 0
    _download(file, part, progress)
    try:
        _put_into_place(file, part, target)
    except Mismatch:
        part.unlink(missing_ok=True)
        _validator(part).unlink(missing_ok=True)
        if not resumed:
            raise
        # The part may be damaged, or belong to an older file: start again from the beginning.
        _download(file, part, progress)
        try:
            _put_into_place(file, part, target)
        except Mismatch:
            part.unlink(missing_ok=True)
            _validator(part).unlink(missing_ok=True)
            raise
    part.unlink(missing_ok=True)
    _validator(part).unlink(missing_ok=True)


def _download(file: CorpusFile, part: Path, progress: Progress | None) -> None:
    """Complete `part`, retrying when the connection fails; an attempt that received data resets the count."""
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        try:
            _request(file, part, progress)
            return
        except urllib.error.HTTPError as error:
            if error.code == 416 and before:
                part.unlink()  # longer than the server's file, so it belongs to another one
                _validator(part).unlink(missing_ok=True)
            elif error.code < 500 and error.code not in (408, 429):
                raise RegardError(
                    f"The server refused {file.url} ({error.code} {error.reason}). The address may have changed. "
                    "Download the file by hand, and set REGARD_DATA to the directory that contains it."
                ) from error
            cause: Exception = error
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
            cause = error
        if isinstance(getattr(cause, "reason", None), socket.gaierror):
            failures = ATTEMPTS  # the host name cannot be resolved, so there is no network
        arrived = (part.stat().st_size if part.exists() else 0) > before
        failures = 1 if arrived else failures + 1
        if failures >= ATTEMPTS:
            raise RegardError(_unreachable(file, part, cause)) from cause
        time.sleep(PAUSE * 2 ** (failures - 1))


def _request(file: CorpusFile, part: Path, progress: Progress | None) -> None:
    """Request the missing rest of a file; raises if the connection ends early."""
    have = part.stat().st_size if part.exists() else 0
    validator = _validator(part)
    known = validator.read_text(encoding="utf-8").strip() if validator.is_file() else ""
    headers = {"User-Agent": "regard", "Accept-Encoding": "identity"}
    if have and (known or file.sha256):  # without either, a changed file would go unnoticed
        headers["Range"] = f"bytes={have}-"
        if known:
            headers["If-Range"] = known
    request = urllib.request.Request(str(file.url), headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        continues = response.status == 206 and _range_start(response.headers.get("Content-Range")) == have
        if response.status == 206 and not continues:
            raise http.client.HTTPException(f"asked for bytes from {have}, got {response.headers['Content-Range']}")
        tag = response.headers.get("ETag") or ""
        mark = "" if tag.startswith("W/") else tag or response.headers.get("Last-Modified") or ""
        length = response.headers.get("Content-Length")
        start = have if continues else 0
        total = start + int(length) if length and length.isdecimal() else None
        validator.unlink(missing_ok=True)
        if mark:
            validator.write_text(mark, encoding="utf-8")
        with part.open("ab" if continues else "wb") as out:
            done = start
            while chunk := _read(response):
                out.write(chunk)
                done += len(chunk)
                if progress:
                    progress(file.path, done, total)
    if total is not None and done < total:
        raise http.client.HTTPException(f"the connection ended after {done:,} of {total:,} bytes")


def _read(response: http.client.HTTPResponse) -> bytes:
    """Return the next bytes; raises `HTTPException`, so that a network error is not taken for a disk error."""
    try:
        return response.read(CHUNK)
    except OSError as error:
        raise http.client.HTTPException(str(error) or type(error).__name__) from error


def _put_into_place(file: CorpusFile, part: Path, target: Path) -> None:
    """Unpack a complete download, check its content, and rename it to `target` in one step."""

    def unpack(aside: Path) -> None:
        digest, size = hashlib.sha256(), 0
        try:
            with _open(part, file.unpack) as source, aside.open("wb") as out:
                while chunk := source.read(CHUNK):
                    content = chunk.decode("latin-1").encode() if file.unpack == "latin-1" else chunk
                    size += len(content)
                    if size > file.size:
                        break
                    digest.update(content)
                    out.write(content)
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise Mismatch(f"{file.url} has changed: it cannot be unpacked ({error}). {_RETRY}") from error
        if size != file.size:
            found = f"more than {file.size:,}" if size > file.size else f"{size:,}"
            raise Mismatch(f"{file.url} has changed: it has {found} bytes, not {file.size:,}. {_RETRY}")
        if file.sha256 and digest.hexdigest() != file.sha256:
            raise Mismatch(
                f"{file.url} has changed: its SHA-256 checksum is {digest.hexdigest()}, not {file.sha256}. {_RETRY}"
            )

    durable.build(target, unpack)


_RETRY = "Nothing was kept. Try again later, or get the file from its project page and set REGARD_DATA."


def _open(path: Path, unpack: str | None) -> Any:
    return gzip.open(path, "rb") if unpack == "gzip" else path.open("rb")


def _validator(part: Path) -> Path:
    """Return the file that records the version (ETag or date) on the server that a part belongs to."""
    return part.with_name(part.name + ".tag")


def _range_start(header: str | None) -> int | None:
    """Return the first byte of a `Content-Range` header."""
    unit, _, span = (header or "").partition(" ")
    first = span.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdecimal() else None


def _unreachable(file: CorpusFile, part: Path, cause: Exception) -> str:
    host = urllib.parse.urlsplit(str(file.url)).netloc
    reason = getattr(cause, "reason", None) or cause
    kept = part.stat().st_size if part.exists() else 0
    saved = f" The {kept:,} bytes so far are kept, and the same command resumes." if kept else ""
    return (
        f"{file.path} could not be downloaded from {host} ({reason}).{saved} Check the network connection, or set "
        "REGARD_DATA to a directory that has the corpus."
    )


def _check_room(directory: Path, files: list[CorpusFile]) -> None:
    """Raise if the disk is too small for the download, counting a compressed file and its content together."""
    needed = sum(file.size for file in files) + max((file.size for file in files), default=0)
    free = shutil.disk_usage(directory).free
    if needed > free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(directory), None, None)


def _storage_error(error: OSError, directory: Path) -> RegardError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RegardError(
            f"The disk of {directory} is full. Free some space and run the same command again, which resumes, or set "
            "XDG_CACHE_HOME to a directory on another disk."
        )
    return RegardError(
        f"{error.filename or directory} cannot be written: {error.strerror or error}. Set XDG_CACHE_HOME to a "
        "directory that you can write to."
    )
