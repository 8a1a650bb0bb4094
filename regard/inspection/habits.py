"""Where heads look most, counted over a corpus: how surely, at which offset, at which tokens.

Axes: B sentences, H heads, T rows (tokens that look), S columns (tokens that are looked at). Special symbols are left
out on both sides: a row counts if it belongs to a real token, and its maximum is taken over the real tokens that it may
look at: in a decoder those before it, and itself.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

COMMON = 500
"""A sentence has a rare token if its rarest one is not among so many most frequent ones (Voita et al., 2019)."""


@dataclass(frozen=True)
class Rarity:
    """The rarest tokens of some sentences."""

    counts: Tensor
    """B: whether the sentence's rarest token is rare at all."""
    rarest: Tensor
    """B×S: true where the rarest token stands."""
    two: Tensor
    """B×S: true where one of the two rarest stands."""


class Frequencies:
    """How often each token occurred in the training data."""

    def __init__(self, counts: NDArray[np.int64]) -> None:
        self.counts = torch.from_numpy(counts)
        order = torch.argsort(self.counts, descending=True, stable=True)
        self.ranks = torch.empty_like(order)
        self.ranks[order] = torch.arange(len(order))

    def rarity(self, ids: Tensor, real: Tensor) -> Rarity:
        """The rarest tokens of sentences B×S, looked for where `real` is true."""
        ranks = self.ranks[ids].masked_fill(~real, -1)  # B×S
        first = ranks.amax(1)  # B
        rarest = ranks == first[:, None]
        second = ranks.masked_fill(rarest, -1).amax(1)
        two = rarest | ((ranks == second[:, None]) & (second >= 0)[:, None])
        return Rarity(first >= COMMON, rarest, two & real)


class Habits:
    """Sums over the batches of a corpus, for the heads of one attention."""

    def __init__(self, heads: int) -> None:
        self.heads = heads
        self.rows = 0
        self.surest = torch.zeros(heads, dtype=torch.float64)
        self.offsets: list[Counter[int]] = [Counter() for _ in range(heads)]
        self.same = torch.zeros(heads, dtype=torch.float64)
        self.rare_rows = 0
        self.rare = torch.zeros(heads, dtype=torch.float64)
        self.two = torch.zeros(heads, dtype=torch.float64)
        self.chance = 0.0
        self._reachable: Counter[int] = Counter()

    def add(
        self,
        weights: Tensor,
        seen: Tensor,
        same: Tensor | None = None,
        rarity: Rarity | None = None,
        *,
        ordered: bool = True,
    ) -> None:
        """One batch: weights B×H×T×S, where a row may look B×T×S, and where the tokens are equal B×T×S (`same`).

        Offsets are counted where rows and columns are `ordered` alike. The rarest token is asked for by the rows that
        see it.
        """
        if not self.heads:
            return
        longest = weights.shape[2]
        counted = seen.any(-1)  # B×T
        value, place = weights.masked_fill(~seen[:, None], -1.0).max(-1)  # B×H×T
        each = counted[:, None].expand_as(value)  # B×H×T
        self.rows += int(counted.sum())
        self.surest += (value.double() * each).sum((0, 2))
        if ordered:
            offset = place - torch.arange(longest)  # B×H×T
            for head in range(self.heads):
                self.offsets[head].update(offset[:, head][counted].tolist())
            cells = seen.sum(0)  # T×S
            for way in range(1 - longest, cells.shape[1]):
                self._reachable[way] += int(cells.diagonal(way).sum())
        if same is not None:
            equal = same[:, None].expand(-1, self.heads, -1, -1).gather(3, place[..., None])[..., 0]
            self.same += (equal & each).sum((0, 2))
        if rarity is not None:
            visible = (seen & rarity.rarest[:, None]).any(-1) & rarity.counts[:, None]  # B×T
            asked = visible[:, None].expand_as(value)
            self.rare += (_at(rarity.rarest, place) & asked).sum((0, 2))
            self.two += (_at(rarity.two, place) & asked).sum((0, 2))
            self.rare_rows += int(visible.sum())
            share = (seen & rarity.two[:, None]).sum(-1) / seen.sum(-1).clamp(min=1)  # B×T
            self.chance += float(share[visible].sum())

    def best_offset(self, head: int) -> tuple[int, int]:
        """The offset at which a head looks most often, and how often; the nearer one of equals."""
        return max(self.offsets[head].items(), key=lambda item: (item[1], -abs(item[0])), default=(0, 0))

    def reachable(self, offset: int) -> int:
        """How many rows have a column at this offset."""
        return self._reachable[offset]


def _at(mask: Tensor, place: Tensor) -> Tensor:
    """What a mask B×S says at places B×H×T."""
    return mask[:, None].expand(-1, place.shape[1], -1).gather(2, place)


def equal_tokens(rows: Tensor, columns: Tensor, texts: tuple[Sequence[str], Sequence[str]] | None = None) -> Tensor:
    """True where the token of a row (ids B×T) is that of a column (B×S); `texts` where the vocabularies differ."""
    if texts is not None:
        known = {text: number for number, text in enumerate(texts[1])}
        mapped = torch.tensor([known.get(text, -1) for text in texts[0]])
        rows = mapped[rows]
    return rows[:, :, None] == columns[:, None, :]
