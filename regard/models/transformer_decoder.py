"""The Transformer decoder.

Axes: B batch, T target positions, S source positions, H heads, K head width, E embedding width, D width.
"""

from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import resolved
from regard.models.decoder import Exit, ParallelDecoder, make_fixed_vector, source_key_values
from regard.models.memory import DecodingState, Memory
from regard.models.parts import Entrance, feed_forward, self_attention, source_attention
from regard.models.prepared_decoder import PreparedDecoder
from regard.nn.attention import KeyValues
from regard.nn.dropout import Dropout
from regard.nn.embeddings import TokenEmbedding
from regard.nn.key_value_cache import KeyValueCache
from regard.nn.normalisation import make_norm
from regard.nn.prepared import prepared_source
from regard.nn.stack import Stack
from regard.nn.taps import Tap


class TransformerDecoderLayer(nn.Module):
    """Self-attention, attention to the source and feed-forward, each with residual and norm (Vaswani et al., 2017)."""

    def __init__(self, cell: config.Model, part: config.TransformerDecoder, depth: int = 0) -> None:
        super().__init__()
        width = resolved(part.width)
        self.pre = part.norm_place == "pre"
        self.attention = self_attention(cell, width, f"decoder.layers.{depth}.attention")
        self.attention_norm = make_norm(part.norm, width, cell.norm_epsilon)
        self.source_attention = source_attention(cell, width, f"decoder.layers.{depth}.source_attention")
        self.source_norm = None if self.source_attention is None else make_norm(part.norm, width, cell.norm_epsilon)
        self.feed_forward = feed_forward(cell, part)
        self.feed_forward_norm = make_norm(part.norm, width, cell.norm_epsilon)
        self.dropout = Dropout(cell.dropout)
        self.after_attention = Tap(time=1)
        self.after_source_attention = None if self.source_attention is None else Tap(time=1)
        self.states = Tap(time=1)

    def forward(
        self,
        states: Tensor,
        source: Tensor | KeyValues | None,
        source_mask: Tensor,
        cache: tuple[KeyValueCache, int] | None = None,
    ) -> Tensor:
        """Run the layer on states B×T×D of a whole sequence, or B×1×D at the last position of (cache, layer index)."""
        normed = self.attention_norm(states) if self.pre else states
        if cache is None:
            found = self.attention(normed, normed, causal=True)
        else:
            past, depth = cache
            own = self.attention.key_values(normed, past.length - 1)
            past.write(depth, own.keys[:, :, 0], own.values[:, :, 0])
            found = self.attention(normed, past.key_values(depth), past.filled)
        states = states + self.dropout(found)
        states = self.after_attention(states if self.pre else self.attention_norm(states))
        if self.source_attention is not None and self.source_norm is not None and source is not None:
            normed = self.source_norm(states) if self.pre else states
            states = states + self.dropout(self.source_attention(normed, source, source_mask))
            states = states if self.pre else self.source_norm(states)
            states = states if self.after_source_attention is None else self.after_source_attention(states)
        normed = self.feed_forward_norm(states) if self.pre else states
        states = states + self.dropout(self.feed_forward(normed))
        result: Tensor = self.states(states if self.pre else self.feed_forward_norm(states))
        return result


class TransformerDecoder(ParallelDecoder):
    """A stack of Transformer layers over the target.

    Steps run through the layers while a tap is watched, otherwise through the faster `PreparedDecoder`.
    """

    def __init__(self, cell: config.Model, part: config.TransformerDecoder, vocabulary: int) -> None:
        super().__init__()
        width = resolved(part.width)
        self.embedding = TokenEmbedding(vocabulary, resolved(cell.embeddings.width), scaled=cell.embeddings.scale)
        self.entrance = Entrance(cell, width, positions=True)
        self.fixed = make_fixed_vector(cell)
        self.layers = Stack(TransformerDecoderLayer(cell, part, depth) for depth in range(part.layers))
        self.norm = make_norm(part.norm, width, cell.norm_epsilon) if part.norm_place == "pre" else nn.Identity()
        self.exit = Exit(cell)

    def start(self, memory: Memory) -> DecodingState:
        """Return the initial state: the source's keys and values for every layer, and an empty cache."""
        like = self.embedding.weight
        source = prepared_source(self._source(memory), like)
        attentions = [layer.attention for layer in self.layers]
        cache = KeyValueCache.blank(
            len(memory.mask), [attention.heads for attention in attentions], attentions[0].head_width, like
        )
        return DecodingState(0, source, {}, cache, fast_steps=self._fast_steps())

    def _fast_steps(self) -> PreparedDecoder | None:
        """Return the decoder optimised for single steps; `None` in training mode or if a module has a hook."""
        made = _PREPARED.get(self)
        if made is None or not made.is_current():
            made = _PREPARED[self] = PreparedDecoder(self)
        return None if self.training or made.has_hooks() else made

    def _source(self, memory: Memory) -> dict[str, Tensor]:
        """Return the tensors that steps need of the source, by name."""
        source = {"mask": memory.mask}
        if self.fixed is not None:
            source["summary"] = memory.summary
        for depth, layer in enumerate(self.layers):
            if layer.source_attention is not None:
                source |= source_key_values(layer.source_attention, memory, f"{depth}")
        return source

    def step(self, tokens: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Read one token B after those in the cache; return its output state B×E and the new decoding state."""
        assert state.cache is not None
        past = state.cache.longer()
        ahead = state.advance({}, past)
        fast = state.fast_steps
        if fast is not None and not torch.is_grad_enabled() and not fast.is_watched():
            return fast.step(tokens, state, past), ahead
        states = self._enter(tokens[:, None], state)  # B×1×D
        source_mask = state.source["mask"][:, None, None, :]  # B×1×1×S
        for depth, layer in enumerate(self.layers):
            source = state.key_values(f"{depth}", source_mask.shape[-1])
            states = layer(states, source, source_mask, (past, depth))
        return self.exit(self.norm(states))[:, 0], ahead

    def read(self, memory: Memory, inputs: Tensor) -> Tensor:
        """Return the output states B×T×E of all inputs B×T in one pass."""
        states = self.entrance(self.embedding(inputs))  # B×T×D
        if self.fixed is not None:
            states = self.fixed(states, memory.summary, 0)
        source_mask = memory.mask[:, None, None, :]  # B×1×1×S
        for layer in self.layers:
            states = layer(states, memory.states, source_mask)
        result: Tensor = self.exit(self.norm(states))
        return result

    def _enter(self, inputs: Tensor, state: DecodingState) -> Tensor:
        """Compute the first states B×T×D of inputs B×T that follow a decoding state."""
        states: Tensor = self.entrance(self.embedding(inputs), state.position)
        if self.fixed is not None:
            states = self.fixed(states, state.of_source("summary"), state.position)
        return states


_PREPARED: WeakKeyDictionary[TransformerDecoder, PreparedDecoder] = WeakKeyDictionary()
"""The optimised form of each decoder; not an attribute, so that a copy of a decoder makes its own."""
