"""The Transformer decoder.

Axes: B batch, T target positions, S source positions, H heads, K head width, E embedding width, D width.
"""

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
from regard.nn.past import Past
from regard.nn.readers import Readers
from regard.nn.stack import Stack
from regard.nn.taps import Tap


class TransformerDecoderLayer(nn.Module):
    """Attention to the past, attention to the source, feed-forward, each with residual and norm (Vaswani, 2017)."""

    def __init__(self, cell: config.Model, part: config.TransformerDecoder, depth: int = 0) -> None:
        super().__init__()
        width = settled(part.width)
        self.pre = part.norm_place == "pre"
        self.attention = self_attention(cell, width, f"decoder.layers.{depth}.attention")
        self.attention_norm = make_norm(part.norm, width, cell.norm_epsilon)
        self.source_attention = source_attention(cell, width, f"decoder.layers.{depth}.source_attention")
        self.source_norm = None if self.source_attention is None else make_norm(part.norm, width, cell.norm_epsilon)
        self.feed_forward = feed_forward(cell, part)
        self.feed_forward_norm = make_norm(part.norm, width, cell.norm_epsilon)
        self.dropout = Dropout(cell.dropout)
        self.states = Tap(time=1)

    def forward(
        self,
        states: Tensor,
        past: Past | None,
        source: Remembered | None,
        source_mask: Tensor,
        readers: Readers | None = None,
    ) -> tuple[Tensor, Past | None]:
        """States B×T×D of a whole sequence, or B×1×D behind a past; also that past with them added."""
        normed = self.attention_norm(states) if self.pre else states
        start = 0 if past is None else past.length
        own = self.attention.remember(normed, start)
        if past is None:
            found = self.attention(normed, own, causal=True)
        else:
            past = past.with_next(own.keys, own.values)
            found = self.attention(normed, Remembered(past.keys, past.values), past.filled, start=start)
        states = states + self.dropout(found)
        states = states if self.pre else self.attention_norm(states)
        if self.source_attention is not None and self.source_norm is not None and source is not None:
            normed = self.source_norm(states) if self.pre else states
            states = states + self.dropout(self.source_attention(normed, source, source_mask, readers=readers))
            states = states if self.pre else self.source_norm(states)
        normed = self.feed_forward_norm(states) if self.pre else states
        states = states + self.dropout(self.feed_forward(normed))
        states = states if self.pre else self.feed_forward_norm(states)
        return self.states(states), past


class TransformerDecoder(ParallelDecoder):
    """A stack of Transformer layers over the target."""

    def __init__(self, cell: config.Model, part: config.TransformerDecoder, vocabulary: int) -> None:
        super().__init__()
        width = settled(part.width)
        self.embedding = TokenEmbedding(vocabulary, settled(cell.embeddings.width), scaled=cell.embeddings.scale)
        self.entrance = Entrance(cell, width, positions=True)
        self.fixed = fixed_vector(cell)
        self.layers = Stack(TransformerDecoderLayer(cell, part, depth) for depth in range(part.layers))
        self.norm = make_norm(part.norm, width, cell.norm_epsilon) if part.norm_place == "pre" else nn.Identity()
        self.exit = Exit(cell)

    def start(self, memory: Memory) -> DecodingState:
        """Keys and values of the source for every layer, no past."""
        source = {"mask": memory.mask}
        if self.fixed is not None:
            source["summary"] = memory.summary
        for depth, layer in enumerate(self.layers):
            if layer.source_attention is not None:
                source |= source_of(layer.source_attention, memory, f"{depth}")
        return DecodingState(0, source, {}, tuple(Past() for _ in self.layers))

    def step(self, tokens: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Read one token B behind the cached past."""
        states = self._enter(tokens[:, None], state)
        source_mask = state.source["mask"][:, None, None, :]  # B×1×1×S
        behind: list[Past] = []
        for depth, (layer, past) in enumerate(zip(self.layers, state.layers, strict=True)):
            source = remembered(state.source, f"{depth}")
            states, longer = layer(states, past, source, source_mask, state.readers)
            behind.append(longer)
        return self.exit(self.norm(states))[:, 0], state.advance({}, tuple(behind))

    def read(self, memory: Memory, inputs: Tensor) -> Tensor:
        """Output states B×T×E for all inputs B×T in one pass."""
        state = self.start(memory)
        states = self._enter(inputs, state)
        source_mask = memory.mask[:, None, None, :]  # B×1×1×S
        for depth, layer in enumerate(self.layers):
            states, _ = layer(states, None, remembered(state.source, f"{depth}"), source_mask)
        result: Tensor = self.exit(self.norm(states))
        return result

    def _enter(self, inputs: Tensor, state: DecodingState) -> Tensor:
        """The first states B×T×D of inputs B×T behind a state."""
        states: Tensor = self.entrance(self.embedding(inputs), state.position)
        if self.fixed is not None:
            states = self.fixed(states, state.of_source("summary"), state.position)
        return states
