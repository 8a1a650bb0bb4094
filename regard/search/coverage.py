"""The coverage penalty: lowers the score of hypotheses that attended to little of the source (Wu et al., 2016).

Axes: R slots in use, B sentences, G groups, N slots of a group, S source positions.
"""

from typing import Any

import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.search.rows import Rows


class Coverage:
    """The sum of attention to each source position, for each row of a beam; unused while the penalty is zero."""

    def __init__(self, mask: Tensor, penalty: float) -> None:
        self.penalty = penalty
        self.real = mask  # R×S
        self.sums = torch.zeros_like(mask, dtype=torch.float) if penalty else mask[:, :0].float()

    def add(self, state: Any) -> None:
        """Add the attention of one step."""
        if self.penalty:
            attention = getattr(state, "attention", None)
            if attention is None:
                raise UsageError(
                    "A coverage penalty needs a step model whose states have `attention`. Leave the penalty out."
                )
            self.sums = self.sums + attention

    def select(self, rows: Tensor) -> None:
        """Select these rows, as the beam does."""
        if self.penalty:
            self.sums, self.real = self.sums.index_select(0, rows), self.real.index_select(0, rows)

    def costs(self, rows: Rows) -> list[list[float]]:
        """Return the penalty that is added to the score of each slot if it ends now: B·G×N."""
        if not self.penalty:
            return [[0.0] * rows.slots] * len(rows.starts)
        penalties = self.sums.clamp(1e-9, 1.0).log().masked_fill(~self.real, 0.0).sum(dim=1, keepdim=True)  # R×1
        costs: list[list[float]] = rows.by_place(self.penalty * penalties, 0.0).tolist()
        return costs
