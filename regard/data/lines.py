"""Lines of text files, plain or gzip, read one at a time with bounded memory and clear errors."""

import gzip
import io
import os
import select
import stat
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol, cast

from regard.foundation.errors import RegardError

LONGEST_LINE = 1 << 22
"""Bytes of a line that are kept; the rest of a longer one (some million characters: no sentence) is passed over."""

MOST_PASSED_OVER = 1 << 28
"""Bytes of a line that are passed over; what goes on for longer may never end."""
PATIENCE = 10.0
"""Seconds to wait until somebody opens a named pipe for writing."""

_GZIP = b"\x1f\x8b"
_BOM = "\ufeff"


def read_lines(path: str | Path, *, whole: bool = False) -> Iterator[str]:
    r"""The lines of a UTF-8 file without their ends (`\n` or `\r\n`, nothing else) and without a byte order mark.

    `whole`: a line longer than `LONGEST_LINE` is refused, where something would be lost if its rest were passed over.
    """
    number = 0
    try:
        with _open(Path(path)) as file:
            for number, line in enumerate(stream_lines(file, str(path), whole=whole), start=1):  # noqa: B007
                yield line
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise RegardError(
            f"{path} is damaged or cut short after line {number:,} ({error}): fetch or compress it again."
        ) from error
    except OSError as error:
        raise RegardError(f"cannot read {path}: {error.strerror or error}.") from error


class Lined(Protocol):
    """Anything that bytes can be read from line by line."""

    def readline(self, limit: int, /) -> bytes:
        """The next line, or `limit` bytes of it; nothing at the end."""


def stream_lines(file: Lined, name: str, *, whole: bool = False) -> Iterator[str]:
    """The lines of a stream, as `read_lines` gives those of a file."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        ends = line.endswith(b"\n") or len(line) < LONGEST_LINE
        if not ends:
            if whole:
                raise RegardError(
                    f"{name}:{number} is longer than {LONGEST_LINE >> 20} MB, which is no line of text: break it into "
                    "lines."
                )
            _pass_over_rest(file, name, number)
        text = _decode(line, name, number, ends)
        yield text.removeprefix(_BOM) if number == 1 else text


def _open(path: Path) -> BinaryIO:
    """The file's bytes, unpacked if they begin like gzip, whatever its name."""
    if path.is_dir():
        raise RegardError(f"{path} is a directory: name the files in it.")
    if not path.exists():
        raise RegardError(f"{path} does not exist: check the path (it is relative to where the command runs).")
    kind = path.stat().st_mode
    if stat.S_ISFIFO(kind):
        file: io.BufferedReader[Any] = io.BufferedReader(_Pipe(path), 1 << 20)
    else:
        file = path.open("rb")
        if stat.S_ISCHR(kind) and not file.isatty() and path.resolve() != Path(os.devnull):
            file.close()
            raise RegardError(f"{path} is a device, from which lines would come without end: name a file.")
    if file.peek(2)[:2] != _GZIP:
        return file
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=file)), 1 << 20))


class _Pipe(io.RawIOBase):
    """The bytes of a named pipe; refused if nobody opens it for writing for some time."""

    def __init__(self, path: Path) -> None:
        self._held = b""
        self._number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        until = time.monotonic() + PATIENCE
        ready = select.poll()
        ready.register(self._number)
        while True:
            try:
                self._held = os.read(self._number, 1 << 16)
            except BlockingIOError:
                break  # somebody has it open, and has written nothing yet
            if self._held or ready.poll(0):
                break  # there is something, or somebody wrote nothing and closed it
            if time.monotonic() > until:
                os.close(self._number)
                raise RegardError(
                    f"{path} is a pipe that nobody writes to: start the program that does, or name a file."
                )
            time.sleep(0.02)
        os.set_blocking(self._number, True)

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, room: Any) -> int:
        """Put the next bytes into some room, and say how many."""
        if not self._held:
            self._held = os.read(self._number, len(room))
        count = min(len(room), len(self._held))
        room[:count], self._held = self._held[:count], self._held[count:]
        return count

    def close(self) -> None:
        """Close the pipe."""
        if not self.closed:
            os.close(self._number)
        super().close()


def check_rereadable(paths: Iterable[str | Path]) -> None:
    """Refuse files that can be read only once, such as pipes, where they have to be read again."""
    for path in map(Path, paths):
        if path.exists() and not path.is_file() and not path.is_dir():
            raise RegardError(
                f"{path} is a pipe or a device, but a corpus is read more than once: write it to a file, and name that."
            )


def _pass_over_rest(file: Lined, name: str, number: int) -> None:
    passed = 0
    while rest := file.readline(LONGEST_LINE):
        if rest.endswith(b"\n"):
            return
        passed += len(rest)
        if passed > MOST_PASSED_OVER:
            raise RegardError(
                f"{name}:{number} is longer than {MOST_PASSED_OVER >> 20} MB, which is no line of text: break it into "
                "lines."
            )


def _decode(line: bytes, path: str | Path, number: int, whole: bool) -> str:
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        if not whole and error.start > LONGEST_LINE - 4:  # the cut went through a character
            return line[: error.start].decode("utf-8")
        utf16 = line[:2] in (b"\xff\xfe", b"\xfe\xff")
        remedy = "convert it from UTF-16, which it looks like" if utf16 else "find out its encoding, and convert it"
        raise RegardError(
            f"{path}:{number} is not valid UTF-8 (byte 0x{line[error.start]:02x} at {error.start + 1}): {remedy}, as "
            "with `iconv -f ENCODING -t UTF-8`."
        ) from error
