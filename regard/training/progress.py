"""Where a run stands: everything the loop remembers that is not a tensor."""

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
    """Steps asked for."""
    cursor: Cursor = field(default_factory=Cursor)
    """Where the data goes on."""
    world_size: int = 1
    machine: str = ""
    """What it is trained on: another machine computes the same to within rounding, not bit for bit."""
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
    """Target tokens learned from."""
    seconds: float = 0.0
    """Wall time of all that led here, validation included, lost work not."""
    update_seconds: float = 0.0
    """Wall time of the updates alone."""
    window: Window = field(default_factory=Window)

    def to_json(self) -> dict[str, Any]:
        """Everything, as JSON knows it."""
        return asdict(self)

    @classmethod
    def from_json(cls, state: Mapping[str, Any], path: Path) -> "Progress":
        """Return what `to_json` gave; the path is for the error where a value is missing or of another type."""
        complete = {name for name in cls.__dataclass_fields__ if name not in state}
        if complete:
            raise DamagedFile(f"{path} is damaged: state.{min(complete)} is missing.")
        progress = parse(cls, state, path)
        if min(progress.step, progress.cursor.epoch, progress.cursor.position, progress.world_size - 1) < 0:
            raise DamagedFile(f"{path} is damaged: a counter is negative.")
        return progress

    @property
    def tokens_per_second(self) -> float:
        """Target tokens a second, over the whole run."""
        return self.tokens / self.update_seconds if self.update_seconds else 0.0


def perplexity(nll: float) -> float:
    """e to the mean negative log-likelihood; kept finite for a model that knows nothing."""
    return math.exp(min(nll, 100.0))
