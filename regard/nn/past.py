"""What attention remembers of the positions behind it, with room for more.

Axes: B batch, H heads, C positions there is room for, K head width.
"""

from typing import Self

import torch
from torch import Tensor

ROOM = 16
"""Positions added at a time: a softmax over fewer is slower than one over these."""


class Past:
    """Keys and values B×H×C×K, of which the first `length` positions are filled; the rest is zero.

    It is a value: whoever holds one sees no change in it. What follows is written behind it without copying, unless
    something else has been written there before.
    """

    def __init__(self, keys: Tensor | None = None, values: Tensor | None = None, length: int = 0) -> None:
        self._keys, self._values = keys, values
        self.length = length
        self._written = [length]  # shared with all that grow in the same place

    def with_next(self, keys: Tensor, values: Tensor) -> Self:
        """One position more: keys and values B×H×1×K."""
        longer = type(self)(self._keys, self._values, self.length)
        room = 0 if self._keys is None else self._keys.shape[2]
        if self._written[0] == self.length < room:
            longer._written = self._written
        else:
            room = max(room, self.length // ROOM * ROOM + ROOM)
            longer._keys = _with_room(self._keys, keys, self.length, room)
            longer._values = _with_room(self._values, values, self.length, room)
        longer.keys[:, :, self.length] = keys[:, :, 0]
        longer.values[:, :, self.length] = values[:, :, 0]
        longer.length = longer._written[0] = self.length + 1
        return longer

    def select(self, rows: Tensor) -> Self:
        """The past of these rows only, in this order, repeats allowed."""
        if self._keys is None or self._values is None:
            return self
        return type(self)(self._keys.index_select(0, rows), self._values.index_select(0, rows), self.length)

    @property
    def keys(self) -> Tensor:
        """Keys of all positions there is room for: B×H×C×K."""
        assert self._keys is not None
        return self._keys

    @property
    def values(self) -> Tensor:
        """Values of all positions there is room for: B×H×C×K."""
        assert self._values is not None
        return self._values

    @property
    def filled(self) -> Tensor:
        """True at positions that can be looked at: C."""
        return torch.arange(self.keys.shape[2], device=self.keys.device) < self.length


def _with_room(old: Tensor | None, new: Tensor, length: int, room: int) -> Tensor:
    """A copy of what is filled, with room behind it: B×H×room×K."""
    rows, heads, _, width = new.shape
    place = new.new_zeros(rows, heads, room, width)
    if old is not None:
        place[:, :, :length] = old[:, :, :length]
    return place
