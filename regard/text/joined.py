"""Sources of several texts: texts separated by tabs are joined with the separator token."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from regard.foundation.errors import UsageError
from regard.text.specials import SEP, SPECIALS
from regard.text.tokenizer import Encoded, Kind, Tokenizer

if TYPE_CHECKING:
    from regard.text.packed_rows import PackedRows

TAB = "\t"


class Joined(Tokenizer):
    """A tokenizer of any kind for sources of several texts, such as two sentences, or a context and a question."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.one = tokenizer
        """The tokenizer of each text."""

    @cached_property
    def size(self) -> int:
        """Number of tokens, special ones included."""
        return self.one.size

    @cached_property
    def kind(self) -> Kind:
        """Its kind."""
        return self.one.kind

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that determines its behaviour."""
        return self.one.fingerprint

    @cached_property
    def vocabulary(self) -> list[str]:
        """All tokens, in the order of their ids."""
        return self.one.vocabulary

    @cached_property
    def merges(self) -> list[tuple[str, str]]:
        """Merges of byte-pair encoding."""
        return self.one.merges

    def normalise(self, text: str) -> str:
        """Return the text after tokenising and detokenising."""
        return self.one.normalise(text)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids."""
        return self.one.decode(ids)

    def save(self, path: Path) -> None:
        """Write the tokenizer of each text."""
        self.one.save(path)

    def encode(self, text: str) -> Encoded:
        """Return the tokens of all texts; a separator is a separate word that spans its tab."""
        whole = Encoded([], [], [], [])
        start = word = 0
        for part in text.split(TAB):
            if start:
                _extend(whole, Encoded([SEP], [SPECIALS[SEP]], [(0, 1)], [0]), start - 1, word)
                word += 1
            found = self.one.encode(part)
            _extend(whole, found, start, word)
            word += max(found.words, default=-1) + 1
            start += len(part) + 1
        return whole

    def encode_packed(self, texts: Sequence[str]) -> "PackedRows":
        """Return the ids of many texts in one array."""
        from regard.text.packed_rows import PackedRows

        return PackedRows.of(self.encode_batch(texts))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return only the ids."""
        rows = [text.split(TAB) for text in texts]
        ids = iter(self.one.encode_batch([part for row in rows for part in row]))
        return [list(chain(next(ids), *([SEP, *next(ids)] for _ in row[1:]))) for row in rows]


def check_parts(text: str, texts: int) -> None:
    """Raise if a source does not have as many texts as the model reads, if it reads several."""
    if texts > 1 and (count := text.count(TAB) + 1) != texts:
        raise UsageError(
            f"This run reads {texts} texts at once (or a picture and a question), separated by a tab, but "
            f"{'only one was' if count == 1 else f'{count} were'} given. Give both."
        )


def _extend(whole: Encoded, part: Encoded, start: int, word: int) -> None:
    """Append a part whose first character and first word have the given indices."""
    whole.ids.extend(part.ids)
    whole.tokens.extend(part.tokens)
    whole.offsets.extend((first + start, last + start) for first, last in part.offsets)
    whole.words.extend(number + word for number in part.words)
