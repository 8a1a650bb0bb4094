"""Lines from files or from standard input, some at a time, so that memory stays bounded and output can stream."""

import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from regard.cli.words import Given
from regard.data.lines import read_lines, stream_lines
from regard.foundation.display import is_quiet
from regard.foundation.errors import RegardError

CHUNK = 512
"""Lines taken together: enough to sort by length, few enough to stream."""
CHUNK_CHARACTERS = 500_000
"""Fewer lines, where they are long."""


class Arriving:
    """The bytes of a pipe or a terminal, read as they come; it can tell whether there is more to be had just now."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.held = b""

    def readline(self, limit: int) -> bytes:
        """Return the next line, or `limit` bytes of it; nothing at the end."""
        while b"\n" not in self.held and len(self.held) < limit:
            more = os.read(self.number, 1 << 16)
            if not more:
                break
            self.held += more
        end = min(self.held.find(b"\n") + 1 or len(self.held), limit)
        line, self.held = self.held[:end], self.held[end:]
        return line

    @property
    def idle(self) -> bool:
        """Whether the next line would have to be waited for."""
        if b"\n" in self.held:
            return False
        try:
            return not select.select([self.number], [], [], 0)[0]
        except (OSError, ValueError):  # where only sockets can be asked
            return False


def chunks(files: Sequence[Given], skip: int, texts: int = 1) -> Iterator[list[tuple[int, str]]]:
    """Yield numbered lines behind the first `skip`, in chunks: of a pipe, what has come so far.

    What cannot be read is told only behind the lines before it: they are not lost. Where a source is several `texts`,
    so is a line with more of them or fewer, unless it is empty.
    """
    arriving = _arriving() if not files or Path("-") in files else None
    lines = _counted(islice(enumerate(lines_of(files, arriving), start=1), skip, None), texts)
    while True:
        chunk: list[tuple[int, str]] = []
        characters = 0
        try:
            for number, line in lines:
                chunk.append((number, line))
                characters += len(line)
                if len(chunk) >= CHUNK or characters > CHUNK_CHARACTERS or (arriving and arriving.idle):
                    break
        except RegardError:
            if chunk:
                yield chunk
            raise
        if not chunk:
            return
        yield chunk


def _counted(lines: Iterable[tuple[int, str]], texts: int) -> Iterator[tuple[int, str]]:
    """Yield numbered lines, each of so many texts."""
    for number, line in lines:
        if texts > 1 and line.strip() and (count := line.count("\t") + 1) != texts:
            raise RegardError(
                f"Line {number:,} has {count} tab-separated texts, but this run reads {texts}. Put one tab between the "
                "two."
            )
        yield number, line


def lines_of(files: Sequence[Given], arriving: Arriving | None = None) -> Iterator[str]:
    """Yield all lines of all files (`-` is standard input) and texts, or of standard input."""
    for file in files or [Path("-")]:
        if isinstance(file, str):
            yield from file.split("\n")
        elif str(file) == "-":
            yield from stream_lines(arriving or sys.stdin.buffer, "standard input", whole=True)
        else:
            yield from read_lines(file, whole=True)


def _arriving() -> Arriving | None:
    """Standard input, if it comes bit by bit: a file is all there."""
    try:
        number = sys.stdin.fileno()
    except (OSError, ValueError, AttributeError):
        return None
    return None if stat.S_ISREG(os.fstat(number).st_mode) else Arriving(number)


@contextmanager
def progress(files: Sequence[Given]) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, once files have taken more than two seconds; a function that is told how many are done."""
    paths = [file for file in files if isinstance(file, Path) and str(file) != "-"]
    if not files or is_quiet() or not sys.stderr.isatty() or len(paths) < len(files):
        yield lambda lines: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("translating"), BarColumn(), MofNCompleteColumn(), TextColumn("lines"), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("lines", total=_count(paths))
    start = time.monotonic()

    def advance(lines: int) -> None:
        bar.advance(task, lines)
        if not bar.live.is_started and time.monotonic() - start > 2:
            bar.start()

    try:
        yield advance
    finally:
        bar.stop()


def _count(files: list[Path]) -> int | None:
    """Return how many lines there are, if all can be read."""
    if not all(file.is_file() for file in files):  # a pipe can be read only once
        return None
    try:
        return sum(1 for _ in lines_of(files))
    except RegardError:
        return None
