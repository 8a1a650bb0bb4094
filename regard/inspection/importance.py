"""How much a model needs each head: how its loss would move, and how it moves.

Michel et al. (2019), "Are sixteen heads really better than one?" The loss is that of the model's own shape.

Axes: B examples, H heads, T positions, K head width.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.progress import Progress
from regard.inspection.interventions import attentions, scale_head
from regard.nn import taps
from regard.nn.taps import Write
from regard.shapes.shape import Lesson, Shape


@dataclass(frozen=True)
class Importance:
    """What leaving heads out does to the loss (for each answer that is asked for), by the name of their attention."""

    loss: float
    """Of the whole model."""
    gradient: dict[str, Tensor]
    """H: the sum over examples of |∂loss/∂ξ|, ξ a factor of the head that is 1, for each answer."""
    rise: dict[str, Tensor]
    """H: how much the loss rises when the head is left out."""

    def share(self, name: str) -> Tensor:
        """The gradients of one attention's heads, as a vector of length one."""
        return F.normalize(self.gradient[name], dim=0)


def importance(
    shape: Shape[Any], model: nn.Module, lessons: Sequence[Lesson], progress: Progress | None = None
) -> Importance:
    """The importance of every head of a model, both ways."""
    gradient = gradients(shape, model, lessons)
    loss, without = absences(shape, model, lessons, progress)
    return Importance(loss, gradient, {name: losses - loss for name, losses in without.items()})


def gradients(shape: Shape[Any], model: nn.Module, lessons: Sequence[Lesson]) -> dict[str, Tensor]:
    """Σ|∂L/∂ξ_h| / N for every head, L being the loss of an example and N the answers of all: H for each attention."""
    found = attentions(model)
    sums = {name: torch.zeros(one.heads, dtype=torch.float64) for name, one in found.items()}
    for lesson in lessons:
        first = next(iter(lesson.tensors.values()))
        masks = {
            name: torch.ones(len(first), one.heads, device=first.device, requires_grad=True)
            for name, one in found.items()
            if one.heads
        }
        with taps.watch(model, write={f"{name}.head_outputs": _times(mask) for name, mask in masks.items()}):
            loss = shape.loss(model, lesson).smoothed
        slopes = torch.autograd.grad(loss, list(masks.values()), allow_unused=True)
        for name, slope in zip(masks, slopes, strict=True):
            sums[name] += 0.0 if slope is None else slope.abs().sum(0).double().cpu()
    answers = max(1, sum(lesson.count for lesson in lessons))
    return {name: total / answers for name, total in sums.items()}


def _times(mask: Tensor) -> Write:
    return lambda found: found * mask[:, :, None, None]  # B×H×T×K


@torch.no_grad()
def absences(
    shape: Shape[Any], model: nn.Module, lessons: Sequence[Lesson], progress: Progress | None = None
) -> tuple[float, dict[str, Tensor]]:
    """The mean loss of an answer with all heads, and with each one left out: H for each attention."""
    sums = {name: torch.zeros(one.heads, dtype=torch.float64) for name, one in attentions(model).items()}
    whole = 0.0
    for done, lesson in enumerate(lessons, start=1):
        whole += shape.loss(model, lesson).nll.item()
        for name, head in every_head(model):
            with taps.watch(model, write=scale_head(name, head, 0.0)):
                sums[name][head] += shape.loss(model, lesson).nll.item()
        if progress:
            progress("leaving heads out", done, len(lessons))
    answers = max(1, sum(lesson.count for lesson in lessons))
    return whole / answers, {name: total / answers for name, total in sums.items()}


def every_head(model: nn.Module) -> Iterable[tuple[str, int]]:
    """Attention and number of every head of a model."""
    return ((name, head) for name, one in attentions(model).items() for head in range(one.heads))
