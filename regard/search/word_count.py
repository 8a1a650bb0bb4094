"""A rule on the number of words of an output."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.search.rules import Free, one_of
from regard.text.loops import PATIENCE
from regard.text.normalising import WORD_START
from regard.text.specials import EOS, UNK
from regard.text.tokenizer import Tokenizer

LONGEST_WORD = PATIENCE
"""Tokens of a word before another that is required. A model that repeats a character would not come to the other."""


class Words(NamedTuple):
    """The words so far."""

    number: int = 0
    """Number of words that have at least one character."""
    spaced: bool = False
    """Whether a space has been written and no character after it."""
    length: int = 0
    """Tokens of the last word."""


class WordCount(Free):
    """The output has between `least` and `most` words, separated by white space.

    The end is allowed only within these limits, and after the last word no other begins. While words are missing, the
    next one must begin after `LONGEST_WORD` tokens, and once there is just enough room for those missing. Among the
    outputs of the asked length, search still finds the best: a beam drops beginnings that cannot end well there.
    """

    def __init__(self, least: int, most: int, tokenizer: Tokenizer) -> None:
        self.least, self.most = least, most
        pieces = tokenizer.vocabulary
        self._begins = torch.tensor([piece.startswith(WORD_START) for piece in pieces])
        self._begins[UNK] = True  # decoded as a word of its own
        self._space = pieces.index(WORD_START) if WORD_START in pieces else -1
        self._no_other_word = ~self._begins
        self._no_end = ~one_of([EOS], len(pieces))
        self._character = self._no_end & ~one_of([self._space] if self._space >= 0 else [], len(pieces))
        self._next_word = self._begins & self._character & ~one_of([UNK], len(pieces))
        self._cost = 1
        """Tokens that a word needs: one if some tokens are a space and a character, otherwise two."""
        if not self._next_word.any():
            self._cost, self._next_word = 2, ~self._character & self._no_end
        self.needs = most * self._cost

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
        return Words(state.number + begins, length=1 if begins else state.length + 1)

    def allowed(self, state: Words, left: int, size: int) -> Tensor | None:
        """Forbid the end of an output that is too short, and another word after the last."""
        missing = self.least - state.number
        if missing > 0:
            is_begun = state.spaced or not state.number  # the next character begins a word
            room = left - 1  # the end takes a token
            if room <= (1 + (missing - 1) * self._cost if is_begun else missing * self._cost):
                return self._character if is_begun else self._next_word
            return self._next_word if state.length >= LONGEST_WORD else self._no_end
        if state.spaced:
            return self._no_end
        return self._no_other_word if state.number >= self.most else None
