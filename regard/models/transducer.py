"""n → n: every token is read, and answered with a tag.

Axes: B batch, S source positions, D width, C tags.
"""

from torch import Tensor, nn

from regard.config import model as config
from regard.models.reader import Reader, at
from regard.nn.dropout import Dropout


class Transducer(Reader):
    """scores_s = W h_s + b, h the encoder's states."""

    def __init__(self, cell: config.Model, vocabulary: int, tags: int) -> None:
        super().__init__(cell, vocabulary)
        self.dropout = Dropout(cell.dropout)
        self.classifier = nn.Linear(self.width, tags)

    def outputs(self, source: Tensor, asked: Tensor) -> Tensor:
        """The states of sources B×S at the places asked for B×T: B×T×D."""
        return at(self.encode(source).states, asked)

    def scores(self, outputs: Tensor) -> Tensor:
        """Scores …×C of states …×D."""
        scores: Tensor = self.classifier(self.dropout(outputs))
        return scores

    def forward(self, source: Tensor) -> Tensor:
        """Scores B×S×C of sources B×S."""
        return self.scores(self.encode(source).states)
