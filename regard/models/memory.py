"""The encoded source, and the state of a decoder between steps.

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
    """The source as encoded by an encoder."""

    states: Tensor
    """One vector per source position: B×S×D."""
    mask: Tensor
    """True at real tokens, false at padding: B×S."""
    summary: Tensor
    """The whole source in one vector, for fixed joins and initial states: B×D."""
    tokens: Tensor | None = None
    """The source tokens B×S, for models that copy them."""

    @classmethod
    def blank(cls, like: Tensor) -> Self:
        """Return the memory of an empty source: no positions and a summary of width 0, with the rows of `like` B×…"""
        nothing = torch.zeros(len(like), 0, device=like.device)  # B×0
        return cls(nothing[:, None].expand(-1, 0, -1), nothing.bool(), nothing)

    def select(self, rows: Tensor) -> Self:
        """Return the memory of these rows in this order; rows may repeat."""
        return replace(
            self,
            states=self.states.index_select(0, rows),
            mask=self.mask.index_select(0, rows),
            summary=self.summary.index_select(0, rows),
            tokens=None if self.tokens is None else self.tokens.index_select(0, rows),
        )


class FastSteps(Protocol):
    """A decoder optimised for single steps: the same results as its layers, faster, without taps."""

    def is_watched(self) -> bool:
        """Return whether a tap of the decoder is watched, so that its modules must run."""

    def step(self, tokens: Tensor, state: "DecodingState", cache: KeyValueCache, /) -> Tensor:
        """Return the output state B×E of one token B; its keys and values are written to the cache."""


@dataclass(frozen=True)
class DecodingState:
    """Everything that decoding needs to continue. Immutable: each step returns a new state."""

    position: int
    """The number of tokens read."""
    source: dict[str, Tensor]
    """Tensors computed once from the memory; their first axis is that of the memory."""
    past: dict[str, Tensor]
    """Tensors computed from the tokens read so far, such as recurrent states; their first axis is B."""
    cache: KeyValueCache | None = None
    """Keys and values of the tokens read so far, where the decoder attends to itself."""
    source_rows: SourceRows | None = None
    """The row of `source` that each row uses; `None` before any selection, when each uses its own."""
    fast_steps: FastSteps | None = None
    """The decoder optimised for single steps, if there is one."""

    def select(self, rows: Tensor) -> Self:
        """Return the state of these rows in this order; rows may be dropped, repeated and reordered.

        Source tensors are not copied, except to drop rows once at least a quarter of them is unused.
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
        """Return the source tensor called `name`, with one row for each row of the state."""
        value = self.source[name]
        return value if self.source_rows is None else value.index_select(0, self.source_rows.owners)

    def key_values(self, name: str, length: int | None = None) -> KeyValues | None:
        """Return the source's keys and values of the attention called `name`, at most the first `length`."""
        keys = self.source.get(f"{name}.keys")
        if keys is None:
            return None
        return KeyValues(keys[:, :, :length], self.source[f"{name}.values"][:, :, :length], rows=self.source_rows)

    def advance(self, past: dict[str, Tensor], cache: KeyValueCache | None = None) -> Self:
        """Return the state after one more token."""
        return replace(self, position=self.position + 1, past=past, cache=cache)
