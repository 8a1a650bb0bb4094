"""The progress of a run: all state of the training loop that is not a tensor."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from regard.data.batches import Cursor
from regard.runs.records import DamagedFile, parse
from regard.training.schedule import Plateau


@dataclass
class Window:
    """Sums over the steps since the last line in the journal."""

    loss: float = 0.0
    """Smoothed cross-entropy."""
    nll: float = 0.0
    """Negative log-likelihood."""
    tokens: int = 0
    """Target tokens."""
    norm: float = 0.0
    """Largest gradient norm, before clipping."""
    seconds: float = 0.0


@dataclass
class Progress:
    """The counters of a run; as JSON they are part of every checkpoint."""

    step: int = 0
    total: int = 0
    """The configured number of steps."""
    cursor: Cursor = field(default_factory=Cursor)
    """The position in the data."""
    world_size: int = 1
    machine: str = ""
    """The machine of training; another one computes the same up to rounding, not bit for bit."""
    plateau: Plateau = field(default_factory=Plateau)
    best: float | None = None
    """Score of the best validation (larger is better)."""
    best_step: int | None = None
    waited: int = 0
    """Validations since the best one."""
    stopped_early: bool = False
    skipped: int = 0
    """Steps skipped because a loss or gradient was not finite."""
    bad_in_row: int = 0
    tokens: int = 0
    """Target tokens trained on."""
    seconds: float = 0.0
    """Wall time including validation, but without work lost by interruptions."""
    update_seconds: float = 0.0
    """Wall time of the updates alone."""
    window: Window = field(default_factory=Window)

    def to_json(self) -> dict[str, Any]:
        """Return the progress as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, state: Mapping[str, Any], path: Path) -> "Progress":
        """Parse the data of `to_json`; the path is named in the error if a value is missing or of another type."""
        complete = {name for name in cls.__dataclass_fields__ if name not in state}
        if complete:
            raise DamagedFile(f"{path} is damaged: state.{min(complete)} is missing.")
        progress = parse(cls, state, path)
        if min(progress.step, progress.cursor.epoch, progress.cursor.position, progress.world_size - 1) < 0:
            raise DamagedFile(f"{path} is damaged: a counter is negative.")
        return progress

    @property
    def tokens_per_second(self) -> float:
        """Target tokens per second, over the whole run."""
        return self.tokens / self.update_seconds if self.update_seconds else 0.0


def perplexity(nll: float) -> float:
    """Return e to the power of the mean negative log-likelihood, limited to finite values."""
    return math.exp(min(nll, 100.0))
