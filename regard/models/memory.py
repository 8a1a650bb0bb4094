"""What an encoder leaves of the source, and what a decoder carries from step to step.

Axes: B batch, S source positions, D width.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from regard.nn.past import Past
from regard.nn.readers import Readers


@dataclass(frozen=True)
class Memory:
    """The source as an encoder sees it."""

    states: Tensor
    """One vector per source position: B×S×D."""
    mask: Tensor
    """True at real tokens, false at padding: B×S."""
    summary: Tensor
    """The whole source in one vector, for fixed joins and first states: B×D."""

    @classmethod
    def blank(cls, like: Tensor) -> Self:
        """Of no source at all: no position, and a summary of width 0, one row for each of `like` B×…"""
        nothing = torch.zeros(len(like), 0, device=like.device)  # B×0
        return cls(nothing[:, None].expand(-1, 0, -1), nothing.bool(), nothing)

    def select(self, rows: Tensor) -> Self:
        """The memory of these rows only, in this order, repeats allowed."""
        return replace(
            self,
            states=self.states.index_select(0, rows),
            mask=self.mask.index_select(0, rows),
            summary=self.summary.index_select(0, rows),
        )


@dataclass(frozen=True)
class DecodingState:
    """All that decoding needs to go on: a value, never changed; each step gives a new one."""

    position: int
    """How many tokens have been read."""
    source: dict[str, Tensor]
    """What was prepared from the memory once and stays; the first axis of each tensor is that of the memory."""
    past: dict[str, Tensor]
    """What the tokens read so far have left; the first axis of each tensor is B."""
    behind: Past | None = None
    """What the attention of each layer remembers of the tokens read so far, where there is any."""
    readers: Readers | None = None
    """Which row of `source` each row looks into; its own, where nothing has been selected."""
    prepared: Any = None
    """What the decoder has made of its weights for the steps to come, if anything."""

    def select(self, rows: Tensor) -> Self:
        """The state of these rows only, in this order: keep, drop, duplicate, reorder.

        What comes from the source is not moved, but once much of it is of no more use it is left behind.
        """
        source, readers = self.source, self.readers
        readers = Readers(rows, len(source["mask"])) if readers is None else readers.select(rows)
        few = readers.few()
        if few is not None:
            source = {name: value.index_select(0, few) for name, value in source.items()}
            readers = readers.of(few)
        return replace(
            self,
            source=source,
            past={name: value.index_select(0, rows) for name, value in self.past.items()},
            behind=None if self.behind is None else self.behind.select(rows),
            readers=readers,
        )

    def of_source(self, name: str) -> Tensor:
        """What was prepared from the memory under a name, a row for each row of the state."""
        value = self.source[name]
        return value if self.readers is None else value.index_select(0, self.readers.owners)

    def advance(self, past: dict[str, Tensor], behind: Past | None = None) -> Self:
        """The state after one more token."""
        return replace(self, position=self.position + 1, past=past, behind=behind)
