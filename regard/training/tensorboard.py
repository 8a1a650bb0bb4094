"""The journal's lines as TensorBoard events, on request."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.foundation.errors import UsageError
from regard.foundation.installation import install_command


def require_tensorboard() -> None:
    """Refuse to begin what could not be written later."""
    if importlib.util.find_spec("tensorboard") is None:
        raise UsageError(
            "training.tensorboard needs the package tensorboard. Install it with "
            f"`{install_command('tensorboard')}`, or set training.tensorboard=false."
        )


class TensorBoard:
    """Writes events into the run's `tensorboard/`."""

    def __init__(self, directory: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._directory, self._kind = str(directory / "tensorboard"), SummaryWriter
        self._writer: Any = None

    def begin(self, step: int) -> None:
        """Begin behind a step: what was written after it no longer counts."""
        make: Any = self._kind
        self._writer = make(self._directory, purge_step=step + 1)

    def add(self, kind: str, step: int, facts: Mapping[str, Any]) -> None:
        """Write the numbers of a line."""
        for name, value in facts.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                self._writer.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Write what is left."""
        if self._writer:
            self._writer.close()
