"""Ctrl-C and SIGTERM: the current step is finished and saved; a second Ctrl-C exits at once."""

import signal
import threading
from types import FrameType
from typing import Any, Self

from regard.foundation.errors import RegardError

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Ctrl-C, termination and a closed terminal; signals that are already ignored (`nohup`) stay ignored."""


class Interrupted(RegardError):
    """The run was stopped by a signal; the exit code is the shell's for the signal (130, 143)."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + number


class Interruption:
    """Context manager that handles signals to stop; it does nothing outside the main thread."""

    def __init__(self) -> None:
        self.requested: int | None = None
        self.patient = False
        """If true, a signal is only recorded; otherwise there is nothing to save, and it raises `Interrupted`."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._handle) for number in handled}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.requested is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = self.requested or number
        if not self.patient:
            raise Interrupted("Stopped.", number)
