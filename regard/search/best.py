"""A fast top-k over large vocabularies.

Axes: R rows, V vocabulary.
"""

import torch
from torch import Tensor

from regard.search.rules import NOTHING

FOLDS = 16
"""Parts that a row is folded into: the best scores are in the columns with the highest maxima."""
SMALL = 1024
"""Rows up to this length are not folded: it would not be faster."""
FEW = 4
"""Fewer rows than these are not folded either."""


def best(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` highest scores of each row of R×V, best first, and their indices: R×count each.

    Equal to `topk`, but several times faster on a CPU: a row is folded into V/16 columns whose maxima are cheap, and
    only the columns with the highest maxima are searched.
    """
    vocabulary = scores.shape[1]
    columns = vocabulary // FOLDS
    if vocabulary <= SMALL or len(scores) < FEW or count > columns:
        found = scores.topk(min(count, vocabulary), dim=1)
        return found.values, found.indices
    folded = scores[:, : FOLDS * columns].view(-1, FOLDS, columns).amax(dim=1)  # R×V/16
    left = scores[:, FOLDS * columns :]  # the remainder: columns of one score
    folded = torch.cat([folded, left], dim=1) if left.shape[1] else folded
    chosen = folded.topk(count, dim=1).indices[:, :, None]  # R×count×1
    folds = torch.arange(FOLDS, device=scores.device)
    places = chosen + columns * folds  # R×count×16; a column of one score is at the last fold
    if left.shape[1]:
        outside = (chosen >= columns) & (folds < FOLDS - 1)
        places = places.masked_fill(outside, 0)
        there = scores.gather(1, places.flatten(1)).masked_fill(outside.flatten(1), NOTHING)
    else:
        there = scores.gather(1, places.flatten(1))
    found = there.topk(count, dim=1)
    return found.values, places.flatten(1).gather(1, found.indices)
