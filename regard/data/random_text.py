"""Batches of random tokens with the lengths of a corpus, bucketed as real ones: for measuring what a real one costs."""

from collections.abc import Iterator, Sequence

import numpy as np

from regard.data.batches import SOURCE_FRAME, TARGET_FRAME, Batch, Cursor, bucketed, cut, padded
from regard.text.specials import SPECIALS

BUCKETS = 40
"""Batches, from the shortest sentences to the longest."""
GOLDEN = (5**0.5 - 1) / 2
"""Steps of this part of a circle soon come everywhere."""


class RandomText:
    """All that the trainer asks of batches; lengths are of source and target, their end symbols counted.

    The middle batch comes first; the row that follows is spread over short and long ones, wherever it is broken off.
    """

    def __init__(self, vocabulary: tuple[int, int], lengths: Sequence[tuple[float, float]], tokens: int) -> None:
        self.vocabulary, self.tokens = vocabulary, tokens
        source, target = np.maximum(np.array(lengths).round().astype(np.int32), 2).T
        often = -(-BUCKETS * tokens // int(np.maximum(source, target).sum()))
        self.lengths = np.tile(source, often), np.tile(target, often)
        self.order = bucketed(*self.lengths, np.random.default_rng(0))
        self.spans = cut(np.maximum(*self.lengths)[self.order], tokens, 1)

    def after(self, cursor: Cursor) -> Iterator[tuple[Batch, Cursor]]:
        """Batches without end."""
        draw, place = np.random.default_rng(0), 0.5
        while True:
            start, end = self.spans[int(place * len(self.spans))]
            place = (place + GOLDEN) % 1
            rows = self.order[start:end]
            source, target = (
                padded([draw.integers(len(SPECIALS), size, length - 1) for length in each[rows]], *frame)
                for size, each, frame in zip(self.vocabulary, self.lengths, (SOURCE_FRAME, TARGET_FRAME), strict=True)
            )
            yield Batch(source, target, rows), cursor
