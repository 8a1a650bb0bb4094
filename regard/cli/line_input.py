"""Lines from files or standard input in chunks, so that memory is bounded and output can stream."""

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
from regard.data.lines import CHUNK, CHUNK_CHARACTERS, read_lines, stream_lines
from regard.foundation.display import is_quiet, note
from regard.foundation.errors import RegardError


class StreamInput:
    """The bytes of a pipe or a terminal, read as they arrive; `idle` is true while none are available."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.held = b""

    def readline(self, limit: int) -> bytes:
        """Return the next line, or `limit` bytes of it; empty at the end."""
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
        """Whether reading the next line would block."""
        if b"\n" in self.held:
            return False
        try:
            return not select.select([self.number], [], [], 0)[0]
        except (OSError, ValueError):  # on systems where `select` accepts only sockets
            return False


TABLES = (".csv", ".xlsx", ".parquet")
"""Endings of files that are tables and not lines of text."""


def _note_tables(files: Sequence[Given]) -> None:
    """Say that a table is read line by line; refuse one that is not text."""
    for file in files:
        ending = file.suffix.lower() if isinstance(file, Path) else ""
        if ending in TABLES[1:]:
            raise RegardError(f"{file} is a table, and here lines of text are read. Save the column as a text file.")
        if ending in TABLES:
            note(f"note: {file} is read line by line, with its header and all columns; save one column as a text file.")


def chunks(files: Sequence[Given], skip: int, texts: int = 1) -> Iterator[list[tuple[int, str]]]:
    """Yield numbered lines after the first `skip`, in chunks; of a pipe, the lines that have arrived.

    A read error is raised only after the lines before it have been yielded, so that they are not lost. If a source has
    several `texts`, a line with another number of them is an error too, unless it is empty.
    """
    _note_tables(files)
    arriving = _stream_input() if not files or Path("-") in files else None
    lines = _check_texts(islice(enumerate(iterate_lines(files, arriving), start=1), skip, None), texts)
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


def _check_texts(lines: Iterable[tuple[int, str]], texts: int) -> Iterator[tuple[int, str]]:
    """Yield numbered lines; raises if one does not have `texts` texts."""
    for number, line in lines:
        if texts > 1 and line.strip() and (count := line.count("\t") + 1) != texts:
            raise RegardError(
                f"Line {number:,} has {count} tab-separated texts, but this run reads {texts}. Put one tab between the "
                "two."
            )
        yield number, line


def iterate_lines(files: Sequence[Given], arriving: StreamInput | None = None) -> Iterator[str]:
    """Yield all lines of all files (`-` is standard input) and texts, or of standard input."""
    for file in files or [Path("-")]:
        if isinstance(file, str):
            yield from file.split("\n")
        elif str(file) == "-" and arriving is None and sys.stdin is None:
            raise RegardError("Standard input is closed. Name a file, or give a text.")
        elif str(file) == "-":
            yield from stream_lines(arriving or sys.stdin.buffer, "standard input", whole=True)
        else:
            yield from read_lines(file, whole=True)


def _stream_input() -> StreamInput | None:
    """Return standard input if it is a pipe or a terminal, not a file."""
    try:
        number = sys.stdin.fileno()
    except (OSError, ValueError, AttributeError):
        return None
    return None if stat.S_ISREG(os.fstat(number).st_mode) else StreamInput(number)


@contextmanager
def progress(files: Sequence[Given]) -> Iterator[Callable[[int], None]]:
    """Show a progress bar after two seconds on a terminal; yields a function that takes the number of lines done."""
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
    """Return the number of lines, or `None` if it is unknown."""
    if not all(file.is_file() for file in files):  # a pipe can be read only once
        return None
    try:
        return sum(1 for _ in iterate_lines(files))
    except RegardError:
        return None
