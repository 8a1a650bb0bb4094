"""Learning rate schedules: pure functions of the step, counted from 1."""

import math
from dataclasses import dataclass

from regard.config.cell import resolved
from regard.config.training import Schedule


@dataclass(frozen=True, kw_only=True)
class Plateau:
    """The state of the `plateau` schedule."""

    factor: float = 1.0
    """The learning rate is multiplied by this."""
    best: float | None = None
    """The lowest validation loss so far."""
    waited: int = 0
    """Validations since then."""

    def after(self, loss: float, config: Schedule) -> "Plateau":
        """Return the state after one more validation."""
        if math.isfinite(loss) and (self.best is None or loss < self.best):
            return Plateau(factor=self.factor, best=loss)
        if self.waited + 1 < config.patience:
            return Plateau(factor=self.factor, best=self.best, waited=self.waited + 1)
        return Plateau(factor=self.factor * config.factor, best=self.best)


def learning_rate(config: Schedule, peak: float, step: int, total: int, plateau: Plateau) -> float:
    """Return the learning rate of a step: linear warm-up to `peak` at step `warmup`, then the decay of the schedule."""
    warmup = resolved(config.warmup)
    if step < warmup:
        return peak * step / warmup
    match config.kind:
        case "constant":
            return peak
        case "plateau":
            return peak * plateau.factor
        case "inverse-sqrt":
            return peak * math.sqrt(max(1, warmup) / step)
        case "cosine":
            way = (step - warmup) / max(1, total - warmup)
            return peak * (1 + math.cos(math.pi * min(1.0, way))) / 2
