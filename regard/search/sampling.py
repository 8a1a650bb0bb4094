"""Sampling from the model, optionally from a truncated distribution.

Axes: B batch, S source positions, V vocabulary.
"""

import hashlib
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.search.best import best
from regard.search.greedy import generate
from regard.search.hypothesis import Hypothesis
from regard.search.rules import NOTHING, Rule
from regard.search.steps import S, Source, StepModel


def sample(
    steps: StepModel[S],
    source: Source | Tensor,
    limits: list[int],
    *,
    count: int = 1,
    seed: int = 0,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    length_penalty: float = 1.0,
    rules: Sequence[Rule] | None = None,
    patience: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Draw `count` outputs per source (or row of tokens B×S), in the order in which they are drawn.

    By default this is ancestral sampling: each output is drawn with exactly the probability that the model gives it.
    `temperature`, `top_k` (Fan et al., 2018) and `top_p` (Holtzman et al., 2020) change the distribution, but not the
    reported log-probabilities, which are always the model's own.

    A sample depends only on the seed, the sentence and the number of the sample, not on line, batch or order.
    """
    source = Source.of(source)
    dice = torch.zeros(len(source) * count, max(limits, default=0), dtype=torch.float64)  # B·count×longest
    for index in range(len(dice)):
        row, number = divmod(index, count)
        dice[index, : limits[row]] = torch.rand(
            limits[row], dtype=torch.float64, generator=_generator(seed, source.seeds[row], number)
        )
    dice = dice.to(source.device)

    def choose(scores: Tensor, rows: list[int], time: int) -> Tensor:
        if temperature == 0.0:
            return best(scores, 1)[1][:, 0]
        return draw(truncate(scores.double() / temperature, top_k, top_p), dice[rows, time])

    found = generate(
        steps,
        source,
        [limit for limit in limits for _ in range(count)],
        choose,
        repeat=count,
        length_penalty=length_penalty,
        rules=None if rules is None else [rule for rule in rules for _ in range(count)],
        patience=None if patience is None else [most for most in patience for _ in range(count)],
    )
    return [found[first : first + count] for first in range(0, len(found), count)]


def truncate(scores: Tensor, top_k: int | None, top_p: float | None) -> Tensor:
    """Set scores B×V to minus infinity outside the `top_k` best and the smallest set with probability `top_p`."""
    if top_k is not None and top_k < scores.shape[1]:
        least = scores.topk(top_k, dim=1).values[:, -1:]  # B×1
        scores = scores.masked_fill(scores < least, NOTHING)
    if top_p is not None and top_p < 1.0:
        ordered, order = scores.sort(dim=1, descending=True)
        probabilities = ordered.softmax(dim=1)
        outside = probabilities.cumsum(dim=1) - probabilities >= top_p  # the first is always inside
        scores = scores.masked_fill(outside.gather(1, order.argsort(dim=1)), NOTHING)
    return scores


def draw(scores: Tensor, dice: Tensor) -> Tensor:
    """Draw one token per row of unnormalised log-probabilities B×V, by inverting their cumulative sum at `dice` B."""
    sums = scores.softmax(dim=1).cumsum(dim=1)  # B×V
    at = (dice * sums[:, -1])[:, None]
    return torch.searchsorted(sums, at, right=True)[:, 0].clamp(max=scores.shape[1] - 1)


def _generator(seed: int, source: str, number: int) -> torch.Generator:
    """Return the random generator of one sample of one sentence."""
    digest = hashlib.sha256(f"{seed} {number} {source}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))
