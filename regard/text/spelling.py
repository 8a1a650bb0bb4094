"""The spelling of tokens: the bytes of each, in UTF-8."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from regard.text.normalising import WORD_START
from regard.text.specials import SPECIALS
from regard.text.tokenizer import BYTES, Tokenizer

WORD_START_LETTER = 257
LETTERS = 258
"""No letter (0), a letter for each byte (1 to 256), and one for the start of a word."""


@dataclass(frozen=True)
class Spelling:
    """The letters of every token of a vocabulary."""

    letters: NDArray[np.int16]
    """The letters of each token, 0 after the last: V×C. Special tokens have none."""
    starts: NDArray[np.bool_]
    """Which tokens begin a word: V. A special token is a word of its own."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Self:
        """Return the spelling of a tokenizer's vocabulary."""
        byte_tokens = {token: bytes([value]) for value, token in enumerate(BYTES)}
        spelled = [
            b"" if number < len(SPECIALS) else byte_tokens.get(token, token.removeprefix(WORD_START).encode())
            for number, token in enumerate(tokenizer.vocabulary)
        ]
        begins = [token.startswith(WORD_START) for token in tokenizer.vocabulary]
        table = np.zeros((len(spelled), 1 + max(map(len, spelled))), dtype=np.int16)
        for row, content, begin in zip(table, spelled, begins, strict=True):
            found = [WORD_START_LETTER] * begin + [1 + byte for byte in content]
            row[: len(found)] = found
        special = np.arange(len(spelled)) < len(SPECIALS)
        return cls(table, np.asarray(begins) | special)
