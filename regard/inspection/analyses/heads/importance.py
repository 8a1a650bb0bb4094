"""How much a model needs each head: how its loss would move, and how it moves.

Michel et al. (2019), "Are sixteen heads really better than one?" The loss is that of the model's own task.

Axes: B examples, H heads, T positions, K head width.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.foundation.progress import Progress
from regard.inspection.interventions import attentions, scale_head
from regard.metrics.intervals import Totals, ratio_intervals, score_intervals
from regard.nn import taps
from regard.nn.taps import Write
from regard.tasks.task import Task
from regard.tasks.training_batch import TrainingBatch


@dataclass(frozen=True)
class Importance:
    """What leaving heads out does to the loss (for each answer that is asked for), by the name of their attention."""

    loss: float
    """Of the whole model."""
    gradient: dict[str, Tensor]
    """H: the sum over examples of |∂loss/∂ξ|, ξ a factor of the head that is 1, for each answer."""
    rise: dict[str, Tensor]
    """H: how much the loss rises when the head is left out."""
    share_95: dict[str, Tensor]
    rise_95: dict[str, Tensor]
    """H×2: 95 % intervals of `share` and `rise`, by a bootstrap over examples; no numbers for a single one."""

    def share(self, name: str) -> Tensor:
        """The gradients of one attention's heads, as a vector of length one."""
        return F.normalize(self.gradient[name], dim=0)


def importance(
    task: Task, model: nn.Module, batches: Sequence[TrainingBatch], progress: Progress | None = None
) -> Importance:
    """The importance of every head of a model, both ways."""
    slopes = example_slopes(task, model, batches)
    whole, counts, without = example_losses(task, model, batches, progress)
    answers = max(1.0, float(counts.sum()))
    gradient = {name: slope.sum(0) / answers for name, slope in slopes.items()}
    rise = {name: (losses.sum(0) - whole.sum()) / answers for name, losses in without.items()}
    return Importance(
        loss=float(whole.sum()) / answers,
        gradient=gradient,
        rise=rise,
        share_95={name: _intervals(score_intervals(slope, _normalise), slope) for name, slope in slopes.items()},
        rise_95={
            name: _intervals(ratio_intervals(losses - whole[:, None], counts[:, None]), losses)
            for name, losses in without.items()
        },
    )


def _normalise(totals: Totals) -> Totals:
    """Return vectors …×H of length one."""
    norms: Totals = totals / np.maximum(np.linalg.norm(totals, axis=-1, keepdims=True), 1e-30)
    return norms


def _intervals(found: Totals | None, values: Tensor) -> Tensor:
    """Return intervals H×2, no numbers where there are none."""
    return torch.full((values.shape[1], 2), torch.nan) if found is None else torch.from_numpy(found)


def head_gradients(task: Task, model: nn.Module, batches: Sequence[TrainingBatch]) -> dict[str, Tensor]:
    """Σ|∂L/∂ξ_h| / N for every head, L being the loss of an example and N the answers of all: H for each attention."""
    answers = max(1, sum(batch.count for batch in batches))
    return {name: slope.sum(0) / answers for name, slope in example_slopes(task, model, batches).items()}


def example_slopes(task: Task, model: nn.Module, batches: Sequence[TrainingBatch]) -> dict[str, Tensor]:
    """Return |∂L/∂ξ_h| of every example and head, L being the loss of the example: N×H for each attention."""
    found = attentions(model)
    parts: dict[str, list[Tensor]] = {name: [] for name in found}
    for batch in batches:
        first = next(iter(batch.tensors.values()))
        masks = {
            name: torch.ones(len(first), attention.heads, device=first.device, requires_grad=True)
            for name, attention in found.items()
            if attention.heads
        }
        with taps.watch(model, write={f"{name}.head_outputs": _times(mask) for name, mask in masks.items()}):
            loss = task.output.loss(model, batch).smoothed
        slopes = dict(zip(masks, torch.autograd.grad(loss, list(masks.values()), allow_unused=True), strict=True))
        for name, attention in found.items():
            slope = slopes.get(name)
            none = torch.zeros(len(first), attention.heads, dtype=torch.float64)
            parts[name].append(none if slope is None else slope.abs().double().cpu())
    return {name: torch.cat(some) for name, some in parts.items()}


def _times(mask: Tensor) -> Write:
    return lambda found: found * mask[:, :, None, None]  # B×H×T×K


def losses_without_heads(
    task: Task, model: nn.Module, batches: Sequence[TrainingBatch], progress: Progress | None = None
) -> tuple[float, dict[str, Tensor]]:
    """The mean loss of an answer with all heads, and with each one left out: H for each attention."""
    whole, counts, without = example_losses(task, model, batches, progress)
    answers = max(1.0, float(counts.sum()))
    return float(whole.sum()) / answers, {name: losses.sum(0) / answers for name, losses in without.items()}


@torch.no_grad()
def example_losses(
    task: Task, model: nn.Module, batches: Sequence[TrainingBatch], progress: Progress | None = None
) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Return the loss of each example N, its number of answers N, and its loss without each head N×H by attention."""
    found = attentions(model)
    wholes, counts = [], []
    parts: dict[str, list[Tensor]] = {name: [] for name in found}
    for done, batch in enumerate(batches, start=1):
        losses, asked = task.output.row_losses(model, batch)
        wholes.append(losses)
        counts.append(asked)
        for name, attention in found.items():
            without = torch.zeros(len(losses), attention.heads, dtype=torch.float64)
            for head in range(attention.heads):
                with taps.watch(model, write=scale_head(name, head, 0.0)):
                    without[:, head] = task.output.row_losses(model, batch)[0]
            parts[name].append(without)
        if progress:
            progress("leaving heads out", done, len(batches))
    return torch.cat(wholes), torch.cat(counts), {name: torch.cat(some) for name, some in parts.items()}


def every_head(model: nn.Module) -> Iterable[tuple[str, int]]:
    """Attention and number of every head of a model."""
    return ((name, head) for name, attention in attentions(model).items() for head in range(attention.heads))
