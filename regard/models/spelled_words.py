"""Vectors of words from their letters, for every token of a text.

Axes: B batch, S source positions, N words, L letters of a word, P letters of a token, E embedding width.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import model as config
from regard.nn.letters import NO_LETTER, LetterEncoder
from regard.text.spelling import LETTERS, Spelling

MOST_LETTERS = 32
"""Bytes of a word that are read; of a longer word the first."""


class SpelledWords(nn.Module):
    """For each token the vector of its whole word, from the letters of all tokens of the word.

    The letters follow from the tokens, so that texts, stores and batches need not contain them.
    """

    letters: Tensor
    starts: Tensor

    def __init__(self, settings: config.Letters, spelling: Spelling, width: int) -> None:
        super().__init__()
        self.encoder = LetterEncoder(
            LETTERS, width=settings.width, filters=settings.filters, kernel=settings.kernel, out=width
        )
        self.register_buffer("letters", torch.from_numpy(spelling.letters), persistent=False)
        self.register_buffer("starts", torch.from_numpy(spelling.starts), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vectors B×S×E of tokens B×S."""
        letters, words = self.spell(tokens)
        # Each word is encoded once.
        different, which = letters.unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
        return F.embedding(which[words], self.encoder(different))

    def spell(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Return the letters N×L of all words of tokens B×S, and the word of each token: B×S."""
        starts = self.starts[tokens]  # B×S
        starts[:, 0] = True
        words = starts.flatten().cumsum(0) - 1  # BS
        spelled = self.letters[tokens].long().flatten(0, 1)  # BS×P
        real = spelled != NO_LETTER
        count = real.sum(1)  # BS
        before = count.cumsum(0) - count  # BS: letters of all tokens before
        within = before - before[starts.flatten()][words]  # BS: letters of the word before its token
        places = within[:, None] + torch.arange(spelled.shape[1], device=tokens.device)  # BS×P
        real = real & (places < MOST_LETTERS)
        longest = max(1, int((places + 1).mul(real).max()))
        letters = spelled.new_full((int(words[-1]) + 1, longest), NO_LETTER)  # N×L
        letters[words[:, None].expand_as(places)[real], places[real]] = spelled[real]
        return letters, words.view(tokens.shape)
