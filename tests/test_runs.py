"""Laws of runs: complete directories that refuse what does not belong to them."""

import json
import subprocess
import sys

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from regard.cli import main
from regard.cli.verbs import app
from regard.config.loading import from_mapping
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.weights import put_weights, read_weights, weights_of, write_tensors
from regard.runs.run import Run, runs_under
from regard.training.journal import Journal
from regard.training.loop import train
from regard.training.view import LinesView, LiveView, Moment, Sample, View
from tests.test_training import tiny


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    config = tiny(
        "data.test.generate=copy", "data.test.size=10", "data.test.seed=5", "training.early_stopping.metric=exact"
    )
    return train(config, tmp_path_factory.mktemp("runs") / "first", view=View()).run


def test_a_finished_run_is_complete(finished):
    names = {path.name for path in finished.directory.iterdir() if not path.name.startswith(".")}
    assert names >= {
        "config.yaml", "run.json", "tokenizers", "data", "checkpoints", "metrics.jsonl", "model.safetensors",
        "README.md", "curves.png",
    }  # fmt: skip
    assert finished.status == "finished"
    kinds = [line["kind"] for line in Journal(finished.metrics).lines()]
    assert kinds == ["validation", "train", "validation", "result", "test"]
    card = finished.card.read_text()
    for fact in ("rnn → rnn", "BLEU", "nrefs:1", "regard translate", "regard.load", "seed", "target tokens a second"):
        assert fact in card


def test_a_run_says_again_what_its_model_said(finished):
    from regard.tasks.loaded import load_run

    translator = load_run(finished.directory)
    pair = json.loads((finished.data / "validation.jsonl").read_text().splitlines()[0])
    said = translator.translate(pair["source"])
    assert f"| {said} |" in finished.card.read_text()


def test_a_second_run_in_the_same_place_is_refused(finished, tmp_path):
    with pytest.raises(UsageError, match=r"Choose another place .*--resume"):
        Run.create(finished.directory, tiny())
    (tmp_path / "letter.txt").write_text("not a run")
    with pytest.raises(UsageError, match="Choose another place"):
        Run.create(tmp_path, tiny())


def test_what_is_no_run_is_told_with_its_neighbours(finished):
    with pytest.raises(UsageError, match=r"frist does not exist.*first"):
        Run.open(finished.directory.parent / "frist")
    with pytest.raises(UsageError, match="is not a run"):
        Run.open(finished.data)


def test_a_run_of_a_newer_format_is_refused(tmp_path):
    run = Run.create(tmp_path / "run", tiny())
    run.note(format=99)
    with pytest.raises(RegardError, match=r"newer Regard.*Upgrade"):
        Run.open(run.directory)


def test_a_damaged_run_is_told(tmp_path):
    run = Run.create(tmp_path / "run", tiny())
    for content in ("{", "[]", ""):
        (run.directory / "run.json").write_text(content)
        with pytest.raises(RegardError, match="damaged"):
            Run.open(run.directory)


def test_a_directory_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RegardError, match=r"[Cc]hoose another"):
        Run.create(tmp_path / "file" / "run", tiny())
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_one_process_trains_a_run_at_a_time(tmp_path):
    run = Run.create(tmp_path / "run", tiny())
    holding = f"""
import time
from pathlib import Path
from regard.runs.run import Run
with Run.open({str(run.directory)!r}).lock():
    print("held", flush=True)
    time.sleep(60)
"""
    other = subprocess.Popen([sys.executable, "-c", holding], stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout.readline() == "held\n"
        assert run.status == "running"
        with pytest.raises(RegardError, match="Another process"), run.lock():
            pass
    finally:
        other.kill()
        other.wait()
    with run.lock():
        assert run.status == "running"
    assert run.status == "stopped"  # noted as running, but nobody holds it


class Tied(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.embedding = nn.Embedding(5, width)
        self.output = nn.Linear(width, 5)
        self.output.weight = self.embedding.weight


def test_shared_weights_are_written_once_and_come_back_shared(tmp_path):
    model, other = Tied(), Tied()
    assert sorted(weights_of(model)) == ["embedding.weight", "output.bias"]
    write_tensors(tmp_path / "w.safetensors", weights_of(model), {"tokenizers": {"source": "a", "target": "b"}})
    put_weights(other, read_weights(tmp_path / "w.safetensors", {"source": "a", "target": "b"}))
    assert torch.equal(other.output.weight, model.embedding.weight) and torch.equal(
        other.output.bias, model.output.bias
    )


def test_weights_refuse_a_tokenizer_or_a_model_that_is_not_theirs(tmp_path):
    path = tmp_path / "w.safetensors"
    write_tensors(path, weights_of(Tied()), {"tokenizers": {"source": "a", "target": "b"}})
    with pytest.raises(RegardError, match="target tokenizer does not belong"):
        read_weights(path, {"source": "a", "target": "other"})
    with pytest.raises(RegardError, match=r"embedding\.weight is 5×3 there and 5×4 here"):
        put_weights(Tied(4), read_weights(path))
    with pytest.raises(RegardError, match=r"missing.*unknown"):
        put_weights(nn.Linear(3, 5), read_weights(path))
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(RegardError, match="damaged"):
        read_weights(path)
    with pytest.raises(RegardError, match="no weights"):
        read_weights(tmp_path / "none")


def test_a_run_refuses_a_foreign_tokenizer(finished):
    model = nn.Linear(1, 1)
    with pytest.raises(RegardError, match="does not belong to the model"):
        finished.load_model(lambda: model, {"source": "foreign", "target": "foreign"})


def test_a_finished_run_says_so_and_goes_on_when_given_more_steps(finished, tmp_path):
    again = train(finished.config, finished.directory, resume=True, view=View())
    assert again.already and again.step == 12
    config = tiny(steps=6)
    directory = tmp_path / "short"
    train(config, directory, view=View())
    longer = train(tiny(steps=12), directory, resume=True, view=View())
    assert not longer.already and longer.step == 12
    assert Run.open(directory).config.training.steps == 12


def test_early_stopping_stops_and_more_steps_set_it_going_again(tmp_path):
    settings = {"validate_every": 1, "checkpoint_every": 5, "early_stopping": {"patience": 2, "metric": "exact"}}
    outcome = train(tiny(**settings), tmp_path / "run", view=View())
    assert outcome.step == 3
    more = train(tiny(**settings, steps=40), tmp_path / "run", resume=True, view=View())
    assert more.step == 5


def test_runs_are_listed(finished, tmp_path):
    result = CliRunner().invoke(app, ["runs", str(finished.directory.parent)])
    assert result.exit_code == 0
    for fact in ("first", "rnn → rnn, attention", "12/12", "finished", "exact 0.0"):
        assert fact in result.output
    facts = json.loads(CliRunner().invoke(app, ["runs", str(finished.directory.parent), "--json"]).output)
    assert facts[0]["name"] == "first" and facts[0]["step"] == 12 and facts[0]["test"]["exact"] == 0.0
    assert runs_under(finished.directory)[0].name == "first"
    assert "no runs" in CliRunner().invoke(app, ["runs", str(tmp_path)]).output
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "run.json").write_text("{")
    assert "damaged" in CliRunner().invoke(app, ["runs", str(tmp_path)]).output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Name a configuration"),
        (["training.steps=5"], "Name a configuration"),
        (["--resume", "{run}", "--run", "x"], "one of them"),
        (["--resume", "{run}", "other.yaml"], "its own configuration"),
        (["--resume", "{run}", "model.width=32", "training.steps=50"], "model.width cannot change"),
        (["--resume", "{run}x"], "does not exist"),
        (["{run}/config.yaml", "--run", "{run}"], "There is already a run in"),
    ],
)
def test_wrong_usage_is_told_in_a_sentence(finished, capfd, arguments, says):
    code = main(["train", *(argument.format(run=finished.directory) for argument in arguments)])
    error = capfd.readouterr().err
    assert code == 2 and says in " ".join(error.split()) and "Traceback" not in error


@pytest.mark.parametrize("width", [5, 20, 200])
@pytest.mark.parametrize("kind", [LiveView, LinesView])
def test_views_bear_any_text_on_any_terminal(kind, width, capsys):
    from rich.console import Console

    view = kind(Console(width=width, force_terminal=True))
    view.preparing("reading [bold]", 5, None)
    view.preparing("reading [bold]", 9, 10)
    view.facts("Data", {"training": "[/red] 5 pairs"})
    view.start(0, 10)
    view.moment(Moment(step=1, total=10, loss=float("nan"), rate=1e-4, tokens_per_second=1e5, skipped=3))
    nasty = Sample(source="[bold]a[/nothing] \x1b[31m\n\t日本語" * 40, reference="", output="[link=x]")
    view.validated({"step": 1, "loss": 2.0, "perplexity": 7.4, "bleu": 1.0, "best": True}, [nasty])
    view.say("[/]")
    view.warn("[/]")
    view.close()
    assert "[/]" in capsys.readouterr().out.replace("\n", "") or width == 5


def test_a_run_whose_data_cannot_be_used_leaves_its_place_free(tmp_path):
    (tmp_path / "two").write_text("a\nb\n")
    (tmp_path / "one").write_text("a\n")
    config = from_mapping({"data": {"train": {"source": str(tmp_path / "two"), "target": str(tmp_path / "one")}}})
    with pytest.raises(RegardError, match="not aligned"):
        train(config, tmp_path / "run", view=View())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "damage", [{"created": None}, {"step": "many"}, {"parameters": "x"}, {"best": 3}, {"steps": [1]}, {"result": 7}]
)
def test_one_damaged_run_does_not_hide_the_others(tmp_path, damage, capsys):
    for name in ("good", "bad"):
        Run.create(tmp_path / name, tiny())
    info = json.loads((tmp_path / "bad" / "run.json").read_text())
    (tmp_path / "bad" / "run.json").write_text(json.dumps(info | damage))
    assert main(["runs", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "damaged" in said and "stopped" in said


def test_a_model_that_has_diverged_is_told_of_without_a_number():
    from regard.training.view import scores_line

    assert scores_line({"loss": float("nan"), "perplexity": None}) == "loss not finite"
    assert scores_line({"loss": 200.0, "perplexity": 7.2e86}) == "loss 200.000, perplexity 7.2e+86"
