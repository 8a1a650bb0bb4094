"""Laws of metrics: they agree with the reference tool, and say how they were made."""

import pytest
import sacrebleu

from regard.errors import UsageError
from regard.evaluation.metrics import score_text

OUTPUTS = ["Der Hund bellt laut.", "Ein Mann liest ein Buch im Park.", "Zwei Frauen lachen."]
REFERENCES = ["Der Hund bellt sehr laut.", "Ein Mann liest im Park ein Buch.", "Zwei Frauen lachen."]


def test_scores_are_those_of_sacrebleu():
    scores = score_text(OUTPUTS, REFERENCES)
    assert scores["bleu"] == sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES]).score
    assert scores["chrf"] == sacrebleu.corpus_chrf(OUTPUTS, [REFERENCES]).score
    assert scores.signatures["bleu"].startswith("nrefs:1|case:mixed") and "chrf" in scores.signatures
    assert scores.sentences == 3


def test_exact_match_is_the_share_of_equal_lines():
    assert score_text(OUTPUTS, REFERENCES, ["exact"])["exact"] == pytest.approx(100 / 3)


def test_perfect_output_has_perfect_scores():
    assert all(value == pytest.approx(100) for value in score_text(REFERENCES, REFERENCES).values.values())


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(UsageError, match="as many"):
        score_text(["a"], [])
    with pytest.raises(UsageError, match="no metric `meteor`"):
        score_text(["a"], ["a"], ["meteor"])
    assert score_text([], []).values == {}
