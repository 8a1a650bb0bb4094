"""Lines from files or from standard input, some at a time, so that memory stays bounded and output can stream."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from regard.data.lines import read_lines, stream_lines
from regard.errors import RegardError

CHUNK = 512
"""Lines taken together: enough to sort by length, few enough to stream."""
CHUNK_CHARACTERS = 500_000
"""Fewer lines, where they are long."""


def lines_of(files: list[Path]) -> Iterator[str]:
    """All lines of all files (`-` is standard input), or of standard input."""
    for file in files or [Path("-")]:
        if str(file) == "-":
            yield from stream_lines(sys.stdin.buffer, "standard input", whole=True)
        else:
            yield from read_lines(file, whole=True)


def chunks(files: list[Path], skip: int) -> Iterator[list[tuple[int, str]]]:
    """Numbered lines behind the first `skip`, in chunks; one by one where somebody types them.

    What cannot be read is told only behind the lines before it: they are not lost.
    """
    most = 1 if not files and sys.stdin.isatty() else CHUNK
    lines = islice(enumerate(lines_of(files), start=1), skip, None)
    while True:
        chunk: list[tuple[int, str]] = []
        characters = 0
        try:
            for number, line in lines:
                chunk.append((number, line))
                characters += len(line)
                if len(chunk) >= most or characters > CHUNK_CHARACTERS:
                    break
        except RegardError:
            if chunk:
                yield chunk
            raise
        if not chunk:
            return
        yield chunk


@contextmanager
def progress(files: list[Path]) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, once files have taken more than two seconds; a function that is told how many are done."""
    if not files or not sys.stderr.isatty() or any(str(file) == "-" for file in files):
        yield lambda lines: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("translating"), BarColumn(), MofNCompleteColumn(), TextColumn("lines"), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task("lines", total=_count(files))
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
    """How many lines there are, if all can be read."""
    if not all(file.is_file() for file in files):  # a pipe can be read only once
        return None
    try:
        return sum(1 for _ in lines_of(files))
    except RegardError:
        return None
