"""Whether a head looks from a word to the word it depends on, or back: each relation and direction apart.

Axes: B sentences, H heads, S tokens, W words. What is given to a word is the sum of what its tokens are given, and a
word gives the mean of what its tokens give; the end symbol is no word.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from regard.inspection.words import Matched

Direction = Literal["to head", "to dependent"]
DIRECTIONS: tuple[Direction, Direction] = ("to head", "to dependent")
"""From the dependent to its head, or from the head to its dependent."""


@dataclass(frozen=True)
class Relation:
    """A relation in one direction, and how well each head follows it."""

    name: str
    """Such as `nsubj`."""
    direction: Direction
    pairs: int
    """How many there are in the corpus."""
    offset: int
    """The most frequent offset, in words, from the word that looks to the other."""
    baseline: float
    """Share of pairs at that offset: what a head would reach that always looks there."""
    accuracy: dict[str, list[float]]
    """For each attention and head, the share of pairs where the head's maximum is on the related word."""


class Dependencies:
    """Sums over the batches of an annotated corpus, for some attentions."""

    def __init__(self, heads: dict[str, int]) -> None:
        self.heads = heads
        self.offsets: dict[str, Counter[int]] = {}
        self.hits: dict[tuple[str, str, Direction], Tensor] = {}

    def add(self, weights: dict[str, Tensor], batch: Sequence[Matched]) -> None:
        """One batch: weights B×H×S×S of each attention."""
        places = torch.tensor(
            [
                (row, dependent, word.head, dependent)
                for row, one in enumerate(batch)
                for dependent, word in enumerate(one.sentence.words)
                if word.head >= 0
            ]
        ).reshape(-1, 4)
        names = [word.relation for one in batch for word in one.sentence.words if word.head >= 0]
        for name, (_, dependent, head, _) in zip(names, places.tolist(), strict=True):
            self.offsets.setdefault(name, Counter())[head - dependent] += 1
        if not names:
            return
        known = sorted(set(names))
        number = torch.tensor([known.index(name) for name in names])
        giving, given = merging(batch, next(iter(weights.values())).shape[-1])
        real = given.sum(1) > 0  # B×W
        sentence, dependents, heads = places[:, 0], places[:, 1], places[:, 2]
        for attention, of in weights.items():
            looks = (giving[:, None] @ of @ given[:, None]).masked_fill(~real[:, None, None], -1.0).argmax(-1)  # B×H×W
            for direction, (here, there) in zip(DIRECTIONS, ((dependents, heads), (heads, dependents)), strict=True):
                right = (looks[sentence, :, here] == there[:, None]).double()  # N×H
                sums = torch.zeros(len(known), right.shape[1], dtype=torch.float64).index_add_(0, number, right)
                for name, row in zip(known, sums, strict=True):
                    key = (attention, name, direction)
                    self.hits[key] = self.hits[key] + row if key in self.hits else row

    def relations(self, least: int) -> list[Relation]:
        """What was found of relations with at least so many pairs, the most frequent first."""
        found = []
        for name, offsets in sorted(self.offsets.items(), key=lambda item: (-item[1].total(), item[0])):
            pairs = offsets.total()
            if pairs < least:
                continue
            offset, times = min(offsets.items(), key=lambda item: (-item[1], abs(item[0]), item[0]))
            for direction in DIRECTIONS:
                shares = {one: (self.hits[one, name, direction] / pairs).tolist() for one in self.heads}
                way = offset if direction == "to head" else -offset
                found.append(Relation(name, direction, pairs, way, times / pairs, shares))
        return found


def merging(batch: Sequence[Matched], tokens: int) -> tuple[Tensor, Tensor]:
    """From tokens to words: the mean of the rows B×W×S, and the sum of the columns B×S×W."""
    words = max(len(one.tokens) for one in batch)
    given = torch.zeros(len(batch), tokens, words)
    for row, one in enumerate(batch):
        for word, places in enumerate(one.tokens):
            given[row, places, word] = 1.0
    giving = given.transpose(1, 2)
    return giving / giving.sum(2, keepdim=True).clamp(min=1.0), given
