"""ROUGE against the scores of the package rouge-score 0.1.2 (stemmer off), which are stored in fixtures/rouge.json."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard.metrics.scoring import make, score_text

ROWS = json.loads((Path(__file__).parent / "fixtures" / "rouge.json").read_text(encoding="utf-8"))
NAMES = ("rouge1", "rouge2", "rougeL")


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_those_of_the_reference_tool(name: str) -> None:
    assert len(ROWS) == 40 and any(row["scores"][name] for row in ROWS)
    metric = make([name])[name]
    for row in ROWS:
        found = metric.statistics([row["hypothesis"]], [tuple(row["references"])])[0, 0]
        assert found == pytest.approx(row["scores"][name]), row


def test_a_corpus_is_the_mean_of_its_texts() -> None:
    scores = score_text([row["hypothesis"] for row in ROWS], [row["references"] for row in ROWS], NAMES)
    for name in NAMES:
        assert scores[name] == pytest.approx(100 * np.mean([row["scores"][name] for row in ROWS]))
        assert scores.details[name]["precision"] > 0


def test_the_best_reference_counts() -> None:
    """Of "a b" and "c d", "c d e" shares two words with the second: P = 2/3, R = 1, F = 0.8."""
    assert score_text(["c d e"], [["a b", "c d"]], ["rouge1"])["rouge1"] == pytest.approx(80.0)
    assert score_text(["c x d"], [["a b", "c d"]], ["rougeL"])["rougeL"] == pytest.approx(80.0)
    assert score_text(["c x d"], [["a b", "c d"]], ["rouge2"])["rouge2"] == 0.0


def test_empty_outputs_score_zero() -> None:
    scores = score_text(["", "…"], [["a"], ["b"]], NAMES)
    assert dict(scores.values) == dict.fromkeys(NAMES, 0.0)
