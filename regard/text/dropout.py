"""BPE dropout: words are segmented differently each time they are read (Provilkov et al., 2020), from a seed."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.foundation.errors import UsageError
from regard.text.normalising import WORD_START
from regard.text.specials import SPECIALS
from regard.text.tokenizer import Tokenizer

_BLOCK = 256


class BpeDropout:
    """Segments the ids of a BPE tokenizer again, skipping each merge with a probability.

    At every step each candidate merge is dropped with probability p, and the best of the others is applied, until none
    is left. With p = 0 the ids are unchanged; with any p the text is. (The `tokenizers` library has dropout too, but it
    cannot be seeded, and a resumed run must see the same tokens as an uninterrupted one.)
    """

    def __init__(self, tokenizer: Tokenizer, probability: float):
        if tokenizer.kind not in ("bpe", "characters"):
            raise UsageError(
                f"text.bpe_dropout drops merges, but a tokenizer of kind {tokenizer.kind} has none. Use kind bpe, or "
                "set text.bpe_dropout=0."
            )
        self.probability = probability
        number = {token: index for index, token in enumerate(tokenizer.vocabulary)}
        self._merges = {
            (number[left], number[right]): (rank, number[left + right])
            for rank, (left, right) in enumerate(tokenizer.merges)
        }
        parts = {merged: pair for pair, (_, merged) in reversed(self._merges.items())}
        self._characters = [_leaves(token, parts) for token in range(tokenizer.size)]
        self._starts = [token.startswith(WORD_START) for token in tokenizer.vocabulary]
        self._marks = [
            number < len(SPECIALS) or (len(token) == 1 and not token.isalpha() and token != WORD_START)
            for number, token in enumerate(tokenizer.vocabulary)
        ]

    def together(
        self, rows: Sequence[Sequence[int] | NDArray[np.unsignedinteger[Any]]], generator: np.random.Generator
    ) -> list[NDArray[np.unsignedinteger[Any]]]:
        """Return the same texts as other ids, with equal words cut alike in all of them, so that they can be copied.

        Words end at white space, punctuation marks, digits and special tokens.
        """
        draws = _draws(generator)
        known: dict[tuple[int, ...], list[int]] = {}
        found = []
        for ids in rows:
            cut: list[int] = []
            for word in self._words(np.asarray(ids).tolist()):
                if word not in known:
                    known[word] = self._cut(list(word), draws)
                cut += known[word]
            found.append(np.asarray(cut, dtype=np.uint32))
        return found

    def _words(self, ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Yield the characters of each word, each punctuation mark and each digit."""
        word: list[int] = []
        for token in ids:
            for place, character in enumerate(self._characters[token]):
                if (place == 0 and self._starts[token]) or self._marks[character]:
                    yield tuple(word)
                    word = []
                word.append(character)
                if self._marks[character]:
                    yield tuple(word)
                    word = []
        yield tuple(word)

    def __call__(
        self, ids: Sequence[int] | NDArray[np.unsignedinteger[Any]], generator: np.random.Generator
    ) -> NDArray[np.unsignedinteger[Any]]:
        """Return the same text as other ids."""
        draws = _draws(generator)
        cut: list[int] = []
        word: list[int] = []
        for token in np.asarray(ids).tolist():
            if self._starts[token]:
                cut += self._cut(word, draws)
                word = []
            word += self._characters[token]
        cut += self._cut(word, draws)
        return np.asarray(cut, dtype=np.uint32)

    def _cut(self, symbols: list[int], draws: Iterator[float]) -> list[int]:
        """Segment one word from its characters, applying the best merge first, the leftmost of equal ones."""
        merges, probability = self._merges, self.probability
        candidates = [merges.get(pair) for pair in pairwise(symbols)]
        while True:
            best, place = None, 0
            for here, candidate in enumerate(candidates):
                # a candidate worse than the best so far needs no draw, since it would not be applied
                better = candidate is not None and (best is None or candidate[0] < best[0])
                if better and (not probability or next(draws) >= probability):
                    best, place = candidate, here
            if best is None:
                return symbols
            symbols[place : place + 2] = [best[1]]
            del candidates[place]
            if place:
                candidates[place - 1] = merges.get((symbols[place - 1], symbols[place]))
            if place < len(candidates):
                candidates[place] = merges.get((symbols[place], symbols[place + 1]))


def _leaves(token: int, parts: dict[int, tuple[int, int]]) -> list[int]:
    """Return the characters that a token was merged from."""
    if token not in parts:
        return [token]
    left, right = parts[token]
    return _leaves(left, parts) + _leaves(right, parts)


def _draws(generator: np.random.Generator) -> Iterator[float]:
    """Yield uniform random numbers, drawn in blocks."""
    while True:
        yield from generator.random(_BLOCK).tolist()
