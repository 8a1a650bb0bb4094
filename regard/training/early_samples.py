"""When to show outputs of a model before its first validation, which may be minutes away."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

FIRST_AFTER = 2.0
"""Seconds of training before the first output; the next ones follow at twice the time each."""
LARGEST_SHARE = 0.01
"""Largest share of the time that outputs may take, the first one excepted."""


class EarlySamples:
    """The schedule of at most `count` outputs, from the start of training to the first validation."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._start = self._next = 0.0

    def start(self) -> None:
        """Begin to count the time."""
        self._start = time.monotonic()
        self._next = self._start + FIRST_AFTER

    def is_due(self) -> bool:
        """Return whether an output is due now."""
        return self._left > 0 and time.monotonic() >= self._next

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Time an output, and schedule the next one."""
        begin = time.monotonic()
        yield
        now = time.monotonic()
        self._left -= 1
        self._next = now + max(now - self._start, (now - begin) / LARGEST_SHARE)

    def stop(self) -> None:
        """Show no more: validation shows outputs from now on."""
        self._left = 0
