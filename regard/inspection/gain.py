"""What the source did for each word: how much likelier the word is with its source than with a blank one.

Axes: T target tokens.
"""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from regard.inspection.plain_data import rounded
from regard.inspection.vectors import Question, Vectors
from regard.tasks.trace import Side, Trace


@dataclass(frozen=True)
class Gain:
    """The gain of each target token over a source whose every token is the unknown word, in nats.

        log P(y_t | x, y_1 … y_{t−1}) − log P(y_t | blank, y_1 … y_{t−1})

    A word's gain is the sum of its tokens'. If it is below zero, the source made the word less likely: whatever made
    the model write it, the source did not, and the word is flagged as possibly invented.
    """

    tokens: Tensor
    """T."""
    target: Side

    @classmethod
    def of(cls, trace: Trace) -> Self:
        """One more pass of the model, over the blank source."""
        vectors = Vectors(trace)
        places = [index for index, special in enumerate(trace.source.special) if not special]
        with torch.no_grad():
            logits = vectors.model.scores(vectors.states(*vectors.without([(places, ())])))  # 1×T×V
        blank = Question(torch.tensor(trace.target.ids)).answers(logits)[0]  # T
        return cls(trace.target_log_probs - blank.cpu(), trace.target)

    @property
    def words(self) -> Tensor:
        """The gain of each target word."""
        return self.target.summed(self.tokens)

    @property
    def unsupported(self) -> list[bool]:
        """Which words have a gain below zero; the end symbol is not a word."""
        special = dict(zip(self.target.words, self.target.special, strict=True))
        return [gain < 0 and not special[word] for word, gain in enumerate(self.words.tolist())]

    @property
    def flagged(self) -> list[bool]:
        """Which tokens belong to such a word."""
        words = self.unsupported
        return [words[word] for word in self.target.words]

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "tokens": rounded(self.tokens),
            "words": rounded(self.words),
            "flagged": self.flagged,
            "unsupported": self.unsupported,
        }


NOTE = (
    "Underlined red are words that are less likely with their source than with a blank one (gain below zero): perhaps "
    "invented."
)
"""How pages explain the gain."""
