"""Lines of text files, plain or gzip, read one at a time in bounded memory."""

import gzip
import io
import os
import select
import stat
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol, Self, cast

import numpy as np

from regard.foundation.errors import RegardError

LONGEST_LINE = 1 << 22
"""Bytes of a line that are kept; the rest of a longer one, which is not a sentence, is skipped."""

MOST_PASSED_OVER = 1 << 28
"""Bytes of a line that are skipped before reading stops with an error."""
BLOCK = 1 << 18
"""Bytes that are read at once; a block ends with a whole line."""
PATIENCE = 10.0
"""Seconds to wait until another process opens a named pipe for writing."""

CHUNK = 512
"""Lines that are translated together: enough to sort by length, few enough to stream."""
CHUNK_CHARACTERS = 500_000
"""Characters after which a chunk of long lines ends."""

_GZIP = b"\x1f\x8b"
_BOM = "\ufeff"


def read_lines(path: str | Path, *, whole: bool = False) -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file without their ends (`\n` or `\r\n`, nothing else) and without a byte order mark.

    `whole`: raise if a line is longer than `LONGEST_LINE`, instead of skipping its rest.
    """
    number = 0
    try:
        with open_file(Path(path)) as file:
            for number, line in enumerate(stream_lines(file, str(path), whole=whole), start=1):  # noqa: B007
                yield line
    except (OSError, zlib.error, EOFError) as error:
        raise _unreadable(path, number, error) from error


def _unreadable(path: str | Path, number: int, error: Exception) -> RegardError:
    """Return the error for a file that could be read up to line `number`."""
    if isinstance(error, gzip.BadGzipFile | zlib.error | EOFError):
        return RegardError(
            f"{path} is damaged or cut short after line {number:,} ({error}). Download or compress it again."
        )
    reason = error.strerror if isinstance(error, OSError) else None
    return RegardError(f"{path} cannot be read: {reason or error}.")


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Whole lines of a file as bytes, to be decoded where they are used."""

    path: str
    first: int
    """The number of the first line, from 1."""
    data: bytes

    @property
    def count(self) -> int:
        """How many lines it has."""
        return self.data.count(b"\n") + (not self.data.endswith(b"\n"))

    def lines(self) -> Iterator[str]:
        """Return its lines, as `read_lines` does."""
        if len(self.data) > LONGEST_LINE:
            return stream_lines(io.BytesIO(self.data), self.path, first=self.first)
        try:
            text = self.data.decode("utf-8")
        except UnicodeDecodeError:  # line by line, to name the line
            return stream_lines(io.BytesIO(self.data), self.path, first=self.first)
        lines = (text.removeprefix(_BOM) if self.first == 1 else text).split("\n")
        if not lines[-1]:
            lines.pop()
        return (line.removesuffix("\r") for line in lines) if "\r" in text else iter(lines)

    def split(self, count: int) -> tuple[Self, Self]:
        """Return the first `count` lines, and the rest, which must not be empty."""
        ends = np.flatnonzero(np.frombuffer(self.data, dtype=np.uint8) == ord("\n"))
        cut = int(ends[count - 1]) + 1
        return (
            type(self)(self.path, self.first, self.data[:cut]),
            type(self)(self.path, self.first + count, self.data[cut:]),
        )


def read_blocks(path: str | Path) -> Iterator[LineBlock]:
    """Yield the lines of a file in blocks of about `BLOCK` bytes; the end of a line over `LONGEST_LINE` is left out."""
    first = 1
    try:
        with open_file(Path(path)) as file:
            while True:
                data, fault = _read_whole_lines(file, BLOCK, str(path), first)
                if data:
                    block = LineBlock(str(path), first, data)
                    yield block
                    first += block.count
                if fault is not None:
                    raise fault
                if not data:
                    return
    except (OSError, zlib.error, EOFError) as error:
        raise _unreadable(path, first - 1, error) from error


def _read_whole_lines(file: BinaryIO, size: int, name: str, first: int) -> tuple[bytes, Exception | None]:
    """Return about `size` bytes of whole lines, and the fault that ends the file if it is damaged."""
    parts: list[bytes] = []
    try:
        length = 0
        while length < size and (part := cast(io.BufferedReader, file).read1(size - length)):
            parts.append(part)
            length += len(part)
        if parts and not parts[-1].endswith(b"\n"):
            parts.append(file.readline(LONGEST_LINE))
            if len(parts[-1]) == LONGEST_LINE and not parts[-1].endswith(b"\n"):
                _skip_rest(file, name, first + sum(part.count(b"\n") for part in parts))
                parts.append(b"\n")
    except (OSError, zlib.error, EOFError) as error:
        data = b"".join(parts)
        return data[: data.rfind(b"\n") + 1], error
    return b"".join(parts), None


def paired_blocks(source: str, target: str) -> Iterator[tuple[LineBlock | None, LineBlock | None]]:
    """Yield blocks of two files with the same number of lines; `None` for a file that has ended before the other."""
    readers = read_blocks(source), read_blocks(target)
    held: list[LineBlock | None] = [None, None]
    while True:
        for side, reader in enumerate(readers):
            held[side] = held[side] or next(reader, None)
        left, right = held
        if left is None or right is None:
            if left is right:
                return
            held = [None, None]
            yield left, right
            continue
        count = min(left.count, right.count)
        (left, held[0]), (right, held[1]) = (
            (block, None) if block.count == count else block.split(count) for block in (left, right)
        )
        yield left, right


class RawLine(NamedTuple):
    """A line as it is in its file."""

    content: bytes
    """The line without its end, or the first `LONGEST_LINE` bytes of it."""
    is_whole: bool
    """Whether the line is not longer than that."""
    position: int
    """Bytes of the file that have been read, compressed ones if it is compressed."""


def read_raw_lines(path: str | Path) -> Iterator[RawLine]:
    """Yield the lines of a file as bytes, whatever their encoding."""
    number = 0
    try:
        with open_file(Path(path)) as file:
            raw = getattr(file, "raw", None)
            inner: Any = raw.fileobj if isinstance(raw, gzip.GzipFile) else file
            while line := file.readline(LONGEST_LINE):
                number += 1
                is_whole = line.endswith(b"\n") or len(line) < LONGEST_LINE
                if not is_whole:
                    _skip_rest(file, str(path), number)
                yield RawLine(line.removesuffix(b"\n").removesuffix(b"\r"), is_whole, inner.tell())
    except (gzip.BadGzipFile, zlib.error, EOFError, OSError) as error:
        raise _unreadable(path, number, error) from error


class Lined(Protocol):
    """Anything that bytes can be read from line by line."""

    def readline(self, limit: int, /) -> bytes:
        """Return the next line, or `limit` bytes of it; empty at the end."""


def stream_lines(file: Lined, name: str, *, whole: bool = False, first: int = 1) -> Iterator[str]:
    """Yield the lines of a stream, the first of which has the number `first`, as `read_lines` does for a file."""
    number = first - 1
    while line := file.readline(LONGEST_LINE):
        number += 1
        ends = line.endswith(b"\n") or len(line) < LONGEST_LINE
        if not ends:
            if whole:
                raise RegardError(
                    f"{name}:{number} is longer than {LONGEST_LINE >> 20} MB, which is not a line of text. Break it "
                    "into "
                    "lines."
                )
            _skip_rest(file, name, number)
        text = _decode(line, name, number, ends)
        yield text.removeprefix(_BOM) if number == 1 else text


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading bytes; decompressed if it begins like gzip, regardless of its name."""
    if path.is_dir():
        raise RegardError(f"{path} is a directory. Name the files in it.")
    if not path.exists():
        raise RegardError(f"{path} does not exist. Check the path (it is relative to where the command runs).")
    kind = path.stat().st_mode
    if stat.S_ISFIFO(kind):
        file: io.BufferedReader[Any] = io.BufferedReader(_Pipe(path), 1 << 20)
    else:
        file = path.open("rb")
        if stat.S_ISCHR(kind) and not file.isatty() and path.resolve() != Path(os.devnull):
            file.close()
            raise RegardError(f"{path} is a device, which may never end. Name a file.")
    if file.peek(2)[:2] != _GZIP:
        return file
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, gzip.GzipFile(fileobj=file)), 1 << 20))


class _Pipe(io.RawIOBase):
    """The bytes of a named pipe; raises if no process opens it for writing in time."""

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
                break  # a process has opened it and has not written yet
            if self._held or ready.poll(0):
                break  # data has arrived, or the writer has closed it
            if time.monotonic() > until:
                os.close(self._number)
                raise RegardError(
                    f"{path} is a pipe that no program writes to. Start the program that does, or name a file."
                )
            time.sleep(0.02)
        os.set_blocking(self._number, True)

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, room: Any) -> int:
        """Read the next bytes into a buffer, and return their number."""
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
    """Raise if a file can be read only once, such as a pipe, where it must be read again."""
    for path in map(Path, paths):
        if path.exists() and not path.is_file() and not path.is_dir():
            raise RegardError(
                f"{path} is a pipe or a device, but a corpus is read more than once. Write it to a file, and name that."
            )


def _skip_rest(file: Lined, name: str, number: int) -> None:
    passed = 0
    while rest := file.readline(LONGEST_LINE):
        if rest.endswith(b"\n"):
            return
        passed += len(rest)
        if passed > MOST_PASSED_OVER:
            raise RegardError(
                f"{name}:{number} is longer than {MOST_PASSED_OVER >> 20} MB, which is not a line of text. Break it "
                "into "
                "lines."
            )


def _decode(line: bytes, path: str | Path, number: int, whole: bool) -> str:
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        if not whole and error.start > LONGEST_LINE - 4:  # the cut split a character
            return line[: error.start].decode("utf-8")
        utf16 = line[:2] in (b"\xff\xfe", b"\xfe\xff")
        remedy = "Convert it from UTF-16, which it looks like" if utf16 else "Find out its encoding, and convert it"
        raise RegardError(
            f"{path}:{number} is not valid UTF-8 (byte 0x{line[error.start]:02x} at {error.start + 1}). {remedy}, for "
            f"example with `iconv -f {'UTF-16' if utf16 else 'ENCODING'} -t UTF-8`."
        ) from error
