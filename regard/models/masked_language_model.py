"""The masked language model: predicts hidden words from the words around them.

Axes: B batch, S source positions, D width, E embedding width, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import resolved
from regard.models.encoder_model import EncoderModel, gather_positions


class MaskedLanguageModel(EncoderModel):
    """P(token at s) = softmax(W g_s + b), g = norm(gelu(U h)), W the token embeddings (Devlin et al., 2019)."""

    def __init__(self, cell: config.Model, vocabulary: int) -> None:
        super().__init__(cell, vocabulary)
        width = resolved(cell.embeddings.width)
        self.transform = nn.Linear(self.width, width)
        self.norm = nn.LayerNorm(width, eps=cell.norm_epsilon)
        self.output_bias = nn.Parameter(torch.zeros(vocabulary))

    @property
    def output_weight(self) -> Tensor:
        """The weight V×E of the output layer: the token embeddings."""
        return self.source_embedding.weight

    def output_states(self, source: Tensor) -> Tensor:
        """Return the output states B×S×E of sources B×S."""
        states: Tensor = self.norm(F.gelu(self.transform(self.encode(source).states)))
        return states

    def outputs(self, source: Tensor, asked: Tensor) -> Tensor:
        """Return the output states of sources B×S at the positions `asked` B×T: B×T×E."""
        return gather_positions(self.output_states(source), asked)

    def scores(self, outputs: Tensor) -> Tensor:
        """Return the logits …×V of output states …×E."""
        return F.linear(outputs, self.output_weight, self.output_bias)

    def forward(self, source: Tensor) -> Tensor:
        """Return the logits B×S×V of the token at every position of sources B×S."""
        return self.scores(self.output_states(source))
