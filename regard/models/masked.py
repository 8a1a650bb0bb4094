"""n → n, masked: hidden words are guessed from the words around them.

Axes: B batch, S source positions, D width, E embedding width, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import settled
from regard.models.reader import Reader, at


class MaskedModel(Reader):
    """P(token at s) = softmax(W g_s + b), g = norm(gelu(U h)), W the token vectors (Devlin et al., 2019)."""

    def __init__(self, cell: config.Model, vocabulary: int) -> None:
        super().__init__(cell, vocabulary)
        width = settled(cell.embeddings.width)
        self.transform = nn.Linear(self.width, width)
        self.norm = nn.LayerNorm(width, eps=cell.norm_epsilon)
        self.output_bias = nn.Parameter(torch.zeros(vocabulary))

    @property
    def output_weight(self) -> Tensor:
        """The output layer V×E: the token vectors."""
        return self.source_embedding.weight

    def guesses(self, source: Tensor) -> Tensor:
        """Output states B×S×E of sources B×S."""
        states: Tensor = self.norm(F.gelu(self.transform(self.encode(source).states)))
        return states

    def outputs(self, source: Tensor, asked: Tensor) -> Tensor:
        """Output states of sources B×S at the places asked for B×T: B×T×E."""
        return at(self.guesses(source), asked)

    def scores(self, outputs: Tensor) -> Tensor:
        """Scores …×V of output states …×E."""
        return F.linear(outputs, self.output_weight, self.output_bias)

    def forward(self, source: Tensor) -> Tensor:
        """Scores B×S×V of the token at every place of sources B×S."""
        return self.scores(self.guesses(source))
