"""Batches: length buckets within a token budget, in an order that any process can compute and resume."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.store import Tokens, TokenStore
from regard.foundation.errors import RegardError
from regard.text.dropout import BpeDropout
from regard.text.specials import BOS, EOS, PAD

_LENGTH_BITS, _CHANCE_BITS = 20, 22
_MOST_TOKENS = 1 << 40

Lengths = NDArray[np.int32]
Places = NDArray[np.int64]
"""Row numbers in a store, or positions in an ordering of them."""


class Frame(NamedTuple):
    """The special tokens that a batch puts around the ids of a side."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


SOURCE_FRAME, TARGET_FRAME = Frame((), (EOS,)), Frame((BOS,), (EOS,))


@dataclass(frozen=True)
class Batch:
    """Pairs as padded ids, int64, each side between the special tokens of its frame."""

    source: Tensor
    """B×S; for source texts: tokens, EOS, padding."""
    target: Tensor
    """B×T+1; for target texts: BOS, tokens, EOS, padding."""
    rows: Places
    """B: the row of each pair in the store."""
    known: Tensor | None = None
    """B: how many of the first outputs are context and are not scored; by default none."""
    pictures: Tensor | None = None
    """B×3×H×W, uint8: the images, if a source is or contains one."""
    stands_in: bool = False
    """Whether the only row belongs to another process, because there are fewer rows than processes: it counts zero."""

    @property
    def inputs(self) -> Tensor:
        """B×T: decoder inputs, BOS first."""
        return self.target[:, :-1]

    @property
    def outputs(self) -> Tensor:
        """B×T: expected decoder outputs, EOS last; padding where a token is not scored."""
        outputs = self.target[:, 1:]
        if self.known is None:
            return outputs
        return outputs.masked_fill(torch.arange(outputs.shape[1]) < self.known[:, None], PAD)

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class Cursor:
    """A position in the endless sequence of batches: the epoch and the number of its batches already served.

    It does not depend on the number of processes, which share every batch.
    """

    epoch: int = 0
    position: int = 0


START = Cursor()


class Batches:
    """The share of one process in all batches: a pure function of (seed, epoch, rank, world size).

    Each epoch, pairs are sorted by target length and then by source length, alternately ascending and descending, with
    a little noise and ties shuffled. They are cut into batches of at most `tokens` padded tokens on the longer side (a
    longer pair gets its own batch), and the batches are shuffled. The processes share the rows of every batch, so that
    batches and their order do not depend on the number of processes. `source_lengths` are the positions that each
    source takes in the model, for stores that hold only the number of an image or a sound. `alike`: BPE dropout cuts
    equal words of both sides alike.
    """

    def __init__(
        self,
        store: TokenStore,
        tokens: int,
        seed: int,
        rank: int = 0,
        world_size: int = 1,
        dropout: tuple[BpeDropout | None, BpeDropout | None] = (None, None),
        frames: tuple[Frame, Frame] = (SOURCE_FRAME, TARGET_FRAME),
        *,
        source_lengths: Lengths | None = None,
        alike: bool = False,
    ):
        if len(store) < world_size:
            raise RegardError(
                f"{len(store)} training pairs are too few for {world_size} processes. Use fewer processes."
            )
        self.store, self.tokens, self.seed = store, min(tokens, _MOST_TOKENS), seed
        self.rank, self.world_size = rank, world_size
        self.dropout, self.frames, self.alike = dropout, frames, alike
        self.source_lengths = store.lengths[0] if source_lengths is None else source_lengths
        self._latest: tuple[int, tuple[Places, Places]] | None = None

    def after(self, cursor: Cursor = START) -> Iterator[tuple[Batch, Cursor]]:
        """Yield batches from a cursor on, endlessly, each with the cursor of the next."""
        epoch, position = cursor.epoch, cursor.position
        while True:
            order, spans = self._plan(epoch)
            turns = self._random(epoch, 1).permutation(len(spans))
            for index in range(position, len(turns)):
                start, end = spans[turns[index]]
                yield self._share(order[start:end], epoch), Cursor(epoch, index + 1)
            epoch, position = epoch + 1, 0

    def once(self) -> Iterator[Batch]:
        """Yield every pair once, in batches from short to long, for scoring."""
        order, spans = self._plan(0)
        for start, end in spans:
            yield self._batch(order[start:end], 0)

    def per_epoch(self, epoch: int = 0) -> int:
        """Return the number of batches in an epoch."""
        return len(self._plan(epoch)[1])

    def _random(self, epoch: int, *more: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, epoch, *more])

    def _plan(self, epoch: int) -> tuple[Places, Places]:
        """Return all pairs in bucket order, and start and end of each batch (batches × 2)."""
        if self._latest is None or self._latest[0] != epoch:
            source, target = self.source_lengths, self.store.lengths[1]
            order = bucket(source, target, self._random(epoch, 0))
            longest = np.maximum(source, target + 1)[order] + 1  # with the special tokens
            self._latest = epoch, (order, cut(longest, self.tokens))
        return self._latest[1]

    def _share(self, rows: Places, epoch: int) -> Batch:
        """Return this process's rows of a batch; without any, one row that counts zero, as every process computes."""
        mine = np.array_split(rows, self.world_size)[self.rank]
        return self._batch(mine, epoch) if len(mine) else replace(self._batch(rows[:1], epoch), stands_in=True)

    def _batch(self, rows: Places, epoch: int) -> Batch:
        pairs = [self.store[int(row)] for row in rows]
        if any(self.dropout):
            pairs = [self._apply_dropout(pair, epoch, row) for pair, row in zip(pairs, rows, strict=True)]
        source, target = (pad_rows([pair[side] for pair in pairs], *frame) for side, frame in enumerate(self.frames))
        return Batch(source, target, np.asarray(rows, dtype=np.int64))

    def _apply_dropout(self, pair: tuple[Tokens, Tokens], epoch: int, row: int) -> tuple[Tokens, Tokens]:
        """Return a pair with BPE dropout applied; a function of seed, epoch and row only."""
        generator = self._random(epoch, 2, row)
        if self.alike and self.dropout[0] is not None:
            source, target = self.dropout[0].together(pair, generator)
            return source, target
        source, target = (
            ids if dropout is None else dropout(ids, generator) for ids, dropout in zip(pair, self.dropout, strict=True)
        )
        return source, target


def bucket(source: Lengths, target: Lengths, generator: np.random.Generator) -> Places:
    """Return pair indices sorted by target length (±1), then by source length, alternately ascending and descending.

    Ties are shuffled, so that epochs have different batches. One 64-bit key per pair keeps sorting ten million fast.
    """
    most = (1 << _LENGTH_BITS) - 1
    key = target.astype(np.int64)
    key += generator.integers(0, 2, len(key), dtype=np.int8)
    np.minimum(key, most, out=key)
    second = np.minimum(source, most)
    np.subtract(most, second, out=second, where=key % 2 == 1)
    key <<= _LENGTH_BITS
    key |= second
    key <<= _CHANCE_BITS
    key |= generator.integers(0, 1 << _CHANCE_BITS, len(key), dtype=np.int32)
    return np.argsort(key, kind="stable")


def cut(longest: Lengths, tokens: int) -> Places:
    """Return start and end of batches whose rows × longest side fit into `tokens`; a longer row has its own batch."""
    bounds, start = [0], 0
    while start < len(longest):
        most = max(tokens // int(longest[start]), 1)
        widest = np.maximum.accumulate(longest[start : start + most])
        fitting = int(np.searchsorted(widest * np.arange(1, len(widest) + 1), tokens, side="right"))
        start += max(fitting, 1)
        bounds.append(start)
    return np.stack([bounds[:-1], bounds[1:]], axis=1)


def pad_rows(rows: list[Tokens], before: Sequence[int], after: Sequence[int]) -> Tensor:
    """Return sequences, with special tokens added before and after each, as one padded tensor, rows × longest."""
    longest = max(len(row) for row in rows) + len(before) + len(after)
    ids = np.full((len(rows), longest), PAD, dtype=np.int64)
    for index, row in enumerate(rows):
        ids[index, : len(before)] = before
        end = len(before) + len(row)
        ids[index, len(before) : end] = row
        ids[index, end : end + len(after)] = after
    return torch.from_numpy(ids)
