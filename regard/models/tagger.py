"""The tagger: predicts a tag for every token.

Axes: B batch, S source positions, D width, C tags.
"""

from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import resolved
from regard.models.encoder_model import EncoderModel, gather_positions
from regard.models.spelled_words import SpelledWords
from regard.nn.dropout import Dropout
from regard.text.spelling import Spelling


class Tagger(EncoderModel):
    """scores_s = W h_s + b, where h are the encoder's states.

    With `model.letters` the encoder reads the sum of the vectors of a token and of the spelling of its word.
    """

    def __init__(self, cell: config.Model, vocabulary: int, tags: int, spelling: Spelling | None = None) -> None:
        super().__init__(cell, vocabulary)
        self.spelled_words: SpelledWords | None = None
        if cell.letters is not None:
            if spelling is None:
                raise ValueError("A tagger with model.letters needs the spelling of its tokens.")
            self.spelled_words = SpelledWords(cell.letters, spelling, resolved(cell.embeddings.width))
        self.dropout = Dropout(cell.dropout)
        self.classifier = nn.Linear(self.width, tags)

    def vectors(self, source: Tensor) -> Tensor:
        """Return the vectors B×S×E of tokens B×S, with those of their words."""
        vectors = super().vectors(source)
        return vectors if self.spelled_words is None else vectors + self.spelled_words(source)

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
