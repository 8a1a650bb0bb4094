"""Lines of text files, plain or gzip, read one at a time with bounded memory and clear errors."""

import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from regard.errors import RegardError

LONGEST_LINE = 1 << 22
"""Bytes of a line that are kept; the rest of a longer one (some million characters: no sentence) is passed over."""

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
            _pass_over_rest(file)
        text = _decode(line, name, number, ends)
        yield text.removeprefix(_BOM) if number == 1 else text


def _open(path: Path) -> BinaryIO:
    """The file's bytes, unpacked if they begin like gzip, whatever its name."""
    if path.is_dir():
        raise RegardError(f"{path} is a directory: name the files in it.")
    if not path.exists():
        raise RegardError(f"{path} does not exist: check the path (it is relative to where the command runs).")
    file = path.open("rb")
    if file.peek(2)[:2] != _GZIP:
        return file
    file.close()
    return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, gzip.open(path)), 1 << 20))


def _pass_over_rest(file: Lined) -> None:
    while rest := file.readline(LONGEST_LINE):
        if rest.endswith(b"\n"):
            return


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
