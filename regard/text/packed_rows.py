"""Rows of ids of different lengths, packed into one array."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PackedRows:
    """All ids one after another, and the length of each row."""

    ids: NDArray[np.unsignedinteger[Any]]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Self:
        """Pack rows."""
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        return cls(np.fromiter(chain.from_iterable(rows), dtype=np.uint32, count=int(lengths.sum())), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def select(self, chosen: NDArray[np.bool_]) -> Self:
        """Return the chosen rows."""
        return type(self)(self.ids[np.repeat(chosen, self.lengths)], self.lengths[chosen])

    def astype(self, dtype: np.dtype[Any]) -> Self:
        """Return the same rows with ids of another type."""
        return type(self)(self.ids.astype(dtype, copy=False), self.lengths)

    def rows(self) -> list[list[int]]:
        """Return the rows as lists."""
        ids, ends = self.ids.tolist(), np.cumsum(self.lengths).tolist()
        return [ids[end - length : end] for end, length in zip(ends, self.lengths.tolist(), strict=True)]


_MOST_WORDS = 100_000
_MOST_CHARACTERS = 32 * _MOST_WORDS


class PackedWords:
    """The ids of words, kept in one array, so that texts are put together without a loop over their words."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._characters = 0
        self._ids = np.zeros(0, dtype=np.uint32)
        self._starts = np.zeros(0, dtype=np.int64)
        self._lengths = np.zeros(0, dtype=np.int64)

    @property
    def is_full(self) -> bool:
        """Whether it has so many words that a new one should be started, which bounds its memory."""
        return len(self._numbers) > _MOST_WORDS or self._characters > _MOST_CHARACTERS

    def add(self, words: Sequence[str], ids: Sequence[Sequence[int]]) -> None:
        """Add new words with their ids."""
        self._numbers.update(zip(words, range(len(self._numbers), len(self._numbers) + len(words)), strict=True))
        self._characters += sum(map(len, words))
        added = PackedRows.of(ids)
        starts = np.cumsum(added.lengths) - added.lengths + len(self._ids)
        self._ids = np.concatenate((self._ids, added.ids))
        self._starts = np.concatenate((self._starts, starts))
        self._lengths = np.concatenate((self._lengths, added.lengths))

    def join(self, texts: Sequence[str], encode: Callable[[list[str]], Sequence[Sequence[int]]]) -> PackedRows:
        """Return the ids of texts; `encode` returns those of words that it does not have yet."""
        rows = [text.split() for text in texts]
        counts, words = list(map(len, rows)), list(chain.from_iterable(rows))
        numbers = np.fromiter(map(self._numbers.get, words, repeat(-1)), dtype=np.int64, count=len(words))
        unknown = np.flatnonzero(numbers < 0).tolist()
        if unknown:
            new = list(dict.fromkeys(words[place] for place in unknown))
            self.add(new, encode(new))
            numbers[unknown] = [self._numbers[words[place]] for place in unknown]
        lengths = self._lengths[numbers]
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        places = np.repeat(self._starts[numbers] - (ends - lengths), lengths) + np.arange(total)
        last_words = np.cumsum(np.asarray(counts, dtype=np.int64))
        last = np.concatenate((np.zeros(1, dtype=np.int64), ends))[last_words]
        return PackedRows(self._ids[places], np.diff(last, prepend=0))
