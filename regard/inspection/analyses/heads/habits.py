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

from regard.metrics.intervals import ratio_intervals

COMMON = 500
"""A sentence has a rare token if its rarest one is not among this many most frequent ones (Voita et al., 2019)."""


@dataclass(frozen=True)
class Rarity:
    """The rarest tokens of some sentences."""

    counts: Tensor
    """B: whether the sentence's rarest token is rare at all."""
    rarest: Tensor
    """B×S: true at the rarest token."""
    two: Tensor
    """B×S: true at the two rarest tokens."""


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


_NOWHERE = 32767
"""An offset that no head can look at: rows that do not count."""


@dataclass
class _Sentences:
    """What was counted in each sentence of a batch: what intervals are made of."""

    rows: Tensor
    """B."""
    surest: Tensor
    """B×H."""
    same: Tensor
    two: Tensor
    rare_rows: Tensor
    """B."""
    offsets: Tensor | None = None
    """B×H×T."""
    reachable: Tensor | None = None
    """B×ways: how many rows have a column at each offset, from `first_way` on."""
    first_way: int = 0

    def at_offsets(self, best: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return how often each head looked at its offset, and how often it could have: B×H and B×H."""
        if self.offsets is None or self.reachable is None:
            return torch.zeros_like(self.surest), torch.zeros_like(self.surest)
        wanted = torch.tensor(best, dtype=torch.int16)
        hits = (self.offsets == wanted[None, :, None]).sum(2).double()
        places = [offset - self.first_way for offset in best]
        none = torch.zeros(len(self.rows), dtype=torch.int16)
        inside = range(self.reachable.shape[1])
        possible = [self.reachable[:, position] if position in inside else none for position in places]
        return hits, torch.stack(possible, dim=1).double()


class HeadHabits:
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
        self._sentences: list[_Sentences] = []
        self._intervals: dict[str, Tensor] | None = None

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
        self._intervals = None
        longest = weights.shape[2]
        counted = seen.any(-1)  # B×T
        value, column = weights.masked_fill(~seen[:, None], -1.0).max(-1)  # B×H×T
        counts = counted[:, None].expand_as(value)  # B×H×T
        self.rows += int(counted.sum())
        surest = (value.double() * counts).sum(2)  # B×H
        self.surest += surest.sum(0)
        nothing = torch.zeros_like(surest)
        kept = _Sentences(counted.sum(1), surest, nothing, nothing, torch.zeros(len(counted)))
        if ordered:
            offset = column - torch.arange(longest)  # B×H×T
            for head in range(self.heads):
                self.offsets[head].update(offset[:, head][counted].tolist())
            ways = range(1 - longest, seen.shape[2])
            reachable = torch.stack([seen.diagonal(way, 1, 2).sum(1) for way in ways], dim=1)  # B×ways
            for way, times in zip(ways, reachable.sum(0).tolist(), strict=True):
                self._reachable[way] += times
            kept.offsets = offset.masked_fill(~counts, _NOWHERE).to(torch.int16)
            kept.reachable, kept.first_way = reachable.to(torch.int16), ways.start
        if same is not None:
            equal = same[:, None].expand(-1, self.heads, -1, -1).gather(3, column[..., None])[..., 0]
            kept.same = (equal & counts).sum(2).double()
            self.same += kept.same.sum(0)
        if rarity is not None:
            visible = (seen & rarity.rarest[:, None]).any(-1) & rarity.counts[:, None]  # B×T
            asked = visible[:, None].expand_as(value)
            self.rare += (_at(rarity.rarest, column) & asked).sum((0, 2))
            kept.two, kept.rare_rows = (_at(rarity.two, column) & asked).sum(2).double(), visible.sum(1)
            self.two += kept.two.sum(0)
            self.rare_rows += int(visible.sum())
            share = (seen & rarity.two[:, None]).sum(-1) / seen.sum(-1).clamp(min=1)  # B×T
            self.chance += float(share[visible].sum())
        self._sentences.append(kept)

    def intervals(self) -> dict[str, Tensor] | None:
        """Return 95 % intervals (H×2) of the shares of all heads by a bootstrap over sentences; `None` of one alone.

        `confidence`, `of_possible` (the share at the best offset), `same` and `two_rarest`.
        """
        if not self.heads or not self._sentences:
            return None
        if self._intervals is not None:
            return self._intervals
        rows = torch.cat([sentence.rows for sentence in self._sentences]).double()[:, None]  # N×1
        rare = torch.cat([sentence.rare_rows for sentence in self._sentences]).double()[:, None]  # N×1
        best = [self.best_offset(head)[0] for head in range(self.heads)]
        at = [sentence.at_offsets(best) for sentence in self._sentences]
        parts = [
            torch.cat([sentence.surest for sentence in self._sentences]),
            torch.cat([hits for hits, _ in at]),
            torch.cat([sentence.same for sentence in self._sentences]),
            torch.cat([sentence.two for sentence in self._sentences]),
        ]
        like = torch.ones(1, self.heads, dtype=torch.float64)
        wholes = [rows * like, torch.cat([possible for _, possible in at]), rows * like, rare * like]
        found = ratio_intervals(torch.cat(parts, dim=1).numpy(), torch.cat(wholes, dim=1).numpy())
        if found is None:
            return None
        intervals = torch.from_numpy(found).view(len(parts), self.heads, 2)
        self._intervals = dict(zip(("confidence", "of_possible", "same", "two_rarest"), intervals, strict=True))
        return self._intervals

    def best_offset(self, head: int) -> tuple[int, int]:
        """The offset at which a head looks most often, and how often; the nearer one of equals."""
        return max(self.offsets[head].items(), key=lambda item: (item[1], -abs(item[0])), default=(0, 0))

    def reachable(self, offset: int) -> int:
        """How many rows have a column at this offset."""
        return self._reachable[offset]


def _at(mask: Tensor, column: Tensor) -> Tensor:
    """What a mask B×S says at places B×H×T."""
    return mask[:, None].expand(-1, column.shape[1], -1).gather(2, column)


def equal_tokens(rows: Tensor, columns: Tensor, texts: tuple[Sequence[str], Sequence[str]] | None = None) -> Tensor:
    """True where the token of a row (ids B×T) is that of a column (B×S); `texts` where the vocabularies differ."""
    if texts is not None:
        known = {text: number for number, text in enumerate(texts[1])}
        mapped = torch.tensor([known.get(text, -1) for text in texts[0]])
        rows = mapped[rows]
    return rows[:, :, None] == columns[:, None, :]
