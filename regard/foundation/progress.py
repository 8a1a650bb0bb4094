"""Progress reports: a function that the command line shows as a bar."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Progress = Callable[[str, int, int | None], None]
"""Called with (task, number done, total or None if it is unknown)."""

_EVERY = 1000

Item = TypeVar("Item")


def reported(items: Iterable[Item], task: str, progress: Progress | None, total: int | None = None) -> Iterator[Item]:
    """Yield the items, and call `progress` after every thousand and at the end."""
    done = 0
    for done, item in enumerate(items, start=1):
        yield item
        if progress and done % _EVERY == 0:
            progress(task, done, total)
    if progress:
        progress(task, done, total or done)
