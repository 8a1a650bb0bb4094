"""Batches of random tokens with the lengths of a corpus, bucketed like real ones, for measuring speed and memory."""

from collections.abc import Iterator, Sequence

import numpy as np

from regard.data.batches import SOURCE_FRAME, TARGET_FRAME, Batch, Cursor, bucket, cut, pad_rows
from regard.text.specials import SPECIALS

BUCKETS = 40
"""Batches, from the shortest sentences to the longest."""
GOLDEN = (5**0.5 - 1) / 2
"""Golden ratio: steps of this share of a circle cover it evenly."""


class RandomText:
    """Random batches with the interface that the trainer needs; lengths of source and target include end symbols.

    The batch of median length comes first; those that follow alternate between short and long, so that any number of
    them is representative.
    """

    def __init__(self, vocabulary: tuple[int, int], lengths: Sequence[tuple[float, float]], tokens: int) -> None:
        self.vocabulary, self.tokens = vocabulary, tokens
        source, target = np.maximum(np.array(lengths).round().astype(np.int32), 2).T
        often = -(-BUCKETS * tokens // int(np.maximum(source, target).sum()))
        self.lengths = np.tile(source, often), np.tile(target, often)
        self.order = bucket(*self.lengths, np.random.default_rng(0))
        self.spans = cut(np.maximum(*self.lengths)[self.order], tokens)

    def after(self, cursor: Cursor) -> Iterator[tuple[Batch, Cursor]]:
        """Yield batches endlessly."""
        draw, place = np.random.default_rng(0), 0.5
        while True:
            start, end = self.spans[int(place * len(self.spans))]
            place = (place + GOLDEN) % 1
            rows = self.order[start:end]
            source, target = (
                pad_rows([draw.integers(len(SPECIALS), size, length - 1) for length in lengths[rows]], *frame)
                for size, lengths, frame in zip(
                    self.vocabulary, self.lengths, (SOURCE_FRAME, TARGET_FRAME), strict=True
                )
            )
            yield Batch(source, target, rows), cursor
