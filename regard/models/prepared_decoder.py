"""A Transformer decoder optimised for single decoding steps: no time axis, weights looked up once, no taps.

Axes: B batch, S source positions, H heads, C capacity of the cache, K head width, E embedding width, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from regard.models.memory import DecodingState
from regard.nn.key_value_cache import KeyValueCache
from regard.nn.prepared import PreparedAttention, prepared
from regard.nn.taps import Tap

if TYPE_CHECKING:
    from regard.models.transformer_decoder import TransformerDecoder, TransformerDecoderLayer


class PreparedLayer:
    """Computes the same as a `TransformerDecoderLayer`, one position at a time."""

    def __init__(self, layer: TransformerDecoderLayer, depth: int) -> None:
        self.depth, self.pre, join = depth, layer.pre, layer.source_attention
        self.attention, self.attention_norm = PreparedAttention(layer.attention), prepared(layer.attention_norm)
        self.source_attention = None if join is None else PreparedAttention(join)
        self.source_norm = prepared(layer.source_norm)
        self.feed_forward, self.feed_forward_norm = prepared(layer.feed_forward), prepared(layer.feed_forward_norm)

    def step(self, states: Tensor, past: KeyValueCache, opening: Tensor, state: DecodingState) -> Tensor:
        """Run the layer on states B×D at the last position of the cache, which it writes; `opening` is 1×1×C: B×D."""
        normed = self.attention_norm(states) if self.pre else states
        states = states + self.attention.to_past(normed, past, self.depth, opening)
        states = states if self.pre else self.attention_norm(states)
        if self.source_attention is not None:
            normed = self.source_norm(states) if self.pre else states
            states = states + self.source_attention.to_source(normed, state.source, f"{self.depth}", state.source_rows)
            states = states if self.pre else self.source_norm(states)
        normed = self.feed_forward_norm(states) if self.pre else states
        states = states + self.feed_forward(normed)
        return states if self.pre else self.feed_forward_norm(states)


class PreparedDecoder:
    """Computes single steps of a `TransformerDecoder`; valid while its modules and parameters are the same."""

    def __init__(self, decoder: TransformerDecoder) -> None:
        entrance = decoder.entrance
        self.embedding, self.places, self.entrance = (
            prepared(decoder.embedding),
            entrance.places,
            prepared(entrance.linear),
        )
        self.fixed = decoder.fixed
        self.layers = [PreparedLayer(layer, depth) for depth, layer in enumerate(decoder.layers)]
        self.norm, self.exit = prepared(decoder.norm), prepared(decoder.exit.linear)
        self._parts = [module for module in decoder.modules() if module is not decoder]
        self._taps = [part for part in self._parts if isinstance(part, Tap)]
        self._wiring = [
            (parts, name, part)
            for module in decoder.modules()
            for parts in (module._modules, module._parameters)
            for name, part in parts.items()
        ]

    def is_current(self) -> bool:
        """Return whether the decoder still has the same modules and parameters; their values may have changed."""
        return all(parts.get(name) is part for parts, name, part in self._wiring)

    def has_hooks(self) -> bool:
        """Return whether a module has a forward hook, which only the module itself would call."""
        return any(part._forward_hooks or part._forward_pre_hooks for part in self._parts)

    def is_watched(self) -> bool:
        """Return whether a tap of the decoder is watched."""
        return any(tap.watcher is not None for tap in self._taps)

    def step(self, tokens: Tensor, state: DecodingState, past: KeyValueCache) -> Tensor:
        """Return the output state B×E of one token B; its keys and values are written to the last cache position."""
        states = self.embedding(tokens)  # B×E
        if self.places is not None:
            states = states + self.places(state.position, 1)
        states = self.entrance(states)  # B×D
        if self.fixed is not None:
            states = self.fixed(states[:, None], state.of_source("summary"), state.position)[:, 0]
        opening = past.opening
        for layer in self.layers:
            states = layer.step(states, past, opening, state)
        return self.exit(self.norm(states))  # B×E
