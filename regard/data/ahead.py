"""Work done ahead by another thread: the same items in the same order, a few of them ready before asked for."""

import queue
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import TypeVar

Item = TypeVar("Item")

_PATIENCE = 0.1


def ahead(items: Iterator[Item], count: int) -> Iterator[Item]:
    """The items of an iterator, up to `count` of them made in advance; closing the result ends the thread."""
    ready: queue.Queue[tuple[Item | None, BaseException | None]] = queue.Queue(maxsize=count)
    closed = threading.Event()

    def put(entry: tuple[Item | None, BaseException | None]) -> None:
        while not closed.is_set():
            with suppress(queue.Full):
                ready.put(entry, timeout=_PATIENCE)
                return

    def work() -> None:
        try:
            for item in items:
                put((item, None))
                if closed.is_set():
                    return
            put((None, StopIteration()))
        except BaseException as error:  # handed over to whoever asks for the next item
            put((None, error))

    threading.Thread(target=work, name="batches ahead", daemon=True).start()
    try:
        while True:
            item, error = ready.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc]
    finally:
        closed.set()
