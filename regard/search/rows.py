"""The live hypotheses of a beam as rows of a batch; ended hypotheses have no row.

Axes: P places (one per group of a sentence), N slots of a place, R slots in use, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor

from regard.search.best import best
from regard.search.rules import NOTHING


class Candidate(NamedTuple):
    """A live hypothesis with one more token."""

    total: float
    """Log-probability of all tokens so far."""
    log_prob: float
    slot: int
    token: int


@dataclass(frozen=True)
class Rows:
    """The slots in use, place by place; each place uses its first slots."""

    starts: list[int]
    """The first row of each place: P."""
    positions: Tensor
    """The position of each row among all P·N slots: R."""
    totals: Tensor
    """The log-probability of each row so far: R."""
    slots: int
    """N."""

    @classmethod
    def first(cls, places: int, slots: int, device: torch.device) -> Self:
        """Return one row for each place: before the first token all its hypotheses are equal."""
        starts = list(range(places))
        return cls(starts, slots * torch.arange(places, device=device), torch.zeros(places, device=device), slots)

    def every(self, step: int, first: int) -> Tensor:
        """Return the rows of every `step`-th place, starting with `first`."""
        return (self.positions // self.slots % step == first).nonzero()[:, 0]

    def by_place(self, values: Tensor, empty: float) -> Tensor:
        """Arrange values R×C of rows by place, P×N·C, with `empty` in unused slots."""
        positions = len(self.starts) * self.slots
        if len(values) < positions:
            values = values.new_full((positions, values.shape[1]), empty).index_copy_(0, self.positions, values)
        return values.reshape(len(self.starts), -1)

    def candidates(
        self, scores: Tensor, liked: Tensor, most: int, chosen: Tensor | None = None
    ) -> list[list[Candidate]]:
        """Return the `most` best candidates of each place by `liked` R×V, with their scores R×V and totals.

        With `chosen`, scores are those of these rows only, and other rows have no candidates.
        """
        rows = (
            self if chosen is None else type(self)(self.starts, self.positions[chosen], self.totals[chosen], self.slots)
        )
        preferred, tokens = best(liked, most)  # R×C: the best of a place are among the best of its rows
        log_probs = preferred if liked is scores else scores.gather(1, tokens)
        before = rows.totals[:, None]
        order = rows.by_place(before + preferred, NOTHING)  # P×N·C
        found = order.topk(min(most, order.shape[1]), dim=1).indices  # P×most
        columns = (
            rows.by_place(before + log_probs, NOTHING).gather(1, found),
            rows.by_place(log_probs, NOTHING).gather(1, found),
            found // tokens.shape[1],
            rows.by_place(tokens, 0).gather(1, found),
        )
        lists = zip(*(column.tolist() for column in columns), strict=True)
        return [list(map(Candidate, *columns)) for columns in lists]

    def follow(self, kept: Sequence[tuple[int, list[Candidate]]]) -> tuple[Tensor | None, Tensor, Self]:
        """Return the old row of each candidate `kept` of some places, their tokens, and the new rows.

        The old rows are `None` if all rows stay in place.
        """
        starts: list[int] = []
        positions: list[int] = []
        sources: list[int] = []
        tokens: list[int] = []
        totals: list[float] = []
        for index, (old, living) in enumerate(kept):
            starts.append(len(sources))
            first = self.starts[old]
            for slot, candidate in enumerate(living):
                positions.append(index * self.slots + slot)
                sources.append(first + candidate.slot)
                tokens.append(candidate.token)
                totals.append(candidate.total)
        device = self.totals.device
        new = type(self)(
            starts,
            torch.tensor(positions, device=device),
            torch.tensor(totals, device=device, dtype=self.totals.dtype),
            self.slots,
        )
        unmoved = sources == list(range(len(self.positions)))
        return None if unmoved else torch.tensor(sources, device=device), torch.tensor(tokens, device=device), new
