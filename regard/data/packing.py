"""Documents for a language model: packed one after another for training, read in sliding windows for scoring.

A document is BOS, its tokens, EOS. A window is a part of a document, or of the concatenation of all documents, with one
token more than the model reads: the last token is only predicted.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from regard.data.batches import Batch, Batches, Places, cut, pad_rows
from regard.data.store import Tokens, TokenStore
from regard.text.specials import BOS, EOS

AROUND = 2
"""Special tokens of a document."""


class Window(NamedTuple):
    """A part of a document."""

    start: int
    end: int
    """One past its last token."""
    known: int
    """How many of its first outputs an earlier window has scored; they are context only."""


def windows(tokens: int, length: int, stride: int) -> Iterator[Window]:
    """Yield windows of at most `length` inputs over a document of `tokens` tokens; each token is scored once.

    Each window starts `stride` after the one before, so that tokens have at least `length - stride` of context.
    """
    last = tokens - 1  # inputs: all but the last token
    start = asked = 0
    while asked < last:
        end = min(start + length, last)
        yield Window(start, end + 1, asked - start)
        asked, start = end, start + stride


class PackedBatches(Batches):
    """Batches of shuffled, concatenated documents, cut into windows of `length` tokens that do not overlap."""

    def __init__(
        self, store: TokenStore, tokens: int, seed: int, rank: int = 0, world_size: int = 1, *, length: int, stride: int
    ) -> None:
        super().__init__(store, tokens, seed, rank, world_size)
        self.length, self.stride = length, stride
        self._rows: tuple[int, Places, NDArray[np.int64]] | None = None

    def once(self) -> Iterator[Batch]:
        """Yield every document once, in sliding windows, in batches from short to long, for scoring."""
        found = [
            (row, window)
            for row, count in enumerate(self.store.lengths[1].tolist())
            for window in windows(count + AROUND, self.length, self.stride)
        ]
        sizes = np.asarray([window.end - window.start for _, window in found], dtype=np.int32)
        order = np.argsort(sizes, kind="stable")
        for start, end in cut(sizes[order], self.tokens).tolist():
            yield self._windows([found[index] for index in order[start:end]])

    def _windows(self, found: list[tuple[int, Window]]) -> Batch:
        pieces = [self._document(row)[window.start : window.end] for row, window in found]
        return Batch(
            source=torch.zeros(len(found), 0, dtype=torch.int64),
            target=pad_rows(pieces, (), ()),
            rows=np.asarray([row for row, _ in found], dtype=np.int64),
            known=torch.tensor([window.known for _, window in found]),
        )

    def _document(self, row: int) -> Tokens:
        return np.concatenate([[BOS], self.store[row][1].astype(np.int64), [EOS]]).astype(np.uint32)

    def _plan(self, epoch: int) -> tuple[Places, Places]:
        """Return the windows of an epoch, and the start and end of each batch of them."""
        if self._latest is None or self._latest[0] != epoch:
            count = max(1, -(-(int(self._row(epoch)[1][-1]) - 1) // self.length))
            spans = cut(np.full(count, self.length, dtype=np.int32), self.tokens)
            self._latest = epoch, (np.arange(count), spans)
        return self._latest[1]

    def _row(self, epoch: int) -> tuple[Places, NDArray[np.int64]]:
        """Return the documents of an epoch in order, and the end of each in their concatenation."""
        if self._rows is None or self._rows[0] != epoch:
            order = self._random(epoch, 0).permutation(len(self.store))
            ends = np.cumsum(self.store.lengths[1][order].astype(np.int64) + AROUND)
            self._rows = epoch, order, ends
        return self._rows[1], self._rows[2]

    def _batch(self, rows: Places, epoch: int) -> Batch:
        pieces = [self._piece(int(window) * self.length, epoch) for window in rows]
        source = torch.zeros(len(rows), 0, dtype=torch.int64)
        return Batch(source, pad_rows(pieces, (), ()), np.asarray(rows, dtype=np.int64))

    def _piece(self, start: int, epoch: int) -> Tokens:
        """Return the tokens of the window of the concatenated documents that begins at `start`, and one more."""
        order, ends = self._row(epoch)
        end = min(start + self.length + 1, int(ends[-1]))
        place = int(np.searchsorted(ends, start, side="right"))
        parts = []
        while start < end:
            document = self._document(int(order[place]))
            begin = int(ends[place]) - len(document)
            parts.append(document[start - begin : end - begin])
            start, place = int(ends[place]), place + 1
        return np.concatenate(parts)
