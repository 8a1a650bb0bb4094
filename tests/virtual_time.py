"""An event loop without waiting: where it would sleep, its clock moves on, so that no test depends on the machine."""

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar
from unittest import mock


class _SkippingSelector(selectors.SelectSelector):
    """Moves a clock on instead of waiting for files."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return the files that are ready now; raises `RuntimeError` if nothing would ever end the waiting."""
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("Every task waits, and no timer is set: the loop would wait for ever.")
            self.now += max(timeout, 0.0)
        return ready


Result = TypeVar("Result")


def run_in_virtual_time(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine with a clock (`time.monotonic`) that moves only where all tasks sleep."""
    selector = _SkippingSelector()
    with (
        mock.patch.object(time, "monotonic", lambda: selector.now),
        asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner,
    ):
        return runner.run(work)
