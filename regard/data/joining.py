"""Sentence concatenation: longer training pairs made from several nearby ones.

A model trained on few long sentences translates them badly; concatenated sentences teach it long inputs without extra
data (Kondo et al., "Sentence Concatenation Approach to Data Augmentation for Neural Machine Translation", 2021).
"""

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from regard.data.corpus import Pair

NEARBY = 1000
"""The other pairs are drawn from this many most recent ones."""
MOST = 4
"""Largest number of pairs joined into one."""
NO_NUMBER = 0
"""The number of a joined pair, which has no line in the corpus."""


def add_joined_pairs(pairs: Iterable[tuple[int, Pair]], share: float, seed: int) -> Iterator[tuple[int, Pair]]:
    """Yield all pairs and, for every hundred, `100 * share` more that join two to four pairs each."""
    draw, nearby = np.random.default_rng([seed, NEARBY]), deque[Pair](maxlen=NEARBY)
    for number, pair in pairs:
        yield number, pair
        for _ in range(int(share + draw.random()) if nearby else 0):
            others = draw.integers(len(nearby), size=draw.integers(1, MOST))
            yield NO_NUMBER, _join([pair, *(nearby[index] for index in others)])
        nearby.append(pair)


def _join(pairs: list[Pair]) -> Pair:
    return Pair(*(" ".join(side) for side in zip(*pairs, strict=True)))
