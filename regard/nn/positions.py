"""Positional encodings: vectors added to embeddings, or distances inside self-attention.

Axes: B batch, H heads, T queries, S keys, D width, K head width.
"""

import math
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn


class Places(nn.Module):
    """Absolute positions: vectors added to embeddings."""

    def forward(self, start: int, length: int) -> Tensor:
        """Return the vectors of positions start … start+length-1: T×D."""
        raise NotImplementedError


class Sinusoidal(Places):
    """p(t) = [sin(t·ω_i), cos(t·ω_i)], ω_i = 10000^(-2i/D) (Vaswani et al., 2017); sines first, then cosines."""

    table: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table", sinusoids(64, width), persistent=False)

    def forward(self, start: int, length: int) -> Tensor:
        """Return the vectors of positions start … start+length-1: T×D."""
        end, table = start + length, self.table
        if end > len(table):
            with torch.inference_mode(False):  # training uses it too
                self.table = table = sinusoids(max(end, 2 * len(table)), self.width).to(table)
        return table[start:end]  # T×D


def sinusoids(length: int, width: int) -> Tensor:
    """Return the first `length` sinusoidal position vectors: length×D."""
    half = (width + 1) // 2
    rates = torch.exp(torch.arange(half, dtype=torch.float64) * (-2 * math.log(10_000) / width))
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates  # length×D/2
    return torch.cat([angles.sin(), angles.cos()], dim=1)[:, :width].float()  # length×D


class Learned(Places):
    """A learned vector for each position up to a maximum length (Gehring et al., 2017)."""

    def __init__(self, max_length: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(max_length, width) * 0.1)

    def forward(self, start: int, length: int) -> Tensor:
        """Return the vectors of positions start … start+length-1: T×D."""
        if start + length > len(self.weight):
            raise ValueError(f"Learned positions end at {len(self.weight)}, but {start + length} are needed.")
        return self.weight[start : start + length]  # T×D


class Distances(nn.Module):
    """Positions inside self-attention: queries and keys may be rotated, scores may be shifted by distance."""

    def rotate(self, vectors: Tensor, start: int) -> Tensor:
        """Return queries or keys B×H×T×K at positions start, start+1, …, rotated for the score."""
        return vectors

    def shift(self, queries: Tensor, start: int, keys: int) -> Tensor | None:
        """Return a bias for scores of queries at start, start+1, … and keys at 0 … keys-1, broadcasting to B×H×T×S."""
        return None


def distances(start: int, length: int, keys: int, device: torch.device) -> Tensor:
    """Return key position minus query position: T×S."""
    places = torch.arange(start, start + length, device=device)
    return torch.arange(keys, device=device)[None, :] - places[:, None]  # T×S


class Relative(Distances):
    """A learned vector r for each distance: e += q·r(j-i) / √K (Shaw et al., 2018; keys only)."""

    def __init__(self, width: int, max_distance: int) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.weight = nn.Parameter(torch.randn(2 * max_distance + 1, width) * width**-0.5)

    def shift(self, queries: Tensor, start: int, keys: int) -> Tensor:
        """Return the query's scaled inner product with the vector of each key's distance: B×H×T×S."""
        length, width = queries.shape[-2:]
        apart = distances(start, length, keys, queries.device).clamp(-self.max_distance, self.max_distance)
        met = queries @ self.weight.transpose(0, 1) * width**-0.5  # B×H×T×R
        index = (apart + self.max_distance).expand(*queries.shape[:-2], length, keys)  # B×H×T×S
        return torch.gather(met, -1, index)


class DistanceBias(Distances):
    """A scalar for each head and distance: e += b_h(j-i) (Raffel et al., 2020, without their logarithmic buckets)."""

    def __init__(self, heads: int, max_distance: int) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.weight = nn.Parameter(torch.zeros(heads, 2 * max_distance + 1))

    def shift(self, queries: Tensor, start: int, keys: int) -> Tensor:
        """Return the scalar of each key's distance: H×T×S."""
        apart = distances(start, queries.shape[-2], keys, queries.device)
        index = apart.clamp(-self.max_distance, self.max_distance) + self.max_distance  # T×S
        return self.weight[:, index]  # H×T×S


class Alibi(Distances):
    """e -= m_h·|j-i| with fixed slopes m_h = 2^(-8h/H) (Press et al., 2022); after pruning only of kept heads."""

    slopes: Tensor

    def __init__(self, heads: int, kept: Sequence[int] | None = None) -> None:
        super().__init__()
        slopes = 2.0 ** (-8 * torch.arange(1, heads + 1) / heads)
        slopes = slopes if kept is None else slopes[list(kept)]
        self.register_buffer("slopes", slopes[:, None, None], persistent=False)

    def shift(self, queries: Tensor, start: int, keys: int) -> Tensor:
        """Return minus slope times distance: H×T×S."""
        apart = distances(start, queries.shape[-2], keys, queries.device)
        shift: Tensor = -self.slopes * apart.abs()  # H×T×S
        return shift


class Rotary(Distances):
    """Rotates each pair of coordinates by an angle proportional to the position (Su et al., 2021).

    (x_i, x_{i+K/2}) is rotated by t·ω_i, ω_i = b^(-2i/K); the inner product of a query and a key then depends on their
    distance only. With `ntk` = s > 1 the base b becomes b·s^(K/(K-2)): the slowest rotation is stretched s times, so
    that sequences s times as long as the trained ones stay within known angles, while the fastest keeps its
    resolution (the "NTK-aware" scaling of Peng et al., 2024).
    """

    rates: Tensor
    turns: Tensor

    def __init__(self, width: int, ntk: float = 1.0, base: float = 10_000.0) -> None:
        super().__init__()
        if width > 2:
            base *= ntk ** (width / (width - 2))
        rates = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        self.register_buffer("rates", rates, persistent=False)
        self.register_buffer("turns", self._turns(64), persistent=False)

    def _turns(self, length: int) -> Tensor:
        """Return cosines and sines of the first `length` positions: 2×length×K/2."""
        angles = torch.arange(length, dtype=torch.float64, device=self.rates.device)[:, None] * self.rates
        return torch.stack([angles.cos(), angles.sin()]).float()

    def rotate(self, vectors: Tensor, start: int) -> Tensor:
        """Rotate vectors B×H×T×K at positions start, start+1, …"""
        end, turns = start + vectors.shape[-2], self.turns
        if end > turns.shape[1]:
            with torch.inference_mode(False):  # training uses them too
                self.turns = turns = self._turns(max(end, 2 * turns.shape[1])).to(turns)
        cos, sin = turns[:, start:end].to(vectors.dtype)  # T×K/2 each
        one, two = vectors.chunk(2, dim=-1)  # B×H×T×K/2 each
        return torch.cat([one * cos - two * sin, two * cos + one * sin], dim=-1)  # B×H×T×K


class MakePlaces(Protocol):
    """Builds positions that are added to embeddings of a width."""

    def __call__(self, *, width: int, max_length: int) -> Places:
        """Return new positions."""


class MakeDistances(Protocol):
    """Builds positions that act inside self-attention; after pruning only the heads in `kept` exist."""

    def __call__(
        self, *, heads: int, width: int, max_distance: int, ntk: float, kept: Sequence[int] | None
    ) -> Distances:
        """Return new positions for heads of a width."""


PLACES: dict[str, MakePlaces] = {
    "sinusoidal": lambda width, max_length: Sinusoidal(width),
    "learned": lambda width, max_length: Learned(max_length, width),
}
"""Positions that are added to embeddings, by name; `regard.extensions` adds to them."""

DISTANCES: dict[str, MakeDistances] = {
    "relative": lambda heads, width, max_distance, ntk, kept: Relative(width, max_distance),
    "bias": lambda heads, width, max_distance, ntk, kept: DistanceBias(
        heads if kept is None else len(kept), max_distance
    ),
    "alibi": lambda heads, width, max_distance, ntk, kept: Alibi(heads, kept),
    "rotary": lambda heads, width, max_distance, ntk, kept: Rotary(width, ntk),
}
"""Positions that act inside self-attention, by name; `regard.extensions` adds to them."""


def make_places(kind: str, *, width: int, max_length: int) -> Places | None:
    """Return the positions of this kind that are added to embeddings, if it is such a kind."""
    return PLACES[kind](width=width, max_length=max_length) if kind in PLACES else None


def make_distances(
    kind: str, *, heads: int, width: int, max_distance: int, ntk: float, kept: Sequence[int] | None = None
) -> Distances | None:
    """Return the positions of this kind that act inside self-attention, if it is such a kind; `width` is a head's.

    If `kept` is given, only these of the `heads` heads exist.
    """
    if kind not in DISTANCES:
        return None
    return DISTANCES[kind](heads=heads, width=width, max_distance=max_distance, ntk=ntk, kept=kept)
