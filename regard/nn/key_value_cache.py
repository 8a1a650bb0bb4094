"""Keys and values of the positions read so far, with room for more.

Axes: B batch, H heads, C positions there is room for, K head width.
"""

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from regard.nn.attention import KeyValues

ROOM = 16
"""Positions added at a time: products with fewer, and a softmax over them, are slower than with these."""


class KeyValueCache:
    """Keys and values of every layer, 2×B×H×C×K each: the first `length` positions are filled, the rest is zero.

    Immutable for callers: a longer cache shares its memory and writes after the filled positions, unless something else
    has been written there before.
    """

    def __init__(self, layers: tuple[Tensor, ...], length: int, edge: Tensor) -> None:
        self.layers = layers
        self.length = length
        self._edge = edge  # 2C: as many zeros as there is room for, then as often minus infinity
        self._written = [length]  # shared with all that grow in the same place, and so is
        self._seen: list[tuple[Tensor, Tensor]] = []

    @classmethod
    def blank(cls, rows: int, heads: Sequence[int], width: int, like: Tensor) -> Self:
        """No position yet, of layers with so many heads each, in numbers like those of a tensor."""
        return cls(tuple(like.new_zeros(2, rows, each, ROOM, width) for each in heads), 0, _edge(ROOM, like))

    @property
    def room(self) -> int:
        """C."""
        return len(self._edge) // 2

    def longer(self) -> Self:
        """One position more, of which every layer is still to be written."""
        if self._written[0] == self.length < self.room:
            longer = type(self)(self.layers, self.length, self._edge)
            longer._written, longer._seen = self._written, self._seen
        else:
            room = max(self.room, self.length // ROOM * ROOM + ROOM)
            edge = self._edge if room == self.room else _edge(room, self._edge)
            longer = type(self)(tuple(_with_room(each, self.length, room) for each in self.layers), self.length, edge)
        longer.length = longer._written[0] = self.length + 1
        return longer

    def write(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Put a layer's last keys and values B×H×K into their place, once."""
        place = self.layers[layer].select(3, self.length - 1)  # 2×B×H×K
        place[0], place[1] = keys, values

    def key_values(self, layer: int) -> KeyValues:
        """All that a layer has room for, for a query at the last position; look only where it is `filled`."""
        keys, values = self.layers[layer]
        return KeyValues(keys, values, query_position=self.length - 1)

    def select(self, rows: Tensor) -> Self:
        """The cache of these rows only, in this order, repeats allowed."""
        return type(self)(tuple(each.index_select(1, rows) for each in self.layers), self.length, self._edge)

    def by_head(self, layer: int) -> tuple[Tensor, Tensor]:
        """Keys B·H×K×C and values B·H×C×K of a layer, heads beside rows, as products take them."""
        if not self._seen:
            for each in self.layers:
                keys, values = each.flatten(1, 2).unbind()  # B·H×C×K
                self._seen.append((keys.transpose(1, 2), values))
        return self._seen[layer]

    @property
    def filled(self) -> Tensor:
        """True at positions that can be looked at: C."""
        return self.opening[0, 0] == 0

    @property
    def opening(self) -> Tensor:
        """What a score is shifted by: 0 at filled positions, minus infinity behind them: 1×1×C."""
        return self._edge[self.room - self.length : 2 * self.room - self.length].view(1, 1, -1)


def _edge(room: int, like: Tensor) -> Tensor:
    return torch.cat([like.new_zeros(room), like.new_full((room,), float("-inf"))])


def _with_room(old: Tensor, length: int, room: int) -> Tensor:
    """A copy of what is filled, with room behind it: 2×B×H×room×K."""
    both, rows, heads, _, width = old.shape
    place = old.new_zeros(both, rows, heads, room, width)
    place[:, :, :, :length] = old[:, :, :, :length]
    return place
