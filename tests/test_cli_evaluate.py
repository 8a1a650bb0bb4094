"""What a user types to know how good a model is."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from regard.cli import main
from regard.runs.run import Run
from regard.training.journal import Journal
from regard.training.loop import train
from regard.training.view import View
from tests.test_training import tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that has learnt a little, with test data."""
    config = tiny("data.test.generate=copy", "data.test.size=30", "data.test.seed=5")
    return train(config, tmp_path_factory.mktemp("runs") / "copy", view=View()).run


@pytest.fixture(scope="module")
def files(run):
    """The run's test data as files: source, and target."""
    pairs = [json.loads(line) for line in (run.data / "test.jsonl").read_text().splitlines()]
    paths = {}
    for side in ("source", "target"):
        paths[side] = run.directory.parent / f"test.{side}"
        paths[side].write_text("".join(pair[side] + "\n" for pair in pairs))
    return paths


def typed(capsys, *arguments):
    """What a command prints, and its exit code."""
    code = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_the_score_of_training_of_evaluate_and_of_the_saved_file_are_one_number(run, files, capsys, tmp_path):
    written = next(line for line in Journal(Run.open(run.directory).metrics).lines() if line["kind"] == "test")
    own = json.loads(typed(capsys, "evaluate", run.directory, "--json")[1])
    named = ("--source", files["source"], "--reference", files["target"])
    given = json.loads(typed(capsys, "evaluate", run.directory, *named, "-o", tmp_path, "--json")[1])
    saved = typed(capsys, "evaluate", "--hypotheses", tmp_path / "hypotheses.txt", *named[2:], "--json")[1]
    assert given == own == json.loads(saved) == json.loads((tmp_path / "scores.json").read_text())
    assert given["sentences"] == 30
    for metric, value in given["scores"].items():
        assert value == pytest.approx(written[metric], rel=1e-5)


def test_evaluate_prints_scores_with_their_signatures(run, files, capsys):
    metrics = "bleu,chrf,ter,meteor,cider,exact,edits,tokens,perplexity"
    named = ("--source", files["source"], "--reference", files["target"], "--reference", files["source"])
    code, out, err = typed(capsys, "evaluate", run.directory, *named, "--metrics", metrics, "--beam", 1)
    assert code == 0 and not err
    for part in (
        "BLEU ",
        "nrefs:2",
        "precisions",
        "brevity",
        "chrF ",
        "TER ",
        "METEOR ",
        "alpha:",
        "CIDEr-D",
        "perplexity",
        "per word",
        "per character",
        "by position: 1: ",
    ):
        assert part in out


def test_the_perplexity_of_evaluate_is_that_of_score(run, files, capsys):
    named = ("--source", files["source"], "--reference", files["target"])
    one = json.loads(typed(capsys, "evaluate", run.directory, *named, "--metrics", "perplexity", "--json")[1])
    named = ("--source", files["source"], "--target", files["target"])
    other = json.loads(typed(capsys, "score", run.directory, *named, "--json")[1])
    assert one["perplexity"] == other["total"] and one["positions"] == other["positions"]
    assert set(one["perplexity"]["perplexity"]) == {"token", "word", "character"}
    assert len(other["sentences"]) == 30 == other["positions"][0]["targets"]
    assert sum(len(line["log_probs"]) for line in other["sentences"]) == other["total"]["tokens"]


def test_score_prints_a_line_each_and_all_of_it_aside(run, files, capsys):
    code, out, err = typed(capsys, "score", run.directory, "--source", files["source"], "--target", files["target"])
    assert code == 0 and out.count("\n") == 30 and err.startswith("30 targets: log-probability -")
    assert all(part in err for part in ("per token", "per word", "per character", "by position: 1: "))


def test_the_language_is_how_a_reference_ends(tmp_path, capsys):
    for name in ("out.de", "test.de"):
        (tmp_path / name).write_text("Zwei Häuser stehen dort.\n")
    named = ("--hypotheses", tmp_path / "out.de", "--reference", tmp_path / "test.de", "--metrics", "meteor")
    assert "lang:de|" in typed(capsys, "evaluate", *named)[1]
    assert "lang:en|" in typed(capsys, "evaluate", *named, "--language", "en")[1]


def test_perplexity_alone_translates_nothing(run, capsys, tmp_path):
    code, out, _ = typed(capsys, "evaluate", run.directory, "--metrics", "perplexity", "-o", tmp_path / "new")
    assert code == 0 and "30 sentences" in out
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["scores.json"]


def test_a_run_compared_with_itself_is_never_better(run, files, capsys, tmp_path):
    typed(capsys, "evaluate", run.directory, "-o", tmp_path)
    named = ("--source", files["source"], "--reference", files["target"], "--resamples", 50)
    again = ("--system", f"again={tmp_path / 'hypotheses.txt'}")
    pages = ("-o", tmp_path / "page.html", "--picture", tmp_path / "length.png")
    code, out, _ = typed(capsys, "compare", run.directory, *named, *again, *pages)
    assert code == 0 and "not significant" in out and "0 of 30 sentences differ" in out
    assert (tmp_path / "page.html").stat().st_size and (tmp_path / "length.png").stat().st_size
    facts = json.loads(typed(capsys, "compare", run.directory, *named, *again, "--json")[1])
    assert facts["significance"]["again"]["bleu"]["bootstrap"] == 1
    assert facts["systems"]["copy"] == facts["systems"]["again"]


def test_contrast_prints_accuracy_by_category(run, capsys, tmp_path):
    pairs = [json.loads(line) for line in (run.data / "test.jsonl").read_text().splitlines()]
    for name in ("one", "other"):
        rows = [f"{pair['source']}\t{pair['target']}\t{pair['target']} {pair['target']}\n" for pair in pairs]
        (tmp_path / f"{name}.tsv").write_text("".join(rows))
    suites = (tmp_path / "one.tsv", tmp_path / "other.tsv")
    code, out, _ = typed(capsys, "contrast", run.directory, *suites, "-o", tmp_path / "items.tsv")
    by_category = out.split("\n\n")[0]
    assert code == 0 and [line.split()[0] for line in by_category.splitlines()] == ["category", "one", "other", "all"]
    facts = json.loads(typed(capsys, "contrast", run.directory, *suites, "--json")[1])
    assert facts["total"]["count"] == 60 and facts["categories"]["one"] == facts["categories"]["other"]
    margins = [float(line.split("\t")[0]) for line in (tmp_path / "items.tsv").read_text().splitlines()[1:]]
    assert len(margins) == 60 and margins == sorted(margins)


def test_contrast_counts_words_in_translations(run, capsys, tmp_path):
    pairs = [json.loads(line) for line in (run.data / "test.jsonl").read_text().splitlines()]
    typed(capsys, "evaluate", run.directory, "-o", tmp_path / "e")
    outputs = (tmp_path / "e" / "hypotheses.txt").read_text().splitlines()
    rows = []
    for number, (pair, output) in enumerate(zip(pairs, outputs, strict=True)):
        said = (output.split() or ["zzz"])[0]
        words = {"good": [said], "bad": ["zzzz"]} if number % 3 else {"good": ["zzzz"], "bad": [said]}
        rows.append({"source": pair["source"], **words, "category": "third" if number % 3 == 0 else "other"})
    (tmp_path / "senses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = typed(capsys, "contrast", run.directory, tmp_path / "senses.jsonl", "-o", tmp_path / "items.tsv")
    assert code == 0 and "precision" in out and (tmp_path / "items.tsv").read_text().startswith("found\tcategory")
    facts = json.loads(typed(capsys, "contrast", run.directory, tmp_path / "senses.jsonl", "--json")[1])
    assert facts["categories"]["other"]["precision"] == 1 and facts["categories"]["third"]["right"] == 0
    assert facts["total"]["count"] == 30
    code, _, err = typed(capsys, "contrast", run.directory, tmp_path / "senses.jsonl", "--control")
    assert code == 2 and "counts words in translations" in err


def test_a_key_file_of_ids_is_warned_of(run, capsys, tmp_path):
    (tmp_path / "key.tsv").write_text("".join(f"w{number}\tbooks\tbank\n" for number in range(12)))
    code, _, err = typed(capsys, "contrast", run.directory, tmp_path / "key.tsv")
    assert code == 0 and "12 of 12 sources have no letters or no spaces" in err
    assert json.loads(typed(capsys, "contrast", run.directory, tmp_path / "key.tsv", "--json")[1])["warnings"]


def test_short_targets_get_metrics_that_suit_them(tmp_path, capsys):
    (tmp_path / "a").write_text("eins\nzwei\ndrei\n")
    (tmp_path / "b").write_text("eins\nzwei\nvier\n")
    named = ("--hypotheses", tmp_path / "a", "--reference", tmp_path / "b")
    code, out, _ = typed(capsys, "evaluate", *named)
    assert code == 0 and out.startswith("exact match") and "BLEU is omitted" in out
    facts = json.loads(typed(capsys, "evaluate", *named, "--json")[1])
    assert list(facts["scores"]) == ["exact", "chrf"] and "four-grams" in facts["notes"][0]
    asked = json.loads(typed(capsys, "evaluate", *named, "--metrics", "bleu,exact", "--json")[1])
    assert set(asked["scores"]) == {"bleu", "exact"} and "not meaningful" in asked["notes"][0]
    systems = ("--system", f"a={tmp_path / 'a'}", "--system", f"b={tmp_path / 'b'}", "--reference", tmp_path / "b")
    assert set(json.loads(typed(capsys, "compare", *systems, "--json")[1])["systems"]["a"]) == {"exact", "chrf"}


def test_scoring_mere_text_needs_no_torch(tmp_path):
    (tmp_path / "a.de").write_text("Ein Hund.\n")
    arguments = ["evaluate", "--hypotheses", str(tmp_path / "a.de"), "--reference", str(tmp_path / "a.de")]
    code = f"import sys; from regard.cli import main; main({arguments!r}); print('torch' in sys.modules)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.endswith("False\n")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["evaluate"], 2, "either a run or --hypotheses"),
        (["evaluate", "--hypotheses", "two"], 2, "--reference FILE"),
        (["evaluate", "RUN", "--source", "two"], 2, "belong together"),
        (["evaluate", "--hypotheses", "two", "--reference", "three"], 2, "two has 2 lines, but .*three has 3"),
        (["evaluate", "--hypotheses", "two", "--reference", "empty"], 1, "empty is empty"),
        (["evaluate", "--hypotheses", "two", "--reference", "latin"], 1, r"latin:2 is not valid UTF-8"),
        (["evaluate", "--hypotheses", "two", "--reference", "gone"], 1, "gone does not exist"),
        (["evaluate", "--hypotheses", "two", "--reference", "two", "--metrics", "blue"], 2, "Did you mean `bleu`"),
        (["evaluate", "--hypotheses", "two", "--reference", "two", "--metrics", "perplexity"], 2, "Name a run"),
        (["evaluate", "--hypotheses", "two", "--reference", "two", "--metrics", ","], 2, "--metrics is empty"),
        (["compare", "RUN", "--reference", "two"], 2, "at least two"),
        (["compare", "RUN", "RUN", "--reference", "two"], 2, "--source FILE"),
        (["compare", "RUN", "RUN", "--source", "two"], 2, "--reference FILE"),
        (["compare", "--system", "two", "--system", "b=two", "--reference", "two"], 2, "NAME=FILE"),
        (["compare", "--system", "a=two", "--system", "a=two", "--reference", "two"], 2, "Two systems are called `a`"),
        (
            ["compare", "--system", "a=two", "--system", "b=three", "--reference", "two"],
            2,
            "2 lines, but three has 3",
        ),
        (
            ["compare", "RUN", "RUN", "--reference", "two", "--source", "two", "-o", "no/page.html"],
            2,
            "no directory no",
        ),
        (["compare", "RUN", "RUN", "--reference", "two", "--source", "two", "--picture", "."], 2, "is a directory"),
        (["contrast", "RUN", "two", "-o", "no/items.tsv"], 2, "no directory no. Create it first"),
        (["judge", "make", "--source", "two", "--system", "a=two", "-o", "no/form.html"], 2, "no directory no"),
        (["translate", "RUN", "two", "-o", "no/out.txt"], 2, "no directory no"),
        (["translate", "RUN", "two", "--show-search", "no/tree.html"], 2, "no directory no"),
        (["contrast", "RUN", "two"], 1, "two:1 has 1 tab-separated columns"),
        (["judge", "make", "--source", "two", "--system", "a=two", "-o", "form.txt"], 2, "neither .html nor .csv"),
        (
            ["judge", "make", "--source", "two", "--system", "a=three", "-o", "form.html"],
            2,
            "2 lines, but three has 3",
        ),
        (["score", "RUN", "--source", "two", "--target", "three"], 2, "two has 2 lines, but .*three has 3"),
    ],
)
def test_what_is_wrong_is_told_with_its_remedy(arguments, code, message, run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in {"two": b"a\nb\n", "three": b"a\nb\nc\n", "empty": b"", "latin": b"a\n\xe4\n"}.items():
        (tmp_path / name).write_bytes(content)
    found, _, err = typed(capsys, *(run.directory if each == "RUN" else each for each in arguments))
    assert found == code
    assert re.search(message, err) and err.count("\n") <= 2


def test_runs_are_compared_on_their_own_test_data(run, capsys, tmp_path):
    other = tmp_path / "copy-of-it"
    shutil.copytree(run.directory, other)
    code, out, _ = typed(capsys, "compare", run.directory, other, "--resamples", 20, "-o", tmp_path / "tables.json")
    assert code == 0 and "0 of 30 sentences differ" in out
    facts = json.loads((tmp_path / "tables.json").read_text())
    assert set(facts["systems"]) == {run.directory.name, "copy-of-it"}
    code, _, error = typed(capsys, "compare", run.directory, other, "-o", tmp_path / "tables.xyz")
    assert code == 2 and ".html, .png, .json, .txt" in error


def test_scores_are_written_by_ending(run, capsys, tmp_path):
    code, out, _ = typed(capsys, "evaluate", run.directory, "-o", tmp_path / "scores.json")
    assert code == 0 and json.loads((tmp_path / "scores.json").read_text())["sentences"] == 30
    typed(capsys, "evaluate", run.directory, "-o", tmp_path / "scores.txt")
    assert (tmp_path / "scores.txt").read_text() == out
