"""Whether one system is better than another, or was only lucky with these sentences."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regard.evaluation.metric import Metric, Statistics

SIGNIFICANT = 0.05


@dataclass(frozen=True, kw_only=True)
class Significance:
    """A difference of scores on the same sentences, and how far it can be trusted."""

    difference: float
    """Score of the second system minus that of the first."""
    low: float
    high: float
    """Where the difference lies in 95 % of the resamples."""
    bootstrap: float
    """p of the paired bootstrap: the share of resamples in which the better system is not better."""
    randomisation: float
    """p of approximate randomisation: the share of random swaps that give a difference as large."""

    @property
    def significant(self) -> bool:
        """Whether both tests call it so at the level of 5 %."""
        return max(self.bootstrap, self.randomisation) < SIGNIFICANT

    def facts(self) -> dict[str, Any]:
        """All of it as JSON knows it."""
        return {**asdict(self), "significant": self.significant}


def compare_statistics(
    metric: Metric, first: Statistics, second: Statistics, *, samples: int = 1000, seed: int = 1
) -> Significance:
    """Both tests on the statistics (sentences × counts) of two systems; the same seed gives the same answer."""
    difference = metric.score(second.sum(0)) - metric.score(first.sum(0))
    resampled = bootstrap(metric, first, second, samples, np.random.default_rng([seed, 0]))
    swapped = randomise(metric, first, second, samples, np.random.default_rng([seed, 1]))
    low, high = np.quantile(resampled, (0.025, 0.975)).tolist()
    not_better = int((resampled * np.sign(difference) <= 0).sum())
    as_large = int((np.abs(swapped) >= abs(difference) - 1e-9).sum())
    return Significance(
        difference=difference,
        low=low,
        high=high,
        bootstrap=(1 + not_better) / (1 + samples),
        randomisation=(1 + as_large) / (1 + samples),
    )


def confidence(metric: Metric, found: Statistics, *, samples: int = 200, seed: int = 1) -> tuple[float, float]:
    """Where the score of one system lies in 95 % of resamples of its sentences."""
    generator = np.random.default_rng([seed, 2])
    draws = (np.bincount(generator.integers(0, len(found), len(found)), minlength=len(found)) for _ in range(samples))
    scores = [metric.score(times.astype(np.float64) @ found) for times in draws]
    low, high = np.quantile(scores, (0.025, 0.975)).tolist()
    return low, high


def bootstrap(
    metric: Metric, first: Statistics, second: Statistics, samples: int, generator: np.random.Generator
) -> Statistics:
    """Differences on sentences drawn with replacement, the same for both systems (Koehn, 2004)."""
    count = len(first)
    found = np.empty(samples)
    for at in range(samples):
        times = np.bincount(generator.integers(0, count, count), minlength=count).astype(np.float64)
        found[at] = metric.score(times @ second) - metric.score(times @ first)
    return found


def randomise(
    metric: Metric, first: Statistics, second: Statistics, samples: int, generator: np.random.Generator
) -> Statistics:
    """Differences after the outputs of each sentence were swapped or not, by a coin (Riezler and Maxwell, 2005)."""
    one, other, change = first.sum(0), second.sum(0), second - first
    found = np.empty(samples)
    for at in range(samples):
        moved = generator.integers(0, 2, len(first)).astype(np.float64) @ change
        found[at] = metric.score(other - moved) - metric.score(one + moved)
    return found
