"""How long work tells how far it is: a function that the command line turns into a bar."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Progress = Callable[[str, int, int | None], None]
"""Called with (what is being done, how much is done, how much there is or None if nobody knows)."""

_EVERY = 1000

Item = TypeVar("Item")


def reported(items: Iterable[Item], task: str, progress: Progress | None, total: int | None = None) -> Iterator[Item]:
    """Yield the same items; every thousand of them, and at the end, `progress` hears of it."""
    done = 0
    for done, item in enumerate(items, start=1):
        yield item
        if progress and done % _EVERY == 0:
            progress(task, done, total)
    if progress:
        progress(task, done, total or done)
