"""Attention scores: how well a query matches a key.

Axes: B batch, H heads, T queries, S keys, K head width.
"""

import math
from typing import Protocol

import torch
from torch import Tensor, nn


class Score(nn.Module):
    """e = score(q, k). Queries and keys are first prepared separately, so that keys are prepared only once.

    `scale` is the factor of a score that is, after preparation, a scaled inner product (and can run fused);
    `None` for a score that is not.
    """

    scale: float | None = None

    def prepare_queries(self, queries: Tensor) -> Tensor:
        """Apply the part of the score that depends on queries alone: B×H×T×K."""
        return queries

    def prepare_keys(self, keys: Tensor) -> Tensor:
        """Apply the part of the score that depends on keys alone: B×H×S×K."""
        return keys

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the scores B×H×T×S of prepared queries and keys."""
        assert self.scale is not None
        return (queries @ keys.transpose(-1, -2)) * self.scale  # B×H×T×S


class Dot(Score):
    """e = q·k (Luong et al., 2015)."""

    scale = 1.0


class ScaledDot(Score):
    """e = q·k / √K, so that the variance of scores does not grow with the width (Vaswani et al., 2017)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = 1 / math.sqrt(width)


class Bilinear(Score):
    """e = qᵀ W k with a matrix per head; Luong et al. (2015) call it `general`."""

    scale = 1.0

    def __init__(self, heads: int, query_width: int, key_width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads, query_width, key_width))
        nn.init.xavier_uniform_(self.weight)

    def prepare_queries(self, queries: Tensor) -> Tensor:
        """q ↦ qᵀW."""
        return by_head(queries, self.weight)  # B×H×T×K


class Additive(Score):
    """e = vᵀ tanh(W q + U k), a small network per head (Bahdanau et al., 2015)."""

    def __init__(self, heads: int, query_width: int, key_width: int, width: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(heads, query_width, width))
        self.key = nn.Parameter(torch.empty(heads, key_width, width))
        self.bias = nn.Parameter(torch.zeros(heads, 1, width))
        self.out = nn.Parameter(torch.empty(heads, 1, width, 1))
        for weight in (self.query, self.key, self.out):
            bound = 1 / math.sqrt(weight.shape[-2])
            nn.init.uniform_(weight, -bound, bound)

    def prepare_queries(self, queries: Tensor) -> Tensor:
        """q ↦ W q + b."""
        return by_head(queries, self.query) + self.bias  # B×H×T×A

    def prepare_keys(self, keys: Tensor) -> Tensor:
        """k ↦ U k."""
        return by_head(keys, self.key)  # B×H×S×A

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the scores B×H×T×S of prepared queries and keys."""
        hidden = (queries.unsqueeze(-2) + keys.unsqueeze(-3)).tanh_()  # B×H×T×S×A
        scores = by_head(hidden.flatten(2, 3), self.out.squeeze(1))  # B×H×TS×1
        return scores.view(hidden.shape[:-1])  # B×H×T×S


def by_head(vectors: Tensor, weights: Tensor) -> Tensor:
    """Multiply vectors B×H×N×K with a matrix K×M per head: B×H×N×M.

    The rows of a head are multiplied together: one product per row of the batch would read the matrix, and in the
    backward pass write its gradient, once per row.
    """
    batch, heads, number, width = vectors.shape
    found = vectors.transpose(0, 1).reshape(heads, batch * number, width) @ weights  # H×BN×M
    return found.view(heads, batch, number, weights.shape[-1]).transpose(0, 1)


class MakeScore(Protocol):
    """Builds a score for heads of the given widths."""

    def __call__(self, *, heads: int, query_width: int, key_width: int) -> Score:
        """Return a new score."""


SCORES: dict[str, MakeScore] = {
    "dot": lambda heads, query_width, key_width: Dot(),
    "scaled-dot": lambda heads, query_width, key_width: ScaledDot(key_width),
    "bilinear": Bilinear,
    "additive": lambda heads, query_width, key_width: Additive(heads, query_width, key_width, width=query_width),
}
"""Every score by the name it has in a configuration; `regard.extensions` adds to them."""


def make_score(kind: str, *, heads: int, query_width: int, key_width: int) -> Score:
    """Return the score called `kind`, for heads of the given widths."""
    if kind not in SCORES:
        raise ValueError(f"There is no attention score {kind!r}.")
    return SCORES[kind](heads=heads, query_width=query_width, key_width=key_width)
