"""Where a model looked while it wrote an output, and which words belong together by it.

Axes: S source positions, T target positions, H heads.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.models import Model
from regard.nn import taps
from regard.search.steps import SOURCE_ATTENTION


def attention_to_source(model: Model, source: Tensor, target: Tensor) -> Tensor:
    """Attention T×S, mean of layers and heads, in one pass over source 1×S and target 1×T+1 (BOS first)."""
    with torch.inference_mode(), taps.watch(model, SOURCE_ATTENTION) as seen:
        model(source, target[:, :-1])
    if not seen:
        raise UsageError("Attention and alignment need a model with attention: this one's join is a fixed vector.")
    return torch.cat([seen[name][0] for name in seen]).mean(dim=0).cpu()  # T×S


def word_alignment(
    weights: Tensor, source_words: Sequence[int], target_words: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """For each target word the source word that it looked at most: pairs (source, target), words counted from 0.

    The weight between two words is the sum over the source word's tokens and the mean over the target word's; the end
    symbols take no part. Words are what stands between white space; the numbers are those of each token T×S.
    """
    if not source_words or not target_words:
        return ()
    weights = weights[: len(target_words), : len(source_words)]
    by_source = torch.zeros(len(weights), max(source_words) + 1).index_add_(1, torch.tensor(source_words), weights)
    by_word = torch.zeros(max(target_words) + 1, by_source.shape[1])
    by_word.index_add_(0, torch.tensor(target_words), by_source)  # a mean up to a factor, which no maximum sees
    return tuple((int(source), target) for target, source in enumerate(by_word.argmax(dim=1).tolist()))
