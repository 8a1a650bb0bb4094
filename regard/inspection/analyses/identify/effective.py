"""Effective attention: the part of the weights that a head's output depends on (Brunner et al., 2020).

A head gives A·T, where T = E·W_V·W_O (its slice): one row for each token that is looked at. Whatever is added to a row
of A from the left null space of T changes nothing. T has at most as many independent rows as the head is wide, so that
longer texts always have such a null space: the weights are then not identifiable from what they do.

Axes: H heads, T queries, S keys, K head width, D width, R rank.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.nn.attention import Attention

EPSILON = torch.finfo(torch.float32).eps
"""Values are computed in single precision: smaller differences between them are rounding. The rest is in double."""


@dataclass(frozen=True)
class Mixed:
    """What the weights of a head mix: T, turned so that it has only as many columns as the head is wide."""

    rows: Tensor
    """S×K: T·Q, Q orthonormal; the same left singular vectors and singular values as T."""
    width: int
    """D: columns of T itself, which the tolerance of the rank depends on."""

    def first(self, count: int) -> "Mixed":
        """Return the first rows."""
        return Mixed(self.rows[:count], self.width)

    def with_ones(self) -> "Mixed":
        """[T, 1]: what cannot be changed if rows of weights must also keep their sum."""
        size = torch.linalg.matrix_norm(self.rows, ord=2) / len(self.rows) ** 0.5 if self.rows.numel() else 1.0
        ones = torch.ones_like(self.rows[:, :1]) * (size or 1.0)  # as large as the rest, for the tolerance's sake
        return Mixed(torch.cat([self.rows, ones], dim=1), self.width + 1)

    def span(self) -> Tensor:
        """An orthonormal basis of what the columns of T span: S×R. Orthogonal to it is the left null space.

        A singular value counts if it exceeds the largest times max(S, D) times the rounding error of a number.
        """
        found: tuple[Tensor, Tensor, Tensor] = torch.linalg.svd(self.rows, full_matrices=False)
        left, singular, _ = found
        if not singular.numel():
            return left[:, :0]
        least = singular[0] * max(len(self.rows), self.width) * EPSILON
        return left[:, : int((singular > least).sum())]


@dataclass(frozen=True)
class Slices:
    """The part of the output projection that belongs to each head, as far as it matters here."""

    triangles: list[Tensor] | None
    """H of K×K: W_O (slice) = R·Q, Q with orthonormal rows; None where there is no output projection."""
    width: int

    @classmethod
    def of(cls, attention: Attention, width: int) -> "Slices":
        """The slices of an attention whose heads are `width` wide."""
        if attention.out is None:
            return cls(None, width)
        whole = attention.out.weight.detach().double().cpu()  # D×HK
        return cls([torch.linalg.qr(part, mode="r").R.T for part in torch.split(whole, width, dim=1)], len(whole))

    def mix(self, values: Tensor) -> list[Mixed]:
        """T of every head, from the values H×S×K that it looks at: with their bias, as the model has them.

        Without an output projection, T is the values themselves.
        """
        rows = values.double()
        if self.triangles is None:
            return [Mixed(part, self.width) for part in rows]
        return [Mixed(part @ turn, self.width) for part, turn in zip(rows, self.triangles, strict=True)]


def project(weights: Tensor, what: Mixed, *, causal: bool, sums: bool = False) -> tuple[Tensor, int]:
    """The effective part of a head's weights T×S, and the rank of T; with `sums`, rows keep their sum ([T, 1]).

    Where a row may only look at the tokens up to its own (`causal`), only those count for it. If the rank is the
    number of tokens, the weights are their own effective part, and are returned as they are.
    """
    kept = what.with_ones() if sums else what
    basis = kept.span()
    rank = what.span().shape[1] if sums else basis.shape[1]
    if basis.shape[1] == len(what.rows):
        return weights, rank
    exact = weights.double()
    if not causal:
        return ((exact @ basis) @ basis.T).to(weights.dtype), rank
    found = exact.clone()
    for row, seen in _find_deficient(kept):
        found[row, : row + 1] = (exact[row, : row + 1] @ seen) @ seen.T
    return found.to(weights.dtype), rank


def _find_deficient(what: Mixed) -> Iterator[tuple[int, Tensor]]:
    """The rows of causal weights whose visible tokens are dependent, with the basis of what those span."""
    length, wide = what.rows.shape
    free = min(length, wide)
    start = free if what.first(free).span().shape[1] == free else 0  # shorter parts of independent rows are independent
    for row in range(start, length):
        seen = what.first(row + 1).span()
        if seen.shape[1] <= row:
            yield row, seen


def other_weights(weights: Tensor, what: Mixed, *, causal: bool) -> Tensor:
    """Other weights T×S that are as good: rows still sum to one, none is negative, and the head finds the same.

    Each row moves away from its largest weight inside the null space of [T, 1], until a weight is zero.
    """
    kept, moved = what.with_ones(), weights.double().clone()
    basis = kept.span()
    if basis.shape[1] == len(what.rows):
        return weights
    places: Iterator[tuple[int, Tensor]] = (
        _find_deficient(kept) if causal else ((row, basis) for row in range(len(weights)))
    )
    for row, seen in places:
        here = moved[row, : len(seen)]
        away = seen @ seen[here.argmax()]  # the strongest token without its part in the null space …
        away[here.argmax()] -= 1.0  # … minus that token: a direction inside the null space
        falling = away < -1e-12
        if falling.any():
            step = (here[falling] / -away[falling]).min()
            moved[row, : len(seen)] = (here + step * away).clamp(min=0.0)
    return moved.to(weights.dtype)


def correlation(one: Tensor, other: Tensor, *, causal: bool) -> float:
    """Pearson's correlation of two maps T×S over the cells that a row may look at; 1 where they are the same."""
    if one is other:
        return 1.0
    seen = torch.ones_like(one, dtype=torch.bool).tril() if causal else torch.ones_like(one, dtype=torch.bool)
    a, b = one[seen].double(), other[seen].double()
    a, b = a - a.mean(), b - b.mean()
    size = a.norm() * b.norm()
    return float(a @ b / size) if size > 0 else 1.0
