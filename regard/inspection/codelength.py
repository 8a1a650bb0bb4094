"""Minimum description length of labels given states, by online coding (Voita and Titov, 2020). All lengths in bits.

A state that holds a property openly lets a probe learn it from few words, and the rest then costs few bits; accuracy
at the end of training does not tell how much effort it took.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from regard.inspection.probes import Examples, Probes, train_probes

FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""How much of the data each code has been learned from before it writes the next block."""


@dataclass(frozen=True)
class CodeLength:
    """What it costs to send the labels to somebody who has the states."""

    bits: list[float]
    """Layer by layer: t₁ log₂ C for the first block, −Σ log₂ p(label) for the others by the probe learned before."""
    data: list[float]
    """What the labels cost under the last probe: the rest of `bits` is what it took to find that probe."""
    uniform: float
    """N log₂ C: the cost without states and without learning."""

    @property
    def compression(self) -> list[float]:
        """How many times shorter than the uniform code."""
        return [self.uniform / bits if bits else math.inf for bits in self.bits]


def blocks(starts: Sequence[int], count: int) -> list[int]:
    """Where the blocks end: the fractions of `count` words, moved to the nearest beginning of a sentence.

    No sentence is split between what was learned from and what is coded; blocks that would be empty are left out.
    """
    edges = [start for start in starts if start] + [count]
    ends = {min(edges, key=lambda edge: (abs(edge - fraction * count), edge)) for fraction in FRACTIONS}
    return sorted(ends)


def online_code(
    train: Examples,
    stop: Examples,
    ends: Sequence[int],
    labels: int,
    hidden: int | None,
    last: Probes,
    *,
    trained: Callable[[int], None] = lambda words: None,
) -> CodeLength:
    """The online code of the training words, cut at `ends`; `last` are the probes trained on all of them.

    `trained` is told from how many words each further probe has been learned.
    """
    per_word = math.log2(labels)
    bits = torch.full((len(train.states),), ends[0] * per_word, dtype=torch.float64)  # L
    for start, end in pairwise(ends):
        probes = train_probes(train.first(start), stop, labels, hidden)
        bits += _bits(probes, train.between(start, end))
        trained(start)
    return CodeLength(bits.tolist(), _bits(last, train).tolist(), len(train) * per_word)


def _bits(probes: Probes, examples: Examples) -> Tensor:
    """−Σ log₂ p(label), layer by layer: L. Losses are in nats; a bit is ln 2 of them."""
    return probes.losses(examples).double().sum(1) / math.log(2)
