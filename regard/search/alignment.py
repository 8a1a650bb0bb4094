"""Attention of an output to its source, and the word alignment derived from it.

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
    """Return the attention T×S, mean of layers and heads, in one pass over source 1×S and target 1×T+1 (BOS first)."""
    with torch.inference_mode(), taps.watch(model, SOURCE_ATTENTION) as seen:
        model(source, target[:, :-1])
    if not seen:
        raise UsageError("Attention and alignment need a model with attention: this one's join is a fixed vector.")
    return torch.cat([seen[name][0] for name in seen]).mean(dim=0).cpu()  # T×S


def word_alignment(
    weights: Tensor, source_words: Sequence[int], target_words: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """Align each target word to the source word with the most attention: pairs (source, target), counted from 0.

    The weight between two words is the sum over the source word's tokens and the mean over the target word's; end
    symbols are excluded. Words are separated by white space; `source_words` and `target_words` give the word of each
    token of the weights T×S.
    """
    if not source_words or not target_words:
        return ()
    weights = weights[: len(target_words), : len(source_words)]
    by_source = torch.zeros(len(weights), max(source_words) + 1).index_add_(1, torch.tensor(source_words), weights)
    by_word = torch.zeros(max(target_words) + 1, by_source.shape[1])
    by_word.index_add_(
        0, torch.tensor(target_words), by_source
    )  # the mean up to a factor, which does not change the maximum
    return tuple((int(source), target) for target, source in enumerate(by_word.argmax(dim=1).tolist()))
