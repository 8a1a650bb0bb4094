"""Laws of `regard evaluate` for every task: one number, however it is asked for."""

import json
import math
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from regard.cli import main
from regard.config.loading import from_mapping
from regard.data.corpus import Pair
from regard.metrics.labels import calibration
from regard.runs.run import Run
from regard.tasks.preparation import prepare
from regard.training.loop import train
from regard.training.view import View
from tests.task_runs import corpus, pair_lines, settings, tagged_lines

TASKS = ("classes", "pairs", "number", "tags", "masked", "language")
ANSWERING = ("classes", "pairs", "number", "tags")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of every task, hardly trained."""
    found = {}
    for kind in TASKS:
        place = tmp_path_factory.mktemp(kind)
        train(from_mapping(settings(kind, place)), place / "run", view=View())
        found[kind] = place / "run"
    return found


def facts(capsys: pytest.CaptureFixture[str], *words: Any) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["evaluate", *map(str, words), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def refusal(capsys: pytest.CaptureFixture[str], *words: Any) -> str:
    capsys.readouterr()
    assert main(["evaluate", *map(str, words)]) in (1, 2)
    return capsys.readouterr().err


@pytest.mark.parametrize("kind", TASKS)
def test_the_score_is_the_one_that_training_reports(kind, runs, capsys):
    reported = Run.open(runs[kind]).info["result"]["validation"]
    found = facts(capsys, runs[kind])
    if kind == "language":
        assert found["perplexity"]["perplexity"]["token"] == pytest.approx(reported["perplexity"], rel=1e-5)
        return
    assert found["scores"] == {name: pytest.approx(reported[name]) for name in found["scores"]} and found["scores"]
    assert found["loss"] == pytest.approx(reported["loss"], rel=1e-5)


@pytest.mark.parametrize("kind", TASKS)
def test_examples_are_counted_by_what_they_are_called(kind, runs, capsys):
    prepared = prepare(Run.open(runs[kind]).config, runs[kind])
    found, noun, count = facts(capsys, runs[kind]), prepared.task.noun, len(prepared.validation_pairs)
    assert found[noun] == count and not {"texts", "sentences", "captions", "documents"} - {noun} & set(found)
    assert main(["evaluate", str(runs[kind])]) == 0
    assert f"\n{count} {noun}\n" in capsys.readouterr().out
    assert noun == "documents" or f"the scores to {count} of them" in (runs[kind] / "README.md").read_text()


@pytest.mark.parametrize("kind", ANSWERING)
def test_answers_saved_and_scored_again_give_the_same(kind, runs, capsys, tmp_path):
    whole = facts(capsys, runs[kind], "-o", tmp_path / "out")
    assert json.loads((tmp_path / "out" / "scores.json").read_text()) == whole
    again = facts(capsys, runs[kind], "--hypotheses", tmp_path / "out" / "hypotheses.txt")
    assert again["scores"] == whole["scores"] and again["details"] == whole["details"]


@pytest.mark.parametrize("kind", ANSWERING)
def test_what_predict_writes_is_what_is_scored(kind, runs, capsys, tmp_path):
    pairs = prepare(Run.open(runs[kind]).config, runs[kind]).validation_pairs
    texts = corpus(tmp_path / "in.txt", [pair.source for pair in pairs])
    labels = corpus(tmp_path / "labels.txt", [pair.target for pair in pairs])
    capsys.readouterr()
    assert main(["predict", str(runs[kind]), texts]) == 0
    said = tmp_path / "said.txt"
    said.write_text(capsys.readouterr().out)
    whole = facts(capsys, runs[kind])
    assert facts(capsys, runs[kind], "--hypotheses", said)["scores"] == whole["scores"]
    assert facts(capsys, runs[kind], "--source", texts, "--reference", labels)["scores"] == whole["scores"]


def test_files_are_read_as_the_run_has_read_its_own_or_as_their_ending_says(runs, capsys, tmp_path):
    lines = pair_lines(150)[120:]
    tsv = corpus(tmp_path / "new.tsv", lines)
    cut = [line.split("\t") for line in lines]
    records = [json.dumps({"source": one, "second": other, "target": label}) for one, other, label, _ in cut]
    by_tsv = facts(capsys, runs["pairs"], "--data", tsv)
    by_json = facts(capsys, runs["pairs"], "--data", corpus(tmp_path / "new.jsonl", records))
    assert by_tsv["scores"] == by_json["scores"] and by_tsv["texts"] == 30
    words = [line.split() for line in tagged_lines(20)]
    numbers = [number for _, group in groupby(words, bool) for number, _ in enumerate(group, start=1)]
    rows = zip(numbers, words, strict=True)
    conllu = ["\t".join([str(number), *w[:1], "_", *w[1:], *["_"] * 6]) if w else "" for number, w in rows]
    by_columns = facts(capsys, runs["tags"], "--data", corpus(tmp_path / "new.txt", [" ".join(word) for word in words]))
    by_conllu = facts(capsys, runs["tags"], "--data", corpus(tmp_path / "new.conllu", conllu))
    assert by_columns == by_conllu and by_conllu["tables"][0]["title"] == "By tag"


def test_a_table_shows_what_was_taken_for_what_and_how_honest_probabilities_are(runs, capsys):
    assert main(["evaluate", str(runs["classes"])]) == 0
    told = capsys.readouterr().out
    assert all(word in told for word in ("accuracy", "macro-F1", "calibration", "True label by row", "yes", "no"))
    assert main(["evaluate", str(runs["number"])]) == 0
    assert "Pearson" in capsys.readouterr().out


def test_the_loss_says_whether_it_is_of_the_probabilities_that_are_printed(runs, capsys):
    found = facts(capsys, runs["classes"])
    assert "before calibration" in found["loss_name"] and found["temperature"] > 0
    assert main(["predict", str(runs["classes"]), "--json", str(_texts(runs["classes"]))]) == 0
    pairs = prepare(Run.open(runs["classes"]).config, runs["classes"]).validation_pairs
    said = [json.loads(line)["probabilities"] for line in capsys.readouterr().out.splitlines()]
    losses = [-math.log(one[pair.target]) for one, pair in zip(said, pairs, strict=True)]
    assert found["calibrated_loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    assert abs(found["temperature"] - 1) < 1e-3 or found["loss"] != pytest.approx(found["calibrated_loss"], rel=1e-6)
    assert main(["evaluate", str(runs["classes"])]) == 0
    told = capsys.readouterr().out
    assert "nats per text, before calibration" in told and "calibrated loss" in told


def _texts(run: Path) -> Path:
    pairs = prepare(Run.open(run).config, run).validation_pairs
    (run.parent / "texts.txt").write_text("".join(f"{pair.source}\n" for pair in pairs))
    return run.parent / "texts.txt"


@pytest.mark.parametrize("kind", ["classes", "pairs", "tags"])
def test_long_and_empty_examples_are_scored_whatever_the_model_can_read(kind, tmp_path, capsys):
    given = settings(kind, tmp_path)
    transformer = {"kind": "transformer", "layers": 1}
    given["model"] = {"width": 16, "encoder": transformer, "positions": {"kind": "learned", "max_length": 16}}
    given["data"]["cleaning"] = {**given["data"].get("cleaning", {}), "max_length": 14}
    long = {
        "classes": ["yes " + "w0 w3 " * 40, "no w2 w3"],
        "pairs": ["\t".join(["w1 " * 60, "w2", "same", "1"]), "\t".join(["w1", "w1 w2", "other", "1"])],
        "tags": [*("w1 first" if not n else "w1 w1" for n in range(50)), "", "w2 first", ""],
    }[kind]
    train_data = given["data"]["train"]
    path = tmp_path / "validation.txt"
    corpus(path, long)
    key = next(iter({"labelled", "tsv", "columns"} & set(train_data)))
    given["data"]["validation"] = {**train_data, key: str(path)}
    train(from_mapping(given), tmp_path / "run", view=View())
    prepared = prepare(Run.open(tmp_path / "run").config, tmp_path / "run")
    assert len(prepared.validation_pairs) == len(prepared.validation) == 2
    assert any("more than 14 tokens" in note for note in prepared.report.notes)
    found = facts(capsys, tmp_path / "run")
    assert found[prepared.task.noun] == 2 and math.isfinite(found["loss"])
    assert "1 of 2" in found["notes"][0]


def test_answers_that_are_right_as_often_as_they_are_sure_are_calibrated():
    assert calibration([0.75] * 4, [True, True, True, False])["expected_error"] == 0.0
    assert calibration([1.0] * 4, [True, False, False, False])["expected_error"] == pytest.approx(75)
    off = calibration([0.95, 0.95, 0.15, 0.15], [True, True, False, False])
    assert off["expected_error"] == pytest.approx(10) and off["mean_probability"] == pytest.approx(55)


def test_what_does_not_go_together_is_reported_in_a_sentence(runs, capsys, tmp_path):
    bad = corpus(tmp_path / "bad.tsv", ["w1\tw2\tsame\t1", "w1\tw2\tperhaps\t1"])
    assert "bad.tsv:2 has the label `perhaps`" in refusal(capsys, runs["pairs"], "--data", bad)
    bad = corpus(tmp_path / "worse.tsv", ["w1\tw2\tsame\t1", "w1\tw2\tsame\tx"])
    assert "worse.tsv:2 has `x`" in refusal(capsys, runs["number"], "--data", bad)
    short = corpus(tmp_path / "short.txt", ["yes"])
    assert "1 answers for" in refusal(capsys, runs["classes"], "--hypotheses", short)
    assert "not a label of this run" in refusal(
        capsys, runs["classes"], "--hypotheses", corpus(tmp_path / "odd.txt", ["perhaps"] * 11)
    )
    assert "no --hypotheses" in refusal(capsys, runs["language"], "--hypotheses", short)
    assert "Leave out --metrics" in refusal(capsys, runs["classes"], "--metrics", "bleu")
    assert "Name the run" in refusal(capsys, "--hypotheses", short, "--data", bad)
    assert "belong together" in refusal(capsys, runs["classes"], "--source", short)


def test_long_sources_are_evaluated_as_they_are_translated(copy_run, capsys):
    """In parts: what `regard evaluate` scores is what `regard translate` writes."""
    from regard.evaluation.corpus_table import corpus_rows
    from regard.evaluation.texts import translate_lines
    from regard.search import Search
    from regard.tasks.loaded import load_run

    run = load_run(copy_run)
    known = [token.replace("▁", "") for token in run.source_tokenizer.vocabulary[-6:]]
    sources = [
        " ".join(known),
        "\n".join([" ".join(known[:3]), " ".join(known[3:])]),
        ". ".join([" ".join(known[:4])] * 4),
    ]
    parts = [best[0].text for best in run.hypotheses(sources, Search(split=None))]
    whole = [best[0].text for best in run.hypotheses(sources, Search(split=False))]
    assert parts != whole, "the sources must be too long for the model"
    expected = [" ".join(text.splitlines()) for text in parts]
    assert translate_lines(run, sources) == expected
    assert run.output.lines(run.model, sources) == parts
    pairs = [Pair(source, source) for source in sources]
    assert [row.output for rows in corpus_rows(run, pairs) for row in rows] == expected
