"""Whether a head looks from a word to the word it depends on, or back: each relation and direction apart.

Axes: B sentences, H heads, S tokens, W words. What is given to a word is the sum of what its tokens are given, and a
word gives the mean of what its tokens give; the end symbol is no word. Where a word sees only those before it, only
pairs count whose other word comes before.
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
    """How many there are in the corpus, that can be seen."""
    offset: int
    """The most frequent offset, in words, from the word that looks to the other."""
    baseline: float
    """Share of pairs at that offset: what a head would reach that always looks there."""
    accuracy: dict[str, list[float]]
    """For each attention and head, the share of pairs where the head's maximum is on the related word."""


class Dependencies:
    """Sums over the batches of an annotated corpus, for some attentions."""

    def __init__(self, heads: dict[str, int], *, causal: bool = False) -> None:
        self.heads, self.causal = heads, causal
        self.offsets: dict[tuple[str, Direction], Counter[int]] = {}
        self.hits: dict[tuple[str, str, Direction], Tensor] = {}

    def add(self, weights: dict[str, Tensor], batch: Sequence[Matched]) -> None:
        """One batch: weights B×H×S×S of each attention."""
        found = [
            (word.relation, row, dependent, word.head)
            for row, one in enumerate(batch)
            for dependent, word in enumerate(one.sentence.words)
            if word.head >= 0
        ]
        pairs: dict[Direction, list[tuple[str, int, int, int]]] = {  # relation, sentence, from, to
            "to head": [(name, row, dependent, head) for name, row, dependent, head in found],
            "to dependent": [(name, row, head, dependent) for name, row, dependent, head in found],
        }
        giving, given = merging(batch, next(iter(weights.values())).shape[-1])
        real = given.sum(1) > 0  # B×W
        looks = {
            attention: (giving[:, None] @ of @ given[:, None]).masked_fill(~real[:, None, None], -1.0).argmax(-1)
            for attention, of in weights.items()
        }  # B×H×W each
        for direction, every in pairs.items():
            some = [one for one in every if not self.causal or one[3] < one[2]]
            if some:
                self._count(direction, some, looks)

    def _count(self, direction: Direction, pairs: list[tuple[str, int, int, int]], looks: dict[str, Tensor]) -> None:
        """The pairs (relation, sentence, from, to) of one direction, and where heads B×H×W look from each word."""
        for name, _, one, other in pairs:
            self.offsets.setdefault((name, direction), Counter())[other - one] += 1
        known = sorted({name for name, *_ in pairs})
        number = torch.tensor([known.index(name) for name, *_ in pairs])
        sentence, here, there = torch.tensor([one[1:] for one in pairs]).unbind(1)
        for attention, at in looks.items():
            right = (at[sentence, :, here] == there[:, None]).double()  # N×H
            sums = torch.zeros(len(known), right.shape[1], dtype=torch.float64).index_add_(0, number, right)
            for name, row in zip(known, sums, strict=True):
                key = (attention, name, direction)
                self.hits[key] = self.hits[key] + row if key in self.hits else row

    def relations(self, least: int) -> list[Relation]:
        """What was found of relations with at least so many pairs, the most frequent first."""
        found = []
        totals: Counter[str] = Counter()
        for (name, _), offsets in self.offsets.items():
            totals[name] += offsets.total()
        for name in sorted(totals, key=lambda name: (-totals[name], name)):
            for direction in DIRECTIONS:
                offsets = self.offsets.get((name, direction), Counter())
                pairs = offsets.total()
                if pairs < least:
                    continue
                sign = 1 if direction == "to head" else -1  # of equals, the same pair of words both ways
                offset, times = min(offsets.items(), key=lambda item: (-item[1], abs(item[0]), sign * item[0]))
                shares = {one: (self.hits[one, name, direction] / pairs).tolist() for one in self.heads}
                found.append(Relation(name, direction, pairs, offset, times / pairs, shares))
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
