"""The Transformer decoder.

Axes: B batch, T target positions, S source positions, H heads, K head width, E embedding width, D width.
"""

import torch
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import settled
from regard.models.decoder import Exit, ParallelDecoder, fixed_vector, remembered, source_of
from regard.models.memory import DecodingState, Memory
from regard.models.parts import Entrance, feed_forward, self_attention, source_attention
from regard.nn.attention import Remembered
from regard.nn.dropout import Dropout
from regard.nn.embeddings import TokenEmbedding
from regard.nn.normalisation import make_norm
from regard.nn.stack import Stack
from regard.nn.taps import Tap


class TransformerDecoderLayer(nn.Module):
    """Attention to the past, attention to the source, feed-forward, each with residual and norm (Vaswani, 2017)."""

    def __init__(self, cell: config.Model, part: config.TransformerDecoder, depth: int = 0) -> None:
        super().__init__()
        width = settled(part.width)
        self.pre = part.norm_place == "pre"
        self.attention = self_attention(cell, width, f"decoder.layers.{depth}.attention")
        self.attention_norm = make_norm(part.norm, width)
        self.source_attention = source_attention(cell, width, f"decoder.layers.{depth}.source_attention")
        self.source_norm = None if self.source_attention is None else make_norm(part.norm, width)
        self.feed_forward = feed_forward(cell, part)
        self.feed_forward_norm = make_norm(part.norm, width)
        self.dropout = Dropout(cell.dropout)
        self.states = Tap(time=1)

    def forward(
        self,
        states: Tensor,
        past: Remembered | None,
        source: Remembered | None,
        source_mask: Tensor,
        start: int,
    ) -> tuple[Tensor, Remembered]:
        """States B×T×D at positions start, start+1, … behind a past; also that past with them added."""
        normed = self.attention_norm(states) if self.pre else states
        own = self.attention.remember(normed, start)
        if past is not None:
            keys = torch.cat([past.keys, own.keys], dim=2)  # B×H×(start+T)×K
            own = Remembered(keys, torch.cat([past.values, own.values], dim=2))
        found = self.attention(normed, own, start=start, causal=past is None)
        states = states + self.dropout(found)
        states = states if self.pre else self.attention_norm(states)
        if self.source_attention is not None and self.source_norm is not None and source is not None:
            normed = self.source_norm(states) if self.pre else states
            states = states + self.dropout(self.source_attention(normed, source, source_mask))
            states = states if self.pre else self.source_norm(states)
        normed = self.feed_forward_norm(states) if self.pre else states
        states = states + self.dropout(self.feed_forward(normed))
        states = states if self.pre else self.feed_forward_norm(states)
        return self.states(states), own


class TransformerDecoder(ParallelDecoder):
    """A stack of Transformer layers over the target."""

    def __init__(self, cell: config.Model, part: config.TransformerDecoder, vocabulary: int) -> None:
        super().__init__()
        width = settled(part.width)
        self.embedding = TokenEmbedding(vocabulary, settled(cell.embeddings.width), scaled=cell.embeddings.scale)
        self.entrance = Entrance(cell, width, positions=True)
        self.fixed = fixed_vector(cell)
        self.layers = Stack(TransformerDecoderLayer(cell, part, depth) for depth in range(part.layers))
        self.norm = make_norm(part.norm, width) if part.norm_place == "pre" else nn.Identity()
        self.exit = Exit(cell)

    def start(self, memory: Memory) -> DecodingState:
        """Keys and values of the source for every layer, no past."""
        source = {"mask": memory.mask}
        if self.fixed is not None:
            source["summary"] = memory.summary
        for depth, layer in enumerate(self.layers):
            if layer.source_attention is not None:
                source |= source_of(layer.source_attention, memory, f"{depth}")
        return DecodingState(0, source, {})

    def step(self, tokens: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Read one token B behind the cached past."""
        states, past = self._run(tokens[:, None], state)
        return states[:, 0], state.advance(past)

    def read(self, memory: Memory, inputs: Tensor) -> Tensor:
        """Output states B×T×E for all inputs B×T in one pass."""
        return self._run(inputs, self.start(memory))[0]

    def _run(self, inputs: Tensor, state: DecodingState) -> tuple[Tensor, dict[str, Tensor]]:
        start, source = state.position, state.source
        past: dict[str, Tensor] = {}
        states = self.entrance(self.embedding(inputs), start)  # B×T×D
        if self.fixed is not None:
            states = self.fixed(states, source["summary"], start)
        source_mask = source["mask"][:, None, None, :]  # B×1×1×S
        for depth, layer in enumerate(self.layers):
            states, own = layer(
                states, remembered(state.past, f"{depth}"), remembered(source, f"{depth}"), source_mask, start
            )
            past |= {f"{depth}.keys": own.keys, f"{depth}.values": own.values}
        return self.exit(self.norm(states)), past
