"""The convolutional decoder.

Axes: B batch, T target positions, S source positions, E embedding width, D width.
"""

import math

from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import resolved
from regard.models.decoder import Exit, ParallelDecoder, make_fixed_vector, source_key_values
from regard.models.memory import DecodingState, Memory
from regard.models.parts import Entrance, source_attention
from regard.nn.attention import KeyValues
from regard.nn.convolution import GatedConvolution
from regard.nn.dropout import Dropout
from regard.nn.embeddings import TokenEmbedding
from regard.nn.stack import Stack
from regard.nn.taps import Tap


class ConvDecoderLayer(nn.Module):
    """A causal gated convolution, then attention to the source added to its result (Gehring et al., 2017)."""

    def __init__(self, cell: config.Model, part: config.ConvDecoder, depth: int = 0) -> None:
        super().__init__()
        width = resolved(part.width)
        self.convolution = GatedConvolution(width, part.kernel, causal=True, dropout=cell.dropout)
        self.source_attention = source_attention(cell, width, f"decoder.layers.{depth}.source_attention")
        out = self.source_attention.out_width if self.source_attention is not None else width
        self.fit = nn.Identity() if out == width else nn.Linear(out, width)
        self.states = Tap(time=1)

    def attend(self, states: Tensor, source: Tensor | KeyValues | None, source_mask: Tensor) -> Tensor:
        """Add what states B×T×D find in the source by attention: B×T×D."""
        if self.source_attention is not None and source is not None:
            found = self.fit(self.source_attention(states, source, source_mask))
            states = (states + found) * math.sqrt(0.5)
        result: Tensor = self.states(states)
        return result


class ConvDecoder(ParallelDecoder):
    """Stacked causal convolutions over the target, attending to the source on every layer."""

    def __init__(self, cell: config.Model, part: config.ConvDecoder, vocabulary: int) -> None:
        super().__init__()
        self.width = resolved(part.width)
        self.embedding = TokenEmbedding(vocabulary, resolved(cell.embeddings.width), scaled=cell.embeddings.scale)
        self.entrance = Entrance(cell, self.width, positions=True)
        self.fixed = make_fixed_vector(cell)
        self.layers = Stack(ConvDecoderLayer(cell, part, depth) for depth in range(part.layers))
        self.dropout = Dropout(cell.dropout)
        self.exit = Exit(cell)

    def start(self, memory: Memory) -> DecodingState:
        """Return the initial state: the source's keys and values for every layer, and zeros as each layer's past."""
        source = {"mask": memory.mask, "summary": memory.summary}
        past: dict[str, Tensor] = {}
        for depth, layer in enumerate(self.layers):
            if layer.source_attention is not None:
                source |= source_key_values(layer.source_attention, memory, f"{depth}")
            before = layer.convolution.before
            past[f"{depth}"] = memory.states.new_zeros(len(memory.mask), before, self.width)
        return DecodingState(0, source, past)

    def _enter(self, inputs: Tensor, state: DecodingState) -> Tensor:
        states: Tensor = self.entrance(self.embedding(inputs), state.position)  # B×T×D
        if self.fixed is not None:
            states = self.fixed(states, state.of_source("summary"), state.position)
        return states

    def step(self, tokens: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Read one token B after the window that each layer keeps."""
        states = self._enter(tokens[:, None], state)
        past: dict[str, Tensor] = {}
        source_mask = state.source["mask"][:, None, None, :]
        for depth, layer in enumerate(self.layers):
            one, past[f"{depth}"] = layer.convolution.step(states[:, 0], state.past[f"{depth}"])
            states = layer.attend(one[:, None], state.key_values(f"{depth}"), source_mask)
        return self.exit(self.dropout(states))[:, 0], state.advance(past)

    def read(self, memory: Memory, inputs: Tensor) -> Tensor:
        """Return the output states B×T×E for all inputs B×T in one pass."""
        states = self.entrance(self.embedding(inputs))  # B×T×D
        if self.fixed is not None:
            states = self.fixed(states, memory.summary, 0)
        source_mask = memory.mask[:, None, None, :]
        for layer in self.layers:
            states = layer.attend(layer.convolution(states), memory.states, source_mask)
        result: Tensor = self.exit(self.dropout(states))
        return result
