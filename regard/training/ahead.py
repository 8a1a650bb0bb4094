"""Prefetching in another thread, so that the next batch is ready when it is needed."""

import queue
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

LOOK_AHEAD = 8
"""Number of prefetched items: enough to hide a slow one, few enough to need little memory."""


class Ahead(Generic[T]):
    """Iterates over the items of an iterator in order, which a thread prefetches until this is closed."""

    def __init__(self, items: Iterator[T]) -> None:
        self._queue: queue.Queue[T | BaseException] = queue.Queue(LOOK_AHEAD)
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._fill, args=(items,), name="batches ahead", daemon=True)
        self._thread.start()

    def __next__(self) -> T:
        item = self._queue.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        while self._thread.is_alive():
            try:
                self._queue.get(timeout=0.01)
            except queue.Empty:
                continue

    def _fill(self, items: Iterator[T]) -> None:
        try:
            for item in items:
                self._queue.put(item)
                if self._closed.is_set():
                    return
            self._queue.put(StopIteration())
        except Exception as error:  # the reader raises it in its own thread
            self._queue.put(error)
