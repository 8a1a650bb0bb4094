"""How much a model needs each head: how its loss would move, and how it moves.

Michel et al. (2019), "Are sixteen heads really better than one?"

Axes: B sentences, H heads, T target positions, K head width, V vocabulary.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.progress import Progress
from regard.inspection.interventions import attentions, scale_head
from regard.models import Model
from regard.nn import taps
from regard.nn.taps import Write
from regard.text.specials import PAD
from regard.training.objective import batch_loss

Pairs = Sequence[tuple[Tensor, Tensor]]
"""Batches of sources B×S (with EOS, padded) and targets B×T+1 (BOS, tokens, EOS, padding)."""


@dataclass(frozen=True)
class Importance:
    """What leaving heads out does to the loss (nats a target token), by the name of their attention."""

    loss: float
    """Of the whole model."""
    gradient: dict[str, Tensor]
    """H: the mean over sentences of |∂loss/∂ξ|, ξ a factor of the head that is 1."""
    rise: dict[str, Tensor]
    """H: how much the loss rises when the head is left out."""

    def share(self, name: str) -> Tensor:
        """The gradients of one attention's heads, as a vector of length one."""
        return F.normalize(self.gradient[name], dim=0)


def importance(model: Model, pairs: Pairs, progress: Progress | None = None) -> Importance:
    """The importance of every head of a model, both ways."""
    gradient = gradients(model, pairs)
    loss, without = absences(model, pairs, progress)
    return Importance(loss, gradient, {name: losses - loss for name, losses in without.items()})


def gradients(model: Model, pairs: Pairs) -> dict[str, Tensor]:
    """E|∂L/∂ξ_h| for every head, L being the mean loss of a sentence's tokens: H for each attention."""
    found = attentions(model)
    sums = {name: torch.zeros(one.heads, dtype=torch.float64) for name, one in found.items()}
    sentences = 0
    for source, target in pairs:
        masks = {name: torch.ones(len(source), one.heads, requires_grad=True) for name, one in found.items()}
        masks = {name: mask.to(source.device).detach().requires_grad_() for name, mask in masks.items() if mask.numel()}
        write = {f"{name}.head_outputs": _times(mask) for name, mask in masks.items()}
        with taps.watch(model, write=write):
            logits = model(source, target[:, :-1])  # B×T×V
        wanted = target[:, 1:]
        surprise = F.cross_entropy(logits.transpose(1, 2), wanted, ignore_index=PAD, reduction="none")  # B×T
        loss = (surprise.sum(1) / (wanted != PAD).sum(1)).sum()
        for name, slope in zip(masks, torch.autograd.grad(loss, list(masks.values())), strict=True):
            sums[name] += slope.abs().sum(0).double().cpu()
        sentences += len(source)
    return {name: total / max(1, sentences) for name, total in sums.items()}


def _times(mask: Tensor) -> Write:
    return lambda found: found * mask[:, :, None, None]  # B×H×T×K


@torch.no_grad()
def absences(model: Model, pairs: Pairs, progress: Progress | None = None) -> tuple[float, dict[str, Tensor]]:
    """The mean loss of a target token with all heads, and with each one left out: H for each attention.

    The source is read once for all heads of the decoder.
    """
    found = attentions(model)
    whole, tokens = 0.0, 0
    sums = {name: torch.zeros(one.heads, dtype=torch.float64) for name, one in found.items()}
    for done, (source, target) in enumerate(pairs, start=1):
        inputs, outputs = target[:, :-1], target[:, 1:]
        memory = model.encode(source)
        part = batch_loss(model, model.decode(memory, inputs), outputs)
        whole, tokens = whole + part.nll.item(), tokens + part.tokens
        for name, head in every_head(model):
            with taps.watch(model, write=scale_head(name, head, 0.0)):
                seen = model.encode(source) if name.startswith("encoder.") else memory
                sums[name][head] += batch_loss(model, model.decode(seen, inputs), outputs).nll.item()
        if progress:
            progress("leaving heads out", done, len(pairs))
    return whole / max(1, tokens), {name: total / max(1, tokens) for name, total in sums.items()}


def every_head(model: Model) -> Iterable[tuple[str, int]]:
    """Attention and number of every head of a model."""
    return ((name, head) for name, one in attentions(model).items() for head in range(one.heads))
