"""The table of a corpus: its rows are what evaluate, score, translate and predict say, in any batches."""

import json
import math
import shutil

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

import regard
from regard.data.corpus import Pair
from regard.evaluation import corpus_table
from regard.evaluation.confidence import fit_confidence
from regard.evaluation.corpus_table import corpus_rows, read_corpus
from regard.evaluation.evaluation import evaluate_run
from regard.evaluation.judged import judge_run
from regard.evaluation.likelihood import likelihoods
from regard.evaluation.perplexity import text_likelihoods
from regard.foundation.errors import RegardError, UsageError
from regard.metrics.scoring import score_text
from regard.search import Search
from regard.tasks.loaded import load_run
from regard.tasks.preparation import prepare
from tests.stored_runs import FIXTURES

RUNS = FIXTURES / "format-1"


def own_pairs(name):
    """The validation examples of a stored run."""
    return prepare(load_run(RUNS / name).config, RUNS / name).validation_pairs


def every_row(*given, **options):
    return [row for batch in corpus_rows(*given, **options) for row in batch]


@pytest.mark.parametrize("name", ["translation-transformer", "translation-rnn", "answering"])
def test_rows_of_texts_are_what_evaluate_and_score_say(name):
    run, pairs = load_run(RUNS / name), own_pairs(name)[:12]
    rows = every_row(run, pairs, beam=2)
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    evaluated = evaluate_run(run, sources, references, ["bleu", "chrf"], beam=2)
    assert [row.output for row in rows] == list(evaluated.outputs)
    assert score_text([row.output for row in rows], references, ["bleu", "chrf"]) == evaluated.scores
    for row, likelihood in zip(rows, likelihoods(run, sources, references), strict=True):
        assert row.reference_log_prob == pytest.approx(likelihood.log_prob / len(likelihood.log_probs), abs=1e-5)
        assert row.reference_tokens == len(likelihood.log_probs) - 1
    for row, [best] in zip(rows, run.hypotheses(sources, beam=2), strict=True):
        assert row.output_log_prob == pytest.approx(sum(best.log_probs) / len(best.log_probs), abs=1e-5)
        assert row.confidence == pytest.approx(math.exp(row.output_log_prob)) and row.score == pytest.approx(best.score)
        assert row.confidence_kind == "token probability" and row.output_tokens == len(best.tokens)
    for row in rows:
        assert row.chrf == CHRF().sentence_score(row.output, [row.reference]).score
        assert row.bleu == BLEU(effective_order=True).sentence_score(row.output, [row.reference]).score
    assert [(row.number, row.source, row.reference) for row in rows] == [
        (number, pair.source, pair.target) for number, pair in enumerate(pairs)
    ]


@pytest.mark.parametrize("name", ["translation-rnn", "classes", "tags", "number", "language"])
def test_rows_do_not_depend_on_batches_and_are_json(name):
    run, pairs = load_run(RUNS / name), own_pairs(name)[:9]
    together, apart = (every_row(run, pairs, batch=batch) for batch in (32, 2))
    for one, other in zip(together, apart, strict=True):
        whole = json.loads(json.dumps(one.to_json(), allow_nan=False))
        for key, value in other.to_json().items():
            assert whole[key] == (pytest.approx(value, abs=1e-5) if isinstance(value, float) else value)
    found = corpus_rows(run, pairs, batch=2)
    assert len(next(found)) == 2  # nothing else has been computed: closing it cancels the rest
    found.close()


def test_a_calibrated_run_has_calibrated_confidence(tmp_path, copy_run):
    shutil.copytree(copy_run, tmp_path / "run")
    run = load_run(tmp_path / "run")
    sources = [" ".join(letters) for letters in ("abcdef" * 3, "fedcba" * 2, "aabb", "ace", "bdf", "a", "fa")] * 20
    fit_confidence(run, sources, [source[:9] for source in sources]).save(tmp_path / "run")
    pairs = [Pair(source, source) for source in sources[:7]]
    rows = every_row(run, pairs, directory=tmp_path / "run")
    assert {row.confidence_kind for row in rows} == {"calibrated"}
    from regard.evaluation.confidence import rate_best

    lists = run.hypotheses([pair.source for pair in pairs], Search())
    told = rate_best(run, tmp_path / "run", [pair.source for pair in pairs], lists)
    assert [round(row.confidence, 3) for row in rows] == pytest.approx([one["confidence"] for one in told], abs=2e-3)
    assert {row.confidence_kind for row in every_row(run, pairs)} == {"token probability"}


@pytest.mark.parametrize("name", ["classes", "pairs"])
def test_rows_of_labels_are_what_predict_and_evaluate_say(name):
    run, pairs = load_run(RUNS / name), own_pairs(name)
    rows = every_row(run, pairs)
    for row, answer in zip(rows, run.predict([pair.source for pair in pairs]), strict=True):
        assert row.output == answer.label and row.probability == pytest.approx(answer.probability, abs=1e-5)
        assert row.reference_probability == pytest.approx(answer.probabilities[row.reference], abs=1e-5)
    judged = judge_run(run.task, run.model, pairs)
    assert 100 * sum(row.right for row in rows) / len(rows) == pytest.approx(judged.judgement.scores["accuracy"])


def test_rows_of_tags_are_what_predict_and_evaluate_say():
    run, pairs = load_run(RUNS / "tags"), own_pairs("tags")
    rows = every_row(run, pairs)
    for row, answer in zip(rows, run.predict([pair.source for pair in pairs]), strict=True):
        assert row.output.split() == list(answer.tags)
        trace = run.trace(row.source)
        assert row.probability == pytest.approx(float(trace.target_log_probs.exp().min()), abs=1e-5)
        assert row.right == (row.output == row.reference) == (row.words == row.words_right)
    judged = judge_run(run.task, run.model, pairs)
    share = sum(row.words_right for row in rows) / sum(row.words for row in rows)
    assert 100 * share == pytest.approx(judged.judgement.scores["accuracy"])


def test_rows_of_numbers_and_documents():
    run, pairs = load_run(RUNS / "number"), own_pairs("number")[:5]
    for row, answer in zip(every_row(run, pairs), run.predict([pair.source for pair in pairs]), strict=True):
        assert row.output == answer.line and row.right is None
        assert row.difference == pytest.approx(answer.value - float(row.reference), abs=1e-5)
    run, pairs = load_run(RUNS / "language"), own_pairs("language")[:5]
    for row, found in zip(every_row(run, pairs), text_likelihoods(run, [pair.source for pair in pairs]), strict=True):
        assert row.log_prob * row.tokens == pytest.approx(found.log_prob, abs=1e-3)


def test_captions_have_rows_without_likelihoods_of_references():
    run, pairs = load_run(RUNS / "captions"), own_pairs("captions")[:3]
    rows = every_row(run, pairs, beam=1)
    assert [row.output for row in rows] == run.translate([pair.source for pair in pairs], beam=1)
    assert all(row.reference_log_prob is None and row.source_tokens is None and row.chrf is not None for row in rows)


def test_an_example_that_is_refused_has_an_error_and_the_others_their_rows(monkeypatch):
    run = load_run(RUNS / "translation-rnn")
    real = run.hypotheses

    def refuse(texts, *given, **options):
        if "b b" in texts:
            raise UsageError("It is too long. Split it.")
        return real(texts, *given, **options)

    monkeypatch.setattr(run, "hypotheses", refuse)
    rows = every_row(run, [Pair("a b", "a b"), Pair("b b", "b b"), Pair("", ""), Pair("c", "c")])
    assert [row.error for row in rows] == [None, "It is too long. Split it.", None, None]
    assert rows[1].output is None and rows[1].number == 1 and rows[3].output
    assert (rows[2].output, rows[2].confidence, rows[2].output_log_prob) == ("", None, None)


def test_corpora_are_two_files_or_one_in_the_format_of_the_run(tmp_path):
    for name, text in (("s", "a b\nc d\n"), ("t", "a\nc\n")):
        (tmp_path / name).write_text(text)
    run = regard.load(RUNS / "translation-rnn").loaded
    assert read_corpus(run, [tmp_path / "s", tmp_path / "t"]) == [Pair("a b", "a"), Pair("c d", "c")]
    labels = load_run(RUNS / "classes")
    (tmp_path / "labelled.txt").write_text("yes w0 w1\nno w2\n")
    assert [pair.target for pair in read_corpus(labels, [tmp_path / "labelled.txt"])] == ["yes", "no"]
    (tmp_path / "wrong").write_text("maybe\nno\n")
    with pytest.raises(RegardError, match="maybe"):
        read_corpus(labels, [tmp_path / "s", tmp_path / "wrong"])
    with pytest.raises(UsageError, match="no corpus"):
        read_corpus(run, [])


def test_bad_options_are_refused():
    run = load_run(RUNS / "classes")
    with pytest.raises(UsageError, match="beam"):
        next(corpus_rows(run, [Pair("w0", "yes")], beam=2))
    with pytest.raises(UsageError, match="batch"):
        next(corpus_rows(run, [Pair("w0", "yes")], batch=0))
    with pytest.raises(UsageError, match="regard evaluate"):
        next(corpus_rows(load_run(RUNS / "masked"), [Pair("w0", "")]))
    assert corpus_table.BATCH > 1
