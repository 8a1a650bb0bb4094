"""Confidence: fitted on held-out translations, calibrated, and the same on the command line and the server."""

import itertools
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from sacrebleu.metrics.chrf import CHRF

from regard.evaluation.confidence import (
    Confidence,
    area_under_curve,
    features,
    fit,
    fit_confidence,
    matches,
    word_ranges,
)
from regard.foundation.errors import RegardError, UsageError
from regard.search import Search
from regard.tasks.loaded import load_run
from tests.conftest import learnt_to_copy


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that has begun to learn to copy up to five letters, and stops too soon at longer rows."""
    directory = tmp_path_factory.mktemp("runs") / "weak"
    learnt_to_copy(
        directory, {"width": 32, "encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}}, longest=5, steps=200
    )
    return directory


@pytest.fixture(scope="module")
def pairs():
    """Rows of up to twelve letters, to be copied."""
    letters = "abcdef"
    chance = np.random.default_rng(3)
    sources = [" ".join(chance.choice(list(letters), size=int(chance.integers(1, 13)))) for _ in range(160)]
    return sources, sources


def test_the_best_of_several_references_counts(run, pairs):
    loaded, (sources, references) = load_run(run), pairs
    several = [("z y x w v", reference) for reference in references]
    assert fit_confidence(loaded, sources, several) == fit_confidence(loaded, sources, references)


def test_the_area_under_the_curve_is_a_share_of_pairs():
    scores, labels = np.array([0.1, 0.4, 0.4, 0.9, 0.2]), np.array([0.0, 0, 1, 1, 0])
    positive, negative = scores[labels > 0], scores[labels == 0]
    wins = [(a > b) + 0.5 * (a == b) for a in positive for b in negative]
    assert area_under_curve(scores, labels) == pytest.approx(np.mean(wins))


def test_a_fit_finds_planted_probabilities():
    chance = np.random.default_rng(1)
    rows = chance.normal(size=(4000, 3))
    truth = 1 / (1 + np.exp(-(0.5 + 2 * rows[:, 0] - rows[:, 2])))
    found = fit(rows, chance.random(4000) < truth, "rows")
    guesses = np.array([found.probability(row) for row in rows])
    assert np.abs(guesses - truth).mean() < 0.02
    assert found.brier < found.base * (1 - found.base) and 0.8 < found.auc < 0.95


def test_features_that_say_nothing_rank_nothing():
    chance = np.random.default_rng(2)
    found = fit(chance.normal(size=(2000, 4)), chance.random(2000) < 0.3, "rows")
    assert abs(found.auc - 0.5) < 0.05 and found.probability([0, 0, 0, 0]) == pytest.approx(0.3, abs=0.05)


def test_figures_are_those_of_rows_that_were_not_fitted():
    """Twenty random features explain sixty random labels well, but no others."""
    chance = np.random.default_rng(4)
    rows = [chance.normal(size=(60, 20)) for _ in range(20)]
    found = [fit(some, chance.random(60) < 0.5, "rows") for some in rows]
    assert abs(np.mean([one.auc for one in found]) - 0.5) < 0.06
    assert np.mean([one.brier for one in found]) > 0.25  # worse than a constant


def test_words_match_in_order():
    assert matches(["a", "b", "c"], ["a", "x", "c"]) == [True, False, True]
    assert sum(matches(["b", "a"], ["a", "b"])) == 1
    assert matches([], ["a"]) == []


def test_words_of_tokens_are_those_of_the_text(run):
    loaded = load_run(run)
    tokens = loaded.target_tokenizer.encode("a b c").ids
    ranges = word_ranges(loaded.target_tokenizer, tokens)
    assert len(ranges) == 3 and ranges[0][0] == 0 and ranges[-1][1] == len(tokens)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ranges))


def test_features_are_the_model_s_own_log_probabilities(run, pairs):
    loaded = load_run(run)
    sources = pairs[0][:10]
    best = [found[0] for found in loaded.generator.hypotheses(sources, Search())]
    for row, hypothesis in zip(features(loaded, sources, best), best, strict=True):
        if hypothesis.ended == "end":
            assert row.sentence[0] == pytest.approx(np.mean(hypothesis.log_probs), abs=1e-3)
            assert row.sentence[1] == pytest.approx(min(hypothesis.log_probs), abs=1e-3)
        assert len(row.words) == len(hypothesis.text.split())


def test_a_fitted_run_rates_good_translations_higher(run, pairs, tmp_path):
    loaded = load_run(run)
    found = fit_confidence(loaded, *pairs)
    assert found.sentence.auc > 0.7  # long rows, which the model has not seen, are wrong
    assert found.word.auc > 0.5  # of its words one in ten is wrong
    found.save(run)
    assert Confidence.load(run) == found
    command = [sys.executable, "-m", "regard", "translate", str(run), "--with", "confidence"]
    text = "a b c\n\na b c d e f a b c d e f\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    short, empty, long = map(json.loads, done.stdout.splitlines())
    assert 0 < long["confidence"] < short["confidence"] < 1
    assert [word["word"] for word in short["words"]] == short["text"].split()
    assert empty["confidence"] is None and empty["words"] == []
    best = loaded.generator.hypotheses(["a b c"], Search())
    (rating,) = found.rate(loaded, ["a b c"], [best[0][0]])
    assert math.isclose(rating.confidence, short["confidence"], abs_tol=1e-4)


def test_where_hardly_any_translation_is_good_the_better_half_is(run, pairs):
    sources, _ = pairs
    references = [f"{source} {'z' * 3 * len(source)}" for source in sources]  # which no output has
    loaded = load_run(run)
    found = fit_confidence(loaded, sources, references)
    texts = [best[0].text for best in loaded.generator.hypotheses(sources, Search(split=None))]
    scores = [CHRF().sentence_score(text, [one]).score for text, one in zip(texts, references, strict=True)]
    assert max(scores) < 50 and found.good == pytest.approx(np.median(scores), abs=0.01)
    assert found.sentence.base == pytest.approx(0.5, abs=0.1)


def test_what_is_missing_is_one_sentence(copy_run, run, pairs):
    with pytest.raises(UsageError, match=r"has no calibrated confidence. Fit it with: regard calibrate"):
        Confidence.load(copy_run)
    with pytest.raises(RegardError, match="at least 50 translations, but there are 3"):
        fit_confidence(load_run(run), ["a"] * 3, ["a"] * 3)
    with pytest.raises(RegardError, match="right and wrong"):
        fit_confidence(load_run(run), ["a b"] * 60, ["a b"] * 60)
