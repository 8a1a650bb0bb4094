"""n → n: every token is read, and answered with a tag.

Axes: B batch, S source positions, D width, C tags.
"""

from torch import Tensor, nn

from regard.config import model as config
from regard.models.reader import Reader
from regard.nn.dropout import Dropout


class Transducer(Reader):
    """scores_s = W h_s + b, h the encoder's states."""

    def __init__(self, cell: config.Model, vocabulary: int, tags: int) -> None:
        super().__init__(cell, vocabulary)
        self.dropout = Dropout(cell.dropout)
        self.classifier = nn.Linear(self.width, tags)

    def forward(self, source: Tensor) -> Tensor:
        """Scores B×S×C of sources B×S."""
        scores: Tensor = self.classifier(self.dropout(self.encode(source).states))
        return scores
