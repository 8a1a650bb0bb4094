"""Files in folders and zip files by one kind of path: `clips/a.wav`, or `clips.zip/a.wav`."""

import os
import zipfile
import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from unicodedata import normalize

from regard.foundation.errors import RegardError


def open_zip(path: str | Path) -> zipfile.ZipFile:
    """Open a zip file. Its names are UTF-8, which many programs write without marking it, if all of them can be."""
    try:
        return zipfile.ZipFile(path, metadata_encoding="utf-8")
    except UnicodeDecodeError:
        return zipfile.ZipFile(path)


def archive_of(name: str) -> str | None:
    """Return the zip file that a path leads into, or `None`."""
    lowered = name.lower()
    place = lowered.find(".zip/")
    while place >= 0:
        if is_file(name[: place + 4]):
            return name[: place + 4]
        place = lowered.find(".zip/", place + 1)
    return None


def is_file(name: str) -> bool:
    """Return whether a path leads to a file, and not to a directory, a device or a pipe."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def absence_of(name: str) -> str:
    """Return why a path does not lead to a file, as the end of a sentence that begins with it."""
    try:
        path = Path(name)
        return "is a directory" if path.is_dir() else "is not a file" if path.exists() else "does not exist"
    except (OSError, ValueError):
        return "does not exist"


def read_content(name: str, *, limit: int, noun: str) -> bytes:
    """Return the bytes of a file, or of a file inside a zip file; raises if it has more than `limit` bytes."""
    try:
        if archive := archive_of(name):
            inside = str(PurePosixPath(name).relative_to(PurePosixPath(archive)))
            files = _open_archive(archive, Path(archive).stat().st_mtime_ns)
            _check_size(name, files.getinfo(inside).file_size, limit, noun)
            return files.read(inside)
        _check_size(name, Path(name).stat().st_size, limit, noun)
        if not Path(name).is_file():
            raise RegardError(f"{name[:200]} {absence_of(name)}. Give the path of a {noun}.")
        return Path(name).read_bytes()
    except KeyError:
        raise RegardError(f"{name} does not exist. The zip file has no such {noun}.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise RegardError(f"{name} cannot be read: its zip file is damaged ({error}).") from None
    except FileNotFoundError:
        raise RegardError(f"{name[:200]} does not exist. Give the path of a {noun}.") from None
    except (OSError, ValueError, RuntimeError, NotImplementedError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RegardError(f"{name[:200]} cannot be read: {reason}.") from None


def list_files(place: str, endings: Sequence[str], *, remedy: str) -> list[str]:
    """Return the names, within a folder or a zip file, of all files with one of the endings.

    An error about the place ends with `remedy`, a sentence.
    """
    path = Path(place)
    try:
        if path.is_dir():
            found = [file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()]
        elif zipfile.is_zipfile(path):
            with open_zip(path) as files:
                found = [info.filename for info in files.infolist() if not info.is_dir()]
        else:
            what = "is neither a folder nor a zip file" if path.exists() else "does not exist"
            raise RegardError(f"{place} {what}. {remedy}")
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise RegardError(f"{place} cannot be read ({error}).") from None
    shown = (name for name in found if not any(part.startswith((".", "__MACOSX")) for part in name.split("/")))
    return sorted(name for name in shown if name.lower().endswith(tuple(endings)))


class Listing:
    """The files of a folder or a zip file, found by their names in it or by paths to them."""

    def __init__(self, place: str, names: Sequence[str]) -> None:
        self.place = place
        self._names = {normalize("NFC", name): name for name in names}

    def find(self, given: str, manifest: str) -> str | None:
        """Return the name in this place of a file that a manifest names, or `None` if there is none.

        A path may be absolute, or relative to the manifest or to the working directory. Names are compared in Unicode
        normal form C, since macOS writes those of files in another form.
        """
        if not given or (direct := self._names.get(normalize("NFC", given))) is not None:
            return direct if given else None
        paths = given, str(Path(manifest).parent / given)
        for name in (os.path.normpath(given), *(os.path.relpath(path, self.place) for path in paths)):
            if (found := self._names.get(normalize("NFC", name))) is not None:
                return found
        return None


@lru_cache(maxsize=4)
def _open_archive(archive: str, changed: int) -> zipfile.ZipFile:
    """Return an open zip file; cached, so its directory is read again only after the file has changed."""
    return open_zip(archive)


def _check_size(name: str, count: int, limit: int, noun: str) -> None:
    if count > limit:
        raise RegardError(f"{name} has {count:,} bytes, but a {noun} may have at most {limit:,}. Leave it out.")
