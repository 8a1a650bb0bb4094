"""Significance of the difference between two systems on the same sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from regard.metrics.intervals import small_sample_factor
from regard.metrics.metric import Metric, Statistics

SIGNIFICANT = 0.05


@dataclass(frozen=True, kw_only=True)
class Significance:
    """A difference of scores on the same sentences, with its interval and p-values."""

    difference: float
    """Score of the second system minus that of the first."""
    low: float
    high: float
    """The 95 % bootstrap interval of the difference."""
    bootstrap: float
    """Two-sided p of the paired bootstrap, before any correction."""
    randomisation: float
    """Two-sided p of approximate randomisation, before any correction."""
    bootstrap_corrected: float
    randomisation_corrected: float
    """The p-values after Holm's correction for the number of systems; equal to the raw values for two systems."""

    @property
    def significant(self) -> bool:
        """Whether both corrected p-values are below 5 %."""
        return max(self.bootstrap_corrected, self.randomisation_corrected) < SIGNIFICANT

    def facts(self) -> dict[str, Any]:
        """Return everything as plain data for JSON."""
        return {**asdict(self), "significant": self.significant}


def compare_statistics(
    metric: Metric, first: Statistics, second: Statistics, *, samples: int = 1000, seed: int = 1
) -> Significance:
    """Run both tests on the statistics (sentences × counts) of two systems; the same seed gives the same answer.

    The bootstrap distribution of the difference is centred on the observed difference d, so that d* − d is the
    effect of chance: p = share of |d* − d| ≥ |d|. Resamples of n sentences vary too little and have normal rather
    than Student's tails; both are corrected by the factor of `small_sample_factor` (Hesterberg, 2015).
    """
    difference = metric.score(second.sum(0)) - metric.score(first.sum(0))
    resampled = bootstrap(metric, first, second, samples, np.random.default_rng([seed, 0]))
    swapped = randomise(metric, first, second, samples, np.random.default_rng([seed, 1]))
    by_chance = small_sample_factor(len(first)) * (resampled - difference)
    low, high = (difference + np.quantile(by_chance, (0.025, 0.975))).tolist()
    p_bootstrap = _share_as_large(by_chance, difference) if len(first) > 1 else 1.0  # one sentence has no spread
    p_randomisation = _share_as_large(swapped, difference)
    return Significance(
        difference=difference,
        low=low,
        high=high,
        bootstrap=p_bootstrap,
        randomisation=p_randomisation,
        bootstrap_corrected=p_bootstrap,
        randomisation_corrected=p_randomisation,
    )


def correct(found: Mapping[str, Significance]) -> dict[str, Significance]:
    """Correct the p-values of several systems against the same first one by Holm's method."""
    bootstraps = holm([difference.bootstrap for difference in found.values()])
    randomisations = holm([difference.randomisation for difference in found.values()])
    return {
        name: replace(difference, bootstrap_corrected=first, randomisation_corrected=second)
        for (name, difference), first, second in zip(found.items(), bootstraps, randomisations, strict=True)
    }


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm, 1979): p₍ᵢ₎ → maxⱼ≤ᵢ min(1, (m − j + 1) · p₍ⱼ₎)."""
    corrected, largest = [0.0] * len(values), 0.0
    for rank, index in enumerate(sorted(range(len(values)), key=lambda index: values[index])):
        largest = max(largest, min(1.0, (len(values) - rank) * values[index]))
        corrected[index] = largest
    return corrected


def _share_as_large(by_chance: Statistics, difference: float) -> float:
    """Return the two-sided p-value: the share of chance differences that are as large, never 0."""
    return float(1 + (np.abs(by_chance) >= abs(difference) - 1e-9).sum()) / (1 + len(by_chance))


def confidence(metric: Metric, found: Statistics, *, samples: int = 200, seed: int = 1) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the score of one system."""
    generator = np.random.default_rng([seed, 2])
    draws = (np.bincount(generator.integers(0, len(found), len(found)), minlength=len(found)) for _ in range(samples))
    scores = [metric.score(times.astype(np.float64) @ found) for times in draws]
    low, high = np.quantile(scores, (0.025, 0.975)).tolist()
    return low, high


def bootstrap(
    metric: Metric, first: Statistics, second: Statistics, samples: int, generator: np.random.Generator
) -> Statistics:
    """Return differences on sentences drawn with replacement, the same for both systems (Koehn, 2004)."""
    count = len(first)
    found = np.empty(samples)
    for at in range(samples):
        times = np.bincount(generator.integers(0, count, count), minlength=count).astype(np.float64)
        found[at] = metric.score(times @ second) - metric.score(times @ first)
    return found


def randomise(
    metric: Metric, first: Statistics, second: Statistics, samples: int, generator: np.random.Generator
) -> Statistics:
    """Return differences after randomly swapping the outputs of each sentence (Riezler and Maxwell, 2005)."""
    one, other, change = first.sum(0), second.sum(0), second - first
    found = np.empty(samples)
    for at in range(samples):
        moved = generator.integers(0, 2, len(first)).astype(np.float64) @ change
        found[at] = metric.score(other - moved) - metric.score(one + moved)
    return found
