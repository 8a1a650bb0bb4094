"""What an encoder leaves of the source, and what a decoder carries from step to step.

Axes: B batch, S source positions, D width.
"""

from dataclasses import dataclass, replace
from typing import Protocol, Self

import torch
from torch import Tensor

from regard.nn.attention import KeyValues
from regard.nn.key_value_cache import KeyValueCache
from regard.nn.source_rows import SourceRows


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


class FastSteps(Protocol):
    """A decoder whose weights are prepared for single steps: the results of its layers, faster and unobserved."""

    def watched(self) -> bool:
        """Whether a tap of the decoder is watched, so that its layers must run as they are."""

    def step(self, tokens: Tensor, state: "DecodingState", cache: KeyValueCache, /) -> Tensor:
        """The output state B×E after one token B; its keys and values are written to the cache."""


@dataclass(frozen=True)
class DecodingState:
    """Everything that decoding needs to continue: immutable; each step gives a new one."""

    position: int
    """How many tokens have been read."""
    source: dict[str, Tensor]
    """What was prepared from the memory once and stays; the first axis of each tensor is that of the memory."""
    past: dict[str, Tensor]
    """What the tokens read so far have left; the first axis of each tensor is B."""
    cache: KeyValueCache | None = None
    """Keys and values of the tokens read so far, where the decoder attends to itself."""
    source_rows: SourceRows | None = None
    """Which row of `source` each row looks at; its own, where nothing has been selected."""
    fast_steps: FastSteps | None = None
    """The decoder as prepared for single steps, where it has been."""

    def select(self, rows: Tensor) -> Self:
        """The state of these rows only, in this order: keep, drop, duplicate, reorder.

        What comes from the source is not moved, but once much of it is of no more use it is left behind.
        """
        source, shared = self.source, self.source_rows
        shared = SourceRows(rows, len(source["mask"])) if shared is None else shared.select(rows)
        used = shared.in_use()
        if used is not None:
            source = {name: value.index_select(0, used) for name, value in source.items()}
            shared = shared.restricted_to(used)
        return replace(
            self,
            source=source,
            past={name: value.index_select(0, rows) for name, value in self.past.items()},
            cache=None if self.cache is None else self.cache.select(rows),
            source_rows=shared,
        )

    def of_source(self, name: str) -> Tensor:
        """What was prepared from the memory under a name, a row for each row of the state."""
        value = self.source[name]
        return value if self.source_rows is None else value.index_select(0, self.source_rows.owners)

    def key_values(self, name: str, length: int | None = None) -> KeyValues | None:
        """Keys and values of the source that an attention has put there under a name, at most the first `length`."""
        keys = self.source.get(f"{name}.keys")
        if keys is None:
            return None
        return KeyValues(keys[:, :, :length], self.source[f"{name}.values"][:, :, :length], rows=self.source_rows)

    def advance(self, past: dict[str, Tensor], cache: KeyValueCache | None = None) -> Self:
        """The state after one more token."""
        return replace(self, position=self.position + 1, past=past, cache=cache)
