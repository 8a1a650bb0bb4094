"""A rule on the number of words of an output."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.search.rules import Free
from regard.text.normalising import WORD_START
from regard.text.specials import EOS, UNK
from regard.text.tokenizer import Tokenizer


class Words(NamedTuple):
    """The words so far."""

    number: int = 0
    """Number of words that have at least one character."""
    spaced: bool = False
    """Whether a space has been written and no character after it."""


class WordCount(Free):
    """The output has between `least` and `most` words, separated by white space.

    The end is allowed only within these limits, and after the last word no other begins. Among the outputs of the asked
    length, search still finds the best: a beam drops beginnings that cannot end well there.
    """

    def __init__(self, least: int, most: int, tokenizer: Tokenizer) -> None:
        self.least, self.most, self.needs = least, most, most
        pieces = tokenizer.vocabulary
        self._begins = torch.tensor([piece.startswith(WORD_START) for piece in pieces])
        self._begins[UNK] = True  # decoded as a word of its own
        self._space = pieces.index(WORD_START) if WORD_START in pieces else -1
        self._no_other_word = ~self._begins
        self._no_end = torch.ones(len(pieces), dtype=torch.bool)
        self._no_end[EOS] = False

    @property
    def start(self) -> Words:
        """No word."""
        return Words()

    def after(self, state: Words, token: int) -> Words:
        """Count a word when its first character is written."""
        if token == EOS:
            return state
        if token == self._space:
            return Words(state.number, spaced=True)
        begins = state.spaced or not state.number or bool(self._begins[token])
        return Words(state.number + begins)

    def allowed(self, state: Words, left: int, size: int) -> Tensor | None:
        """Forbid the end of an output that is too short, and another word after the last."""
        if state.number < self.least or state.spaced:
            return self._no_end
        return self._no_other_word if state.number >= self.most else None
