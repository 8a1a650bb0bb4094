"""Laws of metrics: they agree with the reference tool, and say how they were made."""

import random

import numpy as np
import pytest
import sacrebleu

from regard.foundation.errors import RegardError, UsageError
from regard.metrics.answers import edit_distance
from regard.metrics.scoring import METRICS, make, score_text, utility

OUTPUTS = ["Der Hund bellt laut.", "Ein Mann liest ein Buch im Park.", "Zwei Frauen lachen."]
REFERENCES = ["Der Hund bellt sehr laut.", "Ein Mann liest im Park ein Buch.", "Zwei Frauen lachen."]
SECOND = ["Der Hund bellt laut!", "Ein Mann sitzt im Park.", "Zwei Frauen lachen laut."]
ALL = tuple(METRICS)


def test_scores_are_those_of_sacrebleu():
    scores = score_text(OUTPUTS, REFERENCES, ["bleu", "chrf", "ter"])
    assert scores["bleu"] == sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES]).score
    assert scores["chrf"] == sacrebleu.corpus_chrf(OUTPUTS, [REFERENCES]).score
    assert scores["ter"] == sacrebleu.corpus_ter(OUTPUTS, [REFERENCES]).score
    assert scores.signatures["bleu"].startswith("nrefs:1|case:mixed") and "chrf" in scores.signatures
    assert scores.sentences == 3


def test_with_several_references_scores_are_those_of_sacrebleu():
    scores = score_text(OUTPUTS, list(zip(REFERENCES, SECOND, strict=True)), ["bleu", "chrf", "ter"])
    assert scores["bleu"] == sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES, SECOND]).score
    assert scores["chrf"] == sacrebleu.corpus_chrf(OUTPUTS, [REFERENCES, SECOND]).score
    assert scores["ter"] == sacrebleu.corpus_ter(OUTPUTS, [REFERENCES, SECOND]).score
    assert scores.signatures["bleu"].startswith("nrefs:2")


def test_some_outputs_may_have_more_references_than_others():
    uneven = [("a b c d", "a b"), ("c d e f",)]
    scores = score_text(["a b c d", "c d e g"], uneven, ALL)
    assert (
        scores["bleu"] == sacrebleu.corpus_bleu(["a b c d", "c d e g"], [["a b c d", "c d e f"], ["a b", None]]).score
    )
    assert scores.signatures["bleu"].startswith("nrefs:var")


@pytest.mark.parametrize("tokenizer", ["13a", "intl", "zh", "char", "none"])
def test_bleu_counts_in_what_it_is_told_to_and_says_so(tokenizer):
    outputs, references = ["我的猫很好。", *OUTPUTS], ["我的猫不好。", *REFERENCES]
    name = f"bleu:{tokenizer}"
    scores = score_text(outputs, references, ["bleu", name])
    assert scores[name] == sacrebleu.corpus_bleu(outputs, [references], tokenize=tokenizer).score
    assert f"|tok:{tokenizer}|" in scores.signatures[name] and "|tok:13a|" in scores.signatures["bleu"]
    assert f"BLEU ({tokenizer}) " in str(scores) and scores.details[name]["bleu-4"] == scores[name]


def test_a_form_of_a_metric_that_is_not_there_is_told_with_its_remedy(monkeypatch):
    for name, says in (
        ("bleu:klingon", "Choose from 13a"),
        ("bleu:", "no tokenizer"),
        ("chrf:char", "Only `bleu:TOKENIZER`"),
        ("meteor:xx", "language `xx`"),
    ):
        with pytest.raises(UsageError, match=says):
            make([name])
    monkeypatch.setattr("sacrebleu.metrics.bleu.BLEU", fails(RuntimeError("no mecab")))
    with pytest.raises(RegardError, match=r'pip install "sacrebleu\[ja\]"'):
        make(["bleu:ja-mecab"])
    monkeypatch.setattr("sacrebleu.metrics.bleu.BLEU", fails(OSError("no network")))
    with pytest.raises(RegardError, match="could not fetch the tokenizer flores200"):
        make(["bleu:flores200"])


def fails(error):
    """Something that cannot be made."""

    def make(**settings):
        raise error

    return make


def test_bleu_of_the_lecture():
    details = score_text(["the Taro visited the Hanako"], ["Taro visited Hanako"], ["bleu"]).details["bleu"]
    assert details["precision-1"] == pytest.approx(100 * 3 / 5)
    assert details["precision-2"] == pytest.approx(100 * 1 / 4)
    assert details["bleu-2"] == pytest.approx(38.7, abs=0.05)
    assert details["brevity-penalty"] == 1.0


def test_bleu_shows_what_it_is_made_of():
    scores, expected = score_text(OUTPUTS, REFERENCES, ["bleu"]), sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES])
    details = scores.details["bleu"]
    assert [details[f"precision-{n}"] for n in range(1, 5)] == expected.precisions
    assert details["bleu-4"] == scores["bleu"]
    assert details["brevity-penalty"] == expected.bp < 1
    for n in (1, 2, 3):
        assert details[f"bleu-{n}"] == pytest.approx(
            sacrebleu.BLEU(max_ngram_order=n).corpus_score(OUTPUTS, [REFERENCES]).score
        )


def test_exact_match_is_the_share_of_equal_lines():
    assert score_text(OUTPUTS, REFERENCES, ["exact"])["exact"] == pytest.approx(100 / 3)


@pytest.mark.parametrize("name", ALL)
def test_perfect_output_has_a_perfect_score(name):
    best = {
        "ter": 0,
        "edits": 0,
        "wer": 0,
        "cer": 0,
        "cider": score_text(REFERENCES, REFERENCES, ["cider"])["cider"],
    }.get(name, 100)
    assert score_text(REFERENCES, REFERENCES, [name])[name] == pytest.approx(best)
    worse = score_text(OUTPUTS, REFERENCES, [name])[name]
    assert worse < best if METRICS[name].larger_is_better else worse > best


@pytest.mark.parametrize("name", ALL)
def test_the_order_of_sentences_does_not_matter(name):
    order = random.Random(1).sample(range(3), 3)
    shuffled = score_text([OUTPUTS[at] for at in order], [REFERENCES[at] for at in order], [name], language="de")
    assert shuffled[name] == pytest.approx(score_text(OUTPUTS, REFERENCES, [name], language="de")[name])


@pytest.mark.parametrize("name", ALL)
def test_an_empty_output_and_an_empty_reference_are_scored(name):
    assert np.isfinite(score_text(["", "a", ""], ["a", "", ""], [name])[name])


@pytest.mark.parametrize("name", ["chrf", "ter", "meteor:de", "edits", "tokens", "exact"])
def test_as_a_utility_every_metric_likes_what_is_right_best(name):
    good = utility(name)
    assert good(REFERENCES[0], REFERENCES[0]) > good("etwas ganz anderes", REFERENCES[0])


def test_edit_distance_by_hand():
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == 3 == edit_distance("abc", "")
    assert edit_distance("grün", "grun") == 1
    assert edit_distance("👍🏽", "👍") == 1
    assert score_text(["2018-05-09"], ["2018-05-19"], ["edits"])["edits"] == pytest.approx(10)


def test_token_accuracy_goes_by_place():
    assert score_text(["a b c", "x"], ["a c c d", "x"], ["tokens"])["tokens"] == pytest.approx(100 * 3 / 5)


def test_cider_by_hand():
    # Two pictures; "a" is in both, so it weighs log(2/2) = 0; "b" and "c" weigh log 2, as do "a b" and "a c".
    # Orders 1 and 2 have cosine 1 for a perfect output, orders 3 and 4 do not exist: (1 + 1 + 0 + 0) / 4.
    assert score_text(["a b", "a c"], ["a b", "a c"], ["cider"])["cider"] == pytest.approx(500)
    # Nothing in common but what is everywhere.
    assert score_text(["a", "a"], ["a b", "a c"], ["cider"])["cider"] == 0
    # A word too many: order 1 has b·b / (|b|·√(b² + d²)) = 1/√2, order 2 the same; the length costs exp(−1/72).
    expected = 1000 * (np.exp(-1 / 72) * (2 / np.sqrt(2)) / 4 + 0.5) / 2
    assert score_text(["a b d", "a c"], ["a b", "a c"], ["cider"])["cider"] == pytest.approx(expected)


def test_a_sum_of_statistics_is_a_corpus():
    for name, metric in make(ALL, "de").items():
        rows = metric.statistics(OUTPUTS, [(one,) for one in REFERENCES])
        assert len(rows) == 3
        assert metric.score(rows.sum(0)) == score_text(OUTPUTS, REFERENCES, [name], language="de")[name]


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(UsageError, match="1 outputs for 0 references"):
        score_text(["a"], [])
    with pytest.raises(UsageError, match=r"no metric `meteo`\. Did you mean `meteor`"):
        score_text(["a"], ["a"], ["meteo"])
    with pytest.raises(UsageError, match="Choose from bleu"):
        score_text(["a"], ["a"], ["qqq"])
    with pytest.raises(UsageError, match="at least one reference"):
        score_text(["a"], [()])
    assert score_text([], []).values == {}
