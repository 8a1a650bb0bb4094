"""Ctrl-C and SIGTERM: the step at hand is finished and saved; asked twice, the process leaves at once."""

import signal
import threading
from types import FrameType
from typing import Any, Self

from regard.foundation.errors import RegardError

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Ctrl-C, a request from outside, a closed terminal; where one is ignored already (`nohup`), it stays ignored."""


class Interrupted(RegardError):
    """The run was asked to stop, and has; the exit code is the shell's for the signal (130, 143)."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + number


class Interruption:
    """Listens for a request to stop while it is entered; outside the main thread it hears nothing."""

    def __init__(self) -> None:
        self.requested: int | None = None
        self.patient = False
        """While patient, a request is only noted; otherwise there is nothing to save and it is raised at once."""
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
            self._before = {number: signal.signal(number, self._hear) for number in heard}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _hear(self, number: int, _: FrameType | None) -> None:
        if self.requested is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = self.requested or number
        if not self.patient:
            raise Interrupted("Stopped.", number)
