"""The hypotheses of a beam that live, as rows of a batch: those that ended take no room in it.

Axes: P places (a group of a sentence each), N slots of a place, R slots in use, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from torch import Tensor

from regard.search.best import best
from regard.search.rules import NOTHING


class Candidate(NamedTuple):
    """A living beginning with one more token."""

    total: float
    """Log-probability up to here."""
    log_prob: float
    slot: int
    token: int


@dataclass(frozen=True)
class Rows:
    """The slots in use, place by place; those of a place are the first of its slots."""

    starts: list[int]
    """The first row of each place: P."""
    seats: Tensor
    """Where each row stands among all P·N slots: R."""
    totals: Tensor
    """The log-probability up to here of each: R."""
    slots: int
    """N."""

    @classmethod
    def first(cls, places: int, slots: int, device: torch.device) -> Self:
        """One row for each place: before the first token all its hypotheses are the same."""
        starts = list(range(places))
        return cls(starts, slots * torch.arange(places, device=device), torch.zeros(places, device=device), slots)

    def every(self, step: int, first: int) -> Tensor:
        """The rows of each `step`-th place from the `first` on."""
        return (self.seats // self.slots % step == first).nonzero()[:, 0]

    def laid_out(self, values: Tensor, empty: float) -> Tensor:
        """Values R×C of rows by place, P×N·C, with `empty` where no hypothesis lives."""
        seats = len(self.starts) * self.slots
        if len(values) < seats:
            values = values.new_full((seats, values.shape[1]), empty).index_copy_(0, self.seats, values)
        return values.reshape(len(self.starts), -1)

    def candidates(
        self, scores: Tensor, liked: Tensor, most: int, chosen: Tensor | None = None
    ) -> list[list[Candidate]]:
        """The `most` best candidates of each place by `liked` R×V, with their scores R×V and totals.

        With `chosen`, scores are of these rows only, and the other rows have no candidates.
        """
        rows = self if chosen is None else type(self)(self.starts, self.seats[chosen], self.totals[chosen], self.slots)
        preferred, tokens = best(liked, most)  # R×C: what is not among them is not among the best of its place
        each = preferred if liked is scores else scores.gather(1, tokens)
        before = rows.totals[:, None]
        order = rows.laid_out(before + preferred, NOTHING)  # P×N·C
        found = order.topk(min(most, order.shape[1]), dim=1).indices  # P×most
        columns = (
            rows.laid_out(before + each, NOTHING).gather(1, found),
            rows.laid_out(each, NOTHING).gather(1, found),
            found // tokens.shape[1],
            rows.laid_out(tokens, 0).gather(1, found),
        )
        lists = zip(*(column.tolist() for column in columns), strict=True)
        return [list(map(Candidate, *each)) for each in lists]

    def followed(self, kept: Sequence[tuple[int, list[Candidate]]]) -> tuple[Tensor | None, Tensor, Self]:
        """The rows that the candidates `kept` of some places come from, in the order of the new ones; their tokens.

        Nothing instead of rows, if these are all rows as they stand.
        """
        starts: list[int] = []
        seats: list[int] = []
        sources: list[int] = []
        tokens: list[int] = []
        totals: list[float] = []
        for place, (old, living) in enumerate(kept):
            starts.append(len(sources))
            first = self.starts[old]
            for slot, one in enumerate(living):
                seats.append(place * self.slots + slot)
                sources.append(first + one.slot)
                tokens.append(one.token)
                totals.append(one.total)
        device = self.totals.device
        new = type(self)(
            starts,
            torch.tensor(seats, device=device),
            torch.tensor(totals, device=device, dtype=self.totals.dtype),
            self.slots,
        )
        unmoved = sources == list(range(len(self.seats)))
        return None if unmoved else torch.tensor(sources, device=device), torch.tensor(tokens, device=device), new
