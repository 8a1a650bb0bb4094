"""Several rows that share a source: its keys and values are stored once, however many rows look at them.

Axes: B rows of the source, R rows that look at it, N the most rows that share one, D width.
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
    """How many source rows there are: B."""

    def select(self, rows: Tensor) -> Self:
        """These rows only, in this order, repeats allowed."""
        return type(self)(self.owners.index_select(0, rows), self.count)

    @cached_property
    def _sizes(self) -> Tensor:
        """How many rows share each source row: B."""
        return torch.bincount(self.owners, minlength=self.count)

    def in_use(self) -> Tensor | None:
        """The source rows that are still looked at, once at least a quarter is not; `None` before."""
        used = self._sizes.nonzero()[:, 0]
        return used if 4 * len(used) <= 3 * self.count else None

    def restricted_to(self, kept: Tensor) -> Self:
        """The same rows, when only the source rows `kept` are left."""
        places = self.owners.new_zeros(self.count)
        places[kept] = torch.arange(len(kept), device=kept.device)
        return type(self)(places.index_select(0, self.owners), len(kept))

    @cached_property
    def _slots(self) -> tuple[Tensor | None, Tensor, int]:
        """The slot of each row among B·N (`None`: all in order), the row of each slot, and N."""
        most = int(self._sizes.max()) if len(self.owners) else 0
        order = self.owners.argsort(stable=True)
        before = self._sizes.cumsum(0) - self._sizes  # B: rows of the source rows before
        ordered = self.owners[order]
        slots = torch.empty_like(self.owners)
        slots[order] = ordered * most + torch.arange(len(order), device=order.device) - before[ordered]
        places = torch.arange(self.count * most, device=order.device)
        rows = torch.zeros_like(places).index_copy_(0, slots, places[: len(slots)])
        return (None if torch.equal(slots, places) else slots), rows, most

    def group(self, states: Tensor) -> Tensor:
        """Vectors R×1×D of rows as B×N×D; what is in empty slots does not matter."""
        slots, rows, most = self._slots
        placed = states[:, 0] if slots is None else states[:, 0].index_select(0, rows)  # B·N×D
        return placed.view(self.count, most, -1)

    def ungroup(self, states: Tensor) -> Tensor:
        """Vectors B×N×D of slots as R×1×D of their rows."""
        slots, _, _ = self._slots
        every = states.flatten(0, 1)
        return (every if slots is None else every.index_select(0, slots))[:, None]
