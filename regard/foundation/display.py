"""Terminal output: progress bars and notes on standard error, and aligned columns."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from regard.foundation.progress import Progress


def is_quiet() -> bool:
    """Return whether the user asked for no progress and no notes (`--quiet`, or REGARD_QUIET=1)."""
    return os.environ.get("REGARD_QUIET") == "1"


def note(text: str) -> None:
    """Print a note on standard error, unless the user asked for quiet."""
    if not is_quiet():
        print(text, file=sys.stderr)


@contextmanager
def bar() -> Iterator[Progress | None]:
    """Show a progress bar on standard error; yields None without a terminal or with --quiet."""
    if is_quiet() or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class RateColumn(ProgressColumn):
        """How many are done in a second."""

        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:,.0f}/s" if task.speed and task.speed >= 10 else "", style="dim")

    parts = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), RateColumn(), TimeRemainingColumn()
    with Bar(*parts, console=Console(stderr=True), transient=True) as shown:
        tasks = {}

        def progress(task: str, done: int, count: int | None) -> None:
            if task not in tasks:
                tasks[task] = shown.add_task(task, total=count)
            shown.update(tasks[task], completed=done, total=count)

        yield progress


def escape_cell(text: str) -> str:
    """Return a text as a cell of a table with tabs between cells: tabs and line breaks become escape sequences."""
    return text.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def columns(rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: str = "") -> str:
    """Return rows in aligned columns, those numbered in `right` flush right."""
    wide = max(map(len, rows), default=0)
    filled = [[*row, *[""] * (wide - len(row))] for row in rows]
    widths = [max(len(row[index]) for row in filled) for index in range(wide)]
    lines = (
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in filled
    )
    return "\n".join(indent + line.rstrip() for line in lines)
