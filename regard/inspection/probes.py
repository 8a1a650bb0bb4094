"""Probes: small classifiers on frozen states, one for each layer, all trained together.

Axes: L layers, N words, D width, C labels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

LEARNING_RATE = 1e-3
EPOCHS = 30
PATIENCE = 2
"""Epochs without gain on the stopping set (in any layer) before training ends."""
SCORED = 8192
"""Words scored at a time."""

Loss = Callable[[Tensor, Tensor], Tensor]
"""(outputs L×N×C, answers) → the loss of each word in each layer: L×N."""


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """−ln p of each label N under logits L×N×C: L×N."""
    layers, count, _ = logits.shape
    return F.cross_entropy(logits.flatten(0, 1), labels.repeat(layers), reduction="none").view(layers, count)


def squared_error(found: Tensor, wanted: Tensor) -> Tensor:
    """The mean squared difference of vectors L×N×E from those wanted N×E: L×N."""
    return (found - wanted).square().mean(-1)


@dataclass(frozen=True)
class Examples:
    """Words with their labels."""

    states: Tensor
    """L×N×D."""
    labels: Tensor
    """N: class numbers; N×E if vectors are predicted."""

    def __len__(self) -> int:
        return len(self.labels)

    def first(self, count: int) -> "Examples":
        """Return the first words."""
        return Examples(self.states[:, :count], self.labels[:count])

    def between(self, start: int, end: int) -> "Examples":
        """The words from one place to before another."""
        return Examples(self.states[:, start:end], self.labels[start:end])


class Probes:
    """L classifiers with one parameter axis for the layers: softmax(W x + b), or softmax(W₂ relu(W₁ x + b₁) + b₂).

    The layers share nothing but their first weights: trained together they become what each would become alone.
    """

    def __init__(
        self, layers: int, width: int, labels: int, hidden: int | None, seed: int = 0, loss: Loss = cross_entropy
    ) -> None:
        self.loss = loss
        generator = torch.Generator().manual_seed(seed)
        sizes = [width, labels] if hidden is None else [width, hidden, labels]
        self.parameters: list[Tensor] = []
        for wide, out in pairwise(sizes):
            bound = wide**-0.5
            weight = (torch.rand(wide, out, generator=generator) * 2 - 1) * bound
            self.parameters.append(weight.repeat(layers, 1, 1))  # L×D×C
            self.parameters.append(torch.zeros(layers, 1, out))  # L×1×C

    def __call__(self, states: Tensor) -> Tensor:
        """Logits L×N×C of states L×N×D."""
        for index in range(0, len(self.parameters), 2):
            states = states.relu() if index else states
            states = torch.baddbmm(self.parameters[index + 1], states, self.parameters[index])
        return states

    @torch.no_grad()
    def losses(self, examples: Examples) -> Tensor:
        """−ln p(label) of every word in every layer: L×N."""
        parts = []
        for start in range(0, len(examples), SCORED):
            some = examples.between(start, min(start + SCORED, len(examples)))
            parts.append(self.loss(self(some.states), some.labels))
        return torch.cat(parts, dim=1) if parts else torch.zeros(len(examples.states), 0)

    @torch.no_grad()
    def guesses(self, states: Tensor) -> Tensor:
        """The likeliest label of every word in every layer: L×N."""
        parts = [self(states[:, start : start + SCORED]).argmax(-1) for start in range(0, states.shape[1], SCORED)]
        return torch.cat(parts, dim=1) if parts else torch.zeros(len(states), 0, dtype=torch.long)

    def accuracy(self, examples: Examples) -> list[float]:
        """The share of words whose label is found, layer by layer."""
        right: list[float] = (self.guesses(examples.states) == examples.labels).double().mean(1).tolist()
        return right


def train_probes(
    train: Examples, stop: Examples, labels: int, hidden: int | None, *, seed: int = 0, loss: Loss = cross_entropy
) -> Probes:
    """Probes fitted by Adam; each layer keeps its parameters of its best epoch on the stopping set.

    Batches grow with the data, from 16 to 256 words, so that a few words give as many steps as many words do.
    """
    layers, _, width = train.states.shape
    probes = Probes(layers, width, labels, hidden, seed, loss)
    generator = torch.Generator().manual_seed(seed)
    size = max(16, min(256, len(train) // 50))
    for parameter in probes.parameters:
        parameter.requires_grad_(True)
    optimizer = torch.optim.Adam(probes.parameters, lr=LEARNING_RATE, fused=True)
    best = probes.losses(stop).mean(1)  # L
    kept = [parameter.detach().clone() for parameter in probes.parameters]
    waited = 0
    for _ in range(EPOCHS):
        order = torch.randperm(len(train), generator=generator)
        for start in range(0, len(train), size):
            rows = order[start : start + size]
            total = loss(probes(train.states[:, rows]), train.labels[rows]).mean(1).sum()
            optimizer.zero_grad()
            total.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        now = probes.losses(stop).mean(1)  # L
        better = now < best
        best = torch.where(better, now, best)
        for parameter, copy in zip(probes.parameters, kept, strict=True):
            copy[better] = parameter.detach()[better]
        waited = 0 if bool(better.any()) else waited + 1
        if waited >= PATIENCE:
            break
    probes.parameters = kept
    return probes
