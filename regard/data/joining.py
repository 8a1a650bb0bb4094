"""Longer pairs out of short ones: several training pairs, drawn from nearby, one behind the other.

A model that has seen few long sentences loses its place in them; sentences put together teach it to go on, at no price
in data (Kondo et al., "Sentence Concatenation Approach to Data Augmentation for Neural Machine Translation", 2021).
"""

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from regard.data.corpus import Pair

NEARBY = 1000
"""From so many pairs read last the others are drawn."""
MOST = 4
"""Pairs in one."""
NO_NUMBER = 0
"""The number of a pair that stands nowhere in the corpus."""


def with_joined(pairs: Iterable[tuple[int, Pair]], share: float, seed: int) -> Iterator[tuple[int, Pair]]:
    """All pairs, and for every hundred of them `100 * share` more of two to four pairs each, as the seed draws them."""
    draw, nearby = np.random.default_rng([seed, NEARBY]), deque[Pair](maxlen=NEARBY)
    for number, pair in pairs:
        yield number, pair
        for _ in range(int(share + draw.random()) if nearby else 0):
            others = draw.integers(len(nearby), size=draw.integers(1, MOST))
            yield NO_NUMBER, _one([pair, *(nearby[place] for place in others)])
        nearby.append(pair)


def _one(pairs: list[Pair]) -> Pair:
    return Pair(*(" ".join(side) for side in zip(*pairs, strict=True)))
