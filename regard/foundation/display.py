"""What evaluation shows on the way and in the end: a bar where there is a terminal, and aligned columns."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from regard.foundation.progress import Progress


@contextmanager
def bar() -> Iterator[Progress | None]:
    """A progress bar on standard error; nothing where that is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    parts = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Bar(*parts, console=Console(stderr=True), transient=True) as shown:
        tasks = {}

        def progress(task: str, done: int, count: int | None) -> None:
            if task not in tasks:
                tasks[task] = shown.add_task(task, total=count)
            shown.update(tasks[task], completed=done, total=count)

        yield progress


def columns(rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), indent: str = "") -> str:
    """Rows in aligned columns, those numbered in `right` flush right."""
    wide = max(map(len, rows), default=0)
    filled = [[*row, *[""] * (wide - len(row))] for row in rows]
    widths = [max(len(row[place]) for row in filled) for place in range(wide)]
    lines = (
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in filled
    )
    return "\n".join(indent + line.rstrip() for line in lines)
