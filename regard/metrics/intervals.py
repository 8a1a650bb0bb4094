"""Confidence intervals of shares, and of any score that is computed from counts."""

from collections.abc import Callable
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

Z = 1.959964
"""Standard deviations around the mean that contain 95 % of a normal distribution."""

SAMPLES = 1000
"""Resamples of a bootstrap interval."""

_CHUNK = 2**22

Interval = tuple[float, float]
Totals = NDArray[np.float64]


def wilson(successes: float, count: int, z: float = Z) -> Interval:
    """Return the interval of a binomial share: (p + z²/2n ± z·√(p(1−p)/n + z²/4n²)) / (1 + z²/n) (Wilson, 1927)."""
    if not count:
        return 0.0, 1.0
    share = successes / count
    middle = share + z * z / (2 * count)
    half = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    whole = 1 + z * z / count
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)


def small_sample_factor(count: int) -> float:
    """Return the factor by which a bootstrap of `count` units is too narrow: √(n/(n−1)) · t₀.₉₇₅,ₙ₋₁ / z₀.₉₇₅.

    Student's quantile is taken from its Cornish-Fisher expansion; 1.10 for 20 units, 1.01 for 200, 1 in the limit
    (Hesterberg, 2015).
    """
    if count < 2:
        return 1.0
    free = count - 1
    quantile = Z + (Z**3 + Z) / (4 * free) + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * free**2)
    return sqrt(count / free) * quantile / Z


def bootstrap_interval(
    statistics: ArrayLike,
    score: Callable[[Totals], Totals],
    *,
    low: float = -np.inf,
    high: float = np.inf,
    samples: int = SAMPLES,
    seed: int = 1,
) -> Interval | None:
    """Return the 95 % interval of a score by a bootstrap over sentences; `None` for fewer than two of them.

    `statistics` are the counts of each sentence (N×C); `score` maps totals (…×C) to scores (…). The percentile
    interval is widened by `small_sample_factor` and kept between `low` and `high`.
    """
    found = resampled_scores(statistics, score, samples=samples, seed=seed)
    if found is None:
        return None
    rows = np.asarray(statistics, dtype=np.float64)
    value = float(score(rows.sum(0)))
    factor = small_sample_factor(len(rows))
    ends = value + factor * (np.quantile(found, (0.025, 0.975)) - value)
    first, last = np.clip(ends, low, high).tolist()
    return min(first, value), max(last, value)


def resampled_scores(
    statistics: ArrayLike,
    score: Callable[[Totals], Totals],
    *,
    counts: Totals | None = None,
    samples: int = SAMPLES,
    seed: int = 1,
) -> Totals | None:
    """Return the scores of resamples of sentences with replacement; `None` for fewer than two sentences."""
    rows = np.asarray(statistics, dtype=np.float64)  # N×C
    if len(rows) < 2:
        return None
    if counts is not None:
        return score(counts @ rows)
    generator = np.random.default_rng([seed, 3])
    portion = max(1, _CHUNK // len(rows))
    parts = [
        score(_draw(generator, len(rows), min(portion, samples - start)) @ rows) for start in range(0, samples, portion)
    ]
    return np.concatenate(parts)


def resample_counts(count: int, samples: int = SAMPLES, seed: int = 1) -> Totals:
    """Return the number of times that each of `count` sentences occurs in each resample: samples × count."""
    return _draw(np.random.default_rng([seed, 3]), count, samples)


def _draw(generator: np.random.Generator, count: int, samples: int) -> Totals:
    drawn = generator.integers(0, max(1, count), (samples, count))
    flat = drawn + count * np.arange(samples)[:, None]
    return np.bincount(flat.ravel(), minlength=samples * count).reshape(samples, count).astype(np.float64)


def ratio(totals: Totals) -> Totals:
    """Return the first total divided by the second, or 0 if that is 0: the score of a share or of a mean."""
    found: Totals = np.divide(
        totals[..., 0], totals[..., 1], out=np.zeros_like(totals[..., 0]), where=totals[..., 1] != 0
    )
    return found


def ratio_intervals(
    parts: ArrayLike, wholes: ArrayLike, *, counts: Totals | None = None, samples: int = SAMPLES, seed: int = 1
) -> Totals | None:
    """Return the 95 % intervals (K×2) of K ratios Σ parts / Σ wholes by one bootstrap over sentences.

    `parts` are N×K, `wholes` N×K or N×1; a ratio of nothing is 0. `None` for fewer than two sentences. `counts` are
    those of `resample_counts`, for several ratios that share them.
    """
    above, below = np.asarray(parts, dtype=np.float64), np.asarray(wholes, dtype=np.float64)
    if len(above) < 2:
        return None
    width = above.shape[1]
    rows = np.concatenate([above, np.broadcast_to(below, (len(below), below.shape[1]))], axis=1)

    def scores(totals: Totals) -> Totals:
        return ratio(np.stack(np.broadcast_arrays(totals[..., :width], totals[..., width:]), axis=-1))

    return score_intervals(rows, scores, counts=counts, samples=samples, seed=seed)


def score_intervals(
    statistics: ArrayLike,
    score: Callable[[Totals], Totals],
    *,
    counts: Totals | None = None,
    samples: int = SAMPLES,
    seed: int = 1,
) -> Totals | None:
    """Return the 95 % intervals (K×2) of K scores at once: `score` maps totals (…×C) to scores (…×K)."""
    found = resampled_scores(statistics, score, counts=counts, samples=samples, seed=seed)
    if found is None:
        return None
    rows = np.asarray(statistics, dtype=np.float64)
    values = score(rows.sum(0))  # K
    ends = values + small_sample_factor(len(rows)) * (np.quantile(found, (0.025, 0.975), axis=0) - values)  # 2×K
    low, high = np.minimum(ends[0], values), np.maximum(ends[1], values)
    return np.stack([low, high], axis=1)
