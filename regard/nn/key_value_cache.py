"""Key-value cache of the positions read so far, with spare capacity.

Axes: B batch, H heads, C capacity in positions, K head width.
"""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from regard.nn.attention import KeyValues

ROOM = 16
"""Positions added at a time; matrix products and softmax over fewer positions are slower."""


class KeyValueCache:
    """Keys and values of every layer, 2×B×H×C×K each: the first `length` positions are filled, the rest is zero.

    Immutable for callers: a longer cache shares its memory and writes after the filled positions, unless another cache
    has already written there.
    """

    def __init__(self, layers: tuple[Tensor, ...], length: int, edge: Tensor) -> None:
        self.layers = layers
        self.length = length
        self._edge = edge  # 2C: C zeros, then C times minus infinity
        self._written = [length]  # shared with all caches that use the same memory, as is `_seen`
        self._seen: list[tuple[Tensor, Tensor]] = []

    @classmethod
    def blank(cls, rows: int, heads: Sequence[int], width: int, like: Tensor) -> Self:
        """Return an empty cache; `heads` are those of each layer, `like` gives device and type."""
        return cls(tuple(like.new_zeros(2, rows, count, ROOM, width) for count in heads), 0, _edge(ROOM, like))

    @property
    def room(self) -> int:
        """The capacity C."""
        return len(self._edge) // 2

    def longer(self) -> Self:
        """Return a cache with one more position, which every layer has yet to write."""
        if self._written[0] == self.length < self.room:
            longer = type(self)(self.layers, self.length, self._edge)
            longer._written, longer._seen = self._written, self._seen
        else:
            room = max(self.room, self.length // ROOM * ROOM + ROOM)
            edge = self._edge if room == self.room else _edge(room, self._edge)
            longer = type(self)(tuple(_with_room(layer, self.length, room) for layer in self.layers), self.length, edge)
        longer.length = longer._written[0] = self.length + 1
        return longer

    def write(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Write a layer's keys and values B×H×K of the last position, once."""
        place = self.layers[layer].select(3, self.length - 1)  # 2×B×H×K
        place[0], place[1] = keys, values

    def key_values(self, layer: int) -> KeyValues:
        """Return a layer's keys and values at full capacity, for a query at the last position; mask with `filled`."""
        keys, values = self.layers[layer]
        return KeyValues(keys, values, query_position=self.length - 1)

    def select(self, rows: Tensor) -> Self:
        """Return the cache of these rows in this order; rows may repeat."""
        return type(self)(tuple(layer.index_select(1, rows) for layer in self.layers), self.length, self._edge)

    def by_head(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return a layer's keys B·H×K×C and values B·H×C×K, shaped for batched matrix products."""
        if not self._seen:
            for each in self.layers:
                keys, values = each.flatten(1, 2).unbind()  # B·H×C×K
                self._seen.append((keys.transpose(1, 2), values))
        return self._seen[layer]

    @property
    def filled(self) -> Tensor:
        """Mask C that is true at filled positions."""
        return self.opening[0, 0] == 0

    @property
    def opening(self) -> Tensor:
        """Additive mask 1×1×C of scores: 0 at filled positions, minus infinity after them."""
        return self._edge[self.room - self.length : 2 * self.room - self.length].view(1, 1, -1)


def _edge(room: int, like: Tensor) -> Tensor:
    return torch.cat([like.new_zeros(room), like.new_full((room,), float("-inf"))])


def _with_room(old: Tensor, length: int, room: int) -> Tensor:
    """Copy the filled positions to a tensor of the given capacity: 2×B×H×room×K."""
    both, rows, heads, _, width = old.shape
    place = old.new_zeros(both, rows, heads, room, width)
    place[:, :, :, :length] = old[:, :, :, :length]
    return place
