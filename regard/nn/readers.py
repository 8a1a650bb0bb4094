"""Several rows that look into the same: what is remembered of a source is kept once, however many rows read it.

Axes: B rows remembered, R rows that read, N seats, D width.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class Readers:
    """Which of B remembered rows each of R rows reads; those that read the same sit side by side on N seats."""

    owners: Tensor
    """The remembered row of each reader: R."""
    remembered: int
    """B."""

    def select(self, rows: Tensor) -> Self:
        """These readers only, in this order, repeats allowed."""
        return type(self)(self.owners.index_select(0, rows), self.remembered)

    @cached_property
    def _counts(self) -> Tensor:
        """How many read each remembered row: B."""
        return torch.bincount(self.owners, minlength=self.remembered)

    def few(self) -> Tensor | None:
        """The remembered rows that have readers, once a good part of them has none."""
        read = self._counts.nonzero()[:, 0]
        return read if 4 * len(read) <= 3 * self.remembered else None

    def of(self, kept: Tensor) -> Self:
        """The same readers, of what is left when only the remembered rows `kept` are."""
        places = self.owners.new_zeros(self.remembered)
        places[kept] = torch.arange(len(kept), device=kept.device)
        return type(self)(places.index_select(0, self.owners), len(kept))

    @cached_property
    def _seats(self) -> tuple[Tensor | None, Tensor, int]:
        """Where each reader sits among B·N seats (`None`: each on its own, in order), who sits on each, and N."""
        most = int(self._counts.max()) if len(self.owners) else 0
        order = self.owners.argsort(stable=True)
        before = self._counts.cumsum(0) - self._counts  # B: readers of the rows before
        ordered = self.owners[order]
        seats = torch.empty_like(self.owners)
        seats[order] = ordered * most + torch.arange(len(order), device=order.device) - before[ordered]
        places = torch.arange(self.remembered * most, device=order.device)
        sitting = torch.zeros_like(places).index_copy_(0, seats, places[: len(seats)])
        return (None if torch.equal(seats, places) else seats), sitting, most

    def seated(self, states: Tensor) -> Tensor:
        """Vectors R×1×D of readers as B×N×D; on empty seats it does not matter what stands there."""
        seats, sitting, most = self._seats
        sat = states[:, 0] if seats is None else states[:, 0].index_select(0, sitting)  # B·N×D
        return sat.view(self.remembered, most, -1)

    def risen(self, states: Tensor) -> Tensor:
        """Vectors B×N×D of seats as R×1×D of their readers."""
        seats, _, _ = self._seats
        every = states.flatten(0, 1)
        return (every if seats is None else every.index_select(0, seats))[:, None]
