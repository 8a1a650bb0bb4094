"""Rows that share a source: its keys and values are stored once for all of them.

Axes: B source rows, R rows that use them, N the largest number of rows that share one, D width.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class SourceRows:
    """Maps rows, such as those of a beam, to the source rows that they share."""

    owners: Tensor
    """The source row of each row: R."""
    count: int
    """The number of source rows: B."""

    def select(self, rows: Tensor) -> Self:
        """Return the map of these rows in this order; rows may repeat."""
        return type(self)(self.owners.index_select(0, rows), self.count)

    @cached_property
    def _sizes(self) -> Tensor:
        """The number of rows that share each source row: B."""
        return torch.bincount(self.owners, minlength=self.count)

    def in_use(self) -> Tensor | None:
        """Return the source rows still in use once at least a quarter is unused; `None` before."""
        if self.count == 1 and len(self.owners):
            return None
        used = self._sizes.nonzero()[:, 0]
        return used if 4 * len(used) <= 3 * self.count else None

    def restricted_to(self, kept: Tensor) -> Self:
        """Return the map of the same rows after the source rows have been reduced to `kept`."""
        places = self.owners.new_zeros(self.count)
        places[kept] = torch.arange(len(kept), device=kept.device)
        return type(self)(places.index_select(0, self.owners), len(kept))

    @cached_property
    def _slots(self) -> tuple[Tensor | None, Tensor, int]:
        """The slot of each row among B·N (`None`: all in order), the row of each slot, and N."""
        if self.count == 1:  # all rows share the one source, as in a search for one sentence
            return None, self.owners, len(self.owners)
        most = int(self._sizes.max()) if len(self.owners) else 0
        order = self.owners.argsort(stable=True)
        before = self._sizes.cumsum(0) - self._sizes  # B: number of rows of all source rows before
        ordered = self.owners[order]
        slots = torch.empty_like(self.owners)
        slots[order] = ordered * most + torch.arange(len(order), device=order.device) - before[ordered]
        places = torch.arange(self.count * most, device=order.device)
        rows = torch.zeros_like(places).index_copy_(0, slots, places[: len(slots)])
        return (None if torch.equal(slots, places) else slots), rows, most

    def group(self, states: Tensor) -> Tensor:
        """Group vectors R×1×D by source row: B×N×D. The content of empty slots is arbitrary."""
        slots, rows, most = self._slots
        placed = states[:, 0] if slots is None else states[:, 0].index_select(0, rows)  # B·N×D
        return placed.view(self.count, most, -1)

    def ungroup(self, states: Tensor) -> Tensor:
        """Return grouped vectors B×N×D in the order of rows: R×1×D."""
        slots, _, _ = self._slots
        every = states.flatten(0, 1)
        return (every if slots is None else every.index_select(0, slots))[:, None]
