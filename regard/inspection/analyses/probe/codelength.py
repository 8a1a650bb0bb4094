"""Minimum description length of labels given states, by online coding (Voita and Titov, 2020). All lengths in bits.

A state that holds a property openly lets a probe learn it from few words, and the rest then costs few bits; accuracy
at the end of training does not tell how much effort it took.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from regard.inspection.probes import Examples, Probes, train_probes
from regard.metrics.intervals import Interval, ratio_intervals

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
    intervals: list[Interval | None]
    """95 % intervals of `bits`, by a bootstrap over the sentences that are coded; the probes stay as they are."""
    data_intervals: list[Interval | None]
    """The same of `data`."""

    @property
    def compression(self) -> list[float]:
        """How many times shorter than the uniform code."""
        return [self.uniform / bits if bits else math.inf for bits in self.bits]

    @property
    def compression_intervals(self) -> list[Interval | None]:
        """95 % intervals of `compression`: those of `bits`, turned round."""
        return [
            None if ends is None else (self.uniform / max(ends[1], 1.0), self.uniform / max(ends[0], 1.0))
            for ends in self.intervals  # a code has at least one bit
        ]


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
    starts: Sequence[int],
    trained: Callable[[int], None] = lambda words: None,
) -> CodeLength:
    """The online code of the training words, cut at `ends`; `last` are the probes trained on all of them.

    `starts` are the words that sentences begin with. `trained` is called with the number of words
    that each further probe has been trained on.
    """
    per_word = math.log2(labels)
    parts = [torch.full((len(train.states), ends[0]), per_word, dtype=torch.float64)]  # L×words of each block
    for start, end in pairwise(ends):
        probes = train_probes(train.first(start), stop, labels, hidden)
        parts.append(_bits(probes, train.between(start, end)))
        trained(start)
    bits, data = torch.cat(parts, dim=1), _bits(last, train)  # L×N
    return CodeLength(
        bits.sum(1).tolist(),
        data.sum(1).tolist(),
        len(train) * per_word,
        _intervals(bits, starts),
        _intervals(data, starts),
    )


def _bits(probes: Probes, examples: Examples) -> Tensor:
    """−log₂ p(label) of every word in every layer: L×N. Losses are in nats; a bit is ln 2 of them."""
    return probes.losses(examples).double() / math.log(2)


def _intervals(bits: Tensor, starts: Sequence[int]) -> list[Interval | None]:
    """Return the 95 % intervals of the bits L×N of all words, by a bootstrap over sentences.

    Resamples differ in their number of words, so it is the mean over words that is estimated, times their number.
    """
    sums = np.add.reduceat(bits.numpy(), list(starts), axis=1).T  # sentences × L
    lengths = np.diff([*starts, bits.shape[1]])[:, None]
    found = ratio_intervals(sums, lengths)
    if found is None:
        return [None] * len(bits)
    count = bits.shape[1]
    return [(max(0.0, float(low) * count), float(high) * count) for low, high in found]
