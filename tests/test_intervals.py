"""Intervals hold what they promise: 95 % of them contain the true value, whatever is measured and however little."""

import numpy as np
import pytest

from regard.metrics.intervals import (
    bootstrap_interval,
    ratio,
    ratio_intervals,
    resample_counts,
    small_sample_factor,
)

SIMULATIONS = 400


def sentences(generator, count):
    """Parts N×1 and wholes N×1: hits among the words of each sentence, which are alike within a sentence."""
    wholes = generator.integers(3, 12, count)
    chances = generator.beta(3, 2, count)  # mean 0.6; words of one sentence are right or wrong together
    return generator.binomial(wholes, chances)[:, None].astype(float), wholes[:, None].astype(float)


@pytest.mark.parametrize("count", [10, 60])
def test_intervals_hold_the_true_share_in_about_95_per_cent(count):
    generator, held = np.random.default_rng(count), 0
    for seed in range(SIMULATIONS):
        found = ratio_intervals(*sentences(generator, count), samples=300, seed=seed)
        held += found[0, 0] <= 0.6 <= found[0, 1]
    assert 0.92 * SIMULATIONS <= held <= 0.985 * SIMULATIONS, held


def test_one_score_and_many_have_the_same_intervals():
    parts, wholes = sentences(np.random.default_rng(1), 30)
    alone = bootstrap_interval(np.concatenate([parts, wholes], axis=1), ratio)
    together = ratio_intervals(np.concatenate([parts, wholes - parts], axis=1), wholes)
    assert alone == pytest.approx(tuple(together[0])) and together[1] == pytest.approx(1 - together[0][::-1])
    shared = ratio_intervals(parts, wholes, counts=resample_counts(30))
    assert shared[0] == pytest.approx(together[0])


def test_sentences_are_drawn_and_not_words():
    """Twenty words that are right or wrong with their sentence tell no more than one."""
    right = np.arange(40) % 2
    one, twenty = (ratio_intervals(size * right[:, None], np.full((40, 1), size)) for size in (1, 20))
    assert one[0] == pytest.approx(twenty[0]) and one[0, 1] - one[0, 0] > 0.25


def test_a_single_sentence_has_no_interval():
    assert ratio_intervals([[1.0]], [[2.0]]) is None and bootstrap_interval([[1.0, 2.0]], ratio) is None


@pytest.mark.parametrize(("count", "quantile"), [(11, 2.2281), (20, 2.0930), (201, 1.9719)])
def test_few_units_widen_intervals_by_students_quantile_and_the_lost_degree_of_freedom(count, quantile):
    """Quantiles of Student's distribution with count − 1 degrees of freedom, from a table."""
    expected = (count / (count - 1)) ** 0.5 * quantile / 1.95996
    assert small_sample_factor(count) == pytest.approx(expected, rel=4e-3)
