"""A Transformer decoder as steps of decoding need it: one position a row, weights at hand, nothing to be watched.

Axes: B batch, S source positions, H heads, C positions there is room for, K head width, E embedding width, D width.
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
    """The same as a `TransformerDecoderLayer`."""

    def __init__(self, layer: TransformerDecoderLayer, depth: int) -> None:
        self.depth, self.pre, join = depth, layer.pre, layer.source_attention
        self.attention, self.attention_norm = PreparedAttention(layer.attention), prepared(layer.attention_norm)
        self.source_attention = None if join is None else PreparedAttention(join)
        self.source_norm = prepared(layer.source_norm)
        self.feed_forward, self.feed_forward_norm = prepared(layer.feed_forward), prepared(layer.feed_forward_norm)

    def step(self, states: Tensor, past: KeyValueCache, opening: Tensor, state: DecodingState) -> Tensor:
        """States B×D at the last position of a past, which they write, with its opening 1×1×C: B×D."""
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
    """The same as a `TransformerDecoder`, for steps; it holds while the decoder is made of the very same parts."""

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

    def holds(self) -> bool:
        """Whether the decoder still has the parts and parameters that it had; their values do not matter."""
        return all(parts.get(name) is part for parts, name, part in self._wiring)

    def overheard(self) -> bool:
        """Whether someone listens in by a hook, which only the modules themselves would call."""
        return any(part._forward_hooks or part._forward_pre_hooks for part in self._parts)

    def watched(self) -> bool:
        """Whether someone watches a tap."""
        return any(tap.watcher is not None for tap in self._taps)

    def step(self, tokens: Tensor, state: DecodingState, past: KeyValueCache) -> Tensor:
        """The output state B×E behind one token B, which is the last of a past that is still to be written."""
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
