"""The tagger: predicts a tag for every token.

Axes: B batch, S source positions, D width, C tags.
"""

from torch import Tensor, nn

from regard.config import model as config
from regard.models.encoder_model import EncoderModel, gather_positions
from regard.nn.dropout import Dropout


class Tagger(EncoderModel):
    """scores_s = W h_s + b, where h are the encoder's states."""

    def __init__(self, cell: config.Model, vocabulary: int, tags: int) -> None:
        super().__init__(cell, vocabulary)
        self.dropout = Dropout(cell.dropout)
        self.classifier = nn.Linear(self.width, tags)

    def outputs(self, source: Tensor, asked: Tensor) -> Tensor:
        """Return the states of sources B×S at the positions `asked` B×T: B×T×D."""
        return gather_positions(self.encode(source).states, asked)

    def scores(self, outputs: Tensor) -> Tensor:
        """Return the scores …×C of states …×D."""
        scores: Tensor = self.classifier(self.dropout(outputs))
        return scores

    def forward(self, source: Tensor) -> Tensor:
        """Return the scores B×S×C of sources B×S."""
        return self.scores(self.encode(source).states)
