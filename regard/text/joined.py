"""Several texts as one: those that a tab divides are read with the separator between them."""

from collections.abc import Sequence
from itertools import chain

from regard.errors import UsageError
from regard.text.specials import SEP, SPECIALS
from regard.text.tokenizer import Encoded, Tokenizer

TAB = "\t"


class Joined(Tokenizer):
    """The same tokenizer for sources of several texts, such as a sentence and another, or a context and a question."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer._inner)

    def encode(self, text: str) -> Encoded:
        """The tokens of all texts; a separator is a word of its own, and spans the tab that it stands for."""
        whole = Encoded([], [], [], [])
        start = word = 0
        for part in text.split(TAB):
            if start:
                _extend(whole, Encoded([SEP], [SPECIALS[SEP]], [(0, 1)], [0]), start - 1, word)
                word += 1
            found = super().encode(part)
            _extend(whole, found, start, word)
            word += max(found.words, default=-1) + 1
            start += len(part) + 1
        return whole

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids alone."""
        rows = [text.split(TAB) for text in texts]
        ids = iter(super().encode_batch([part for row in rows for part in row]))
        return [list(chain(next(ids), *([SEP, *next(ids)] for _ in row[1:]))) for row in rows]


def check_parts(text: str, texts: int) -> None:
    """Refuse a source of more texts or fewer than a model reads, where it reads several."""
    if texts > 1 and (count := text.count(TAB) + 1) != texts:
        raise UsageError(
            f"This run reads {texts} texts at once (or a picture and a question), with a tab between them, but "
            f"{'only one is' if count == 1 else f'{count} are'} there: give both."
        )


def _extend(whole: Encoded, part: Encoded, start: int, word: int) -> None:
    """Add a part that begins at a character and at a word."""
    whole.ids.extend(part.ids)
    whole.tokens.extend(part.tokens)
    whole.offsets.extend((first + start, last + start) for first, last in part.offsets)
    whole.words.extend(number + word for number in part.words)
