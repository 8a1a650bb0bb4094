"""The model that writes: a decoder, and usually an encoder and what joins them, as one cell of the grid describes it.

Axes: B batch, S source positions, T target positions, E embedding width, V vocabulary.
"""

from collections.abc import Callable
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import settled
from regard.models.components import make_decoder, make_encoder, reads_tokens
from regard.models.memory import DecodingState, Memory
from regard.nn.embeddings import TokenEmbedding
from regard.text.specials import PAD

Mix = Callable[[Tensor, Tensor], Tensor]
"""(scores …×V, true next inputs …) → the next inputs …: how training feeds the decoder words of its own."""


class Model(nn.Module):
    """P(target | source) = ∏ softmax(W o_t + b), o_t the decoder's output behind the first t target tokens.

    Without an encoder it is a language model: the source is nothing, and so is what is remembered of it. An encoder of
    something other than text reads the source tensor directly, and there are no source embeddings.
    """

    def __init__(self, cell: config.Model, source_vocabulary: int, target_vocabulary: int) -> None:
        super().__init__()
        width = settled(cell.embeddings.width)
        tie = settled(cell.embeddings.tie)
        self.cell = cell
        self.decoder = make_decoder(cell, target_vocabulary)
        self._source_embedding = None
        if reads_tokens(cell) and tie != "all":
            self._source_embedding = TokenEmbedding(source_vocabulary, width, scaled=cell.embeddings.scale)
        self.encoder = make_encoder(cell) if cell.encoder is not None else None
        self._output = None if tie != "none" else nn.Parameter(torch.randn(target_vocabulary, width) * width**-0.5)
        self.output_bias = nn.Parameter(torch.zeros(target_vocabulary))

    @property
    def source_embedding(self) -> TokenEmbedding:
        """What turns source tokens into vectors; the target's, where all embeddings are tied."""
        return self._source_embedding or self.decoder.embedding

    @property
    def output_weight(self) -> Tensor:
        """The output layer V×E; the target embeddings, where tied."""
        return self.decoder.embedding.weight if self._output is None else self._output

    def encode(self, source: Tensor) -> Memory:
        """Read source tokens B×S, or look at pixels B×3×H×W; a language model takes nothing from them."""
        if self.encoder is None:
            return Memory.blank(source)
        if not self.encoder.reads_tokens:
            memory: Memory = self.encoder(source)
        else:
            memory = self.encoder(self.source_embedding(source), source != PAD)
        return memory

    def decode(self, memory: Memory, inputs: Tensor, mix: Mix | None = None) -> Tensor:
        """Output states B×T×E behind each of the inputs B×T, all at once."""
        choose = None if mix is None else lambda states, true: mix(self.scores(states), true)
        states: Tensor = self.decoder(memory, inputs, choose)
        return states

    def scores(self, states: Tensor) -> Tensor:
        """Logits …×V of output states …×E."""
        return F.linear(states, self.output_weight, self.output_bias)

    def laid_out(self) -> Self:
        """The same model with its output layer laid out column by column, as products with few rows read it best.

        On a CPU that makes the logits of one row twice as fast, and those of forty a quarter.
        """
        if self.device.type == "cpu":
            weight = self.output_weight
            weight.data = weight.data.t().contiguous().t()  # V×E still
        return self

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.output_bias.device

    def texts(self, source: Tensor) -> tuple[Tensor, ...]:
        """Sources B×S as they are encoded: whole."""
        return (source,)

    def outputs(self, source: Tensor, inputs: Tensor) -> Tensor:
        """Output states B×T×E behind the inputs B×T, given the source, as `encode` takes it."""
        return self.decode(self.encode(source), inputs)

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        """Logits B×T×V of all next tokens, given the source (as `encode` takes it) and the tokens before B×T."""
        return self.scores(self.outputs(source, inputs))

    def start(self, memory: Memory) -> DecodingState:
        """The state before the first token."""
        return self.decoder.start(memory)

    def step(self, tokens: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Read one token B: logits B×V of the next, and the state behind it."""
        states, state = self.decoder.step(tokens, state)
        return self.scores(states), state


def build(cell: config.Model, source_vocabulary: int, target_vocabulary: int) -> Model:
    """The model of a resolved cell, freshly initialised from torch's global generator."""
    return Model(cell, source_vocabulary, target_vocabulary)
