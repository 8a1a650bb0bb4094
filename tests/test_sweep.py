"""Sweeps: a grid of runs that is continued, extended and summarised by mean and deviation."""

import csv
import json
import statistics

import pytest

from regard.cli import main
from regard.foundation.errors import RegardError, UsageError
from regard.runs.run import Run
from regard.training import sweep
from regard.training.sweep import plan_trials, short_names, split_values, summarise

CONFIG = """
data: {train: {generate: copy, size: 300, symbols: 5, max_length: 4}}
text: {tokenizer: {kind: words}}
model: {width: 8, encoder: {kind: rnn}, decoder: {kind: rnn}}
training: {steps: 2, batch_tokens: 256, device: cpu}
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text(CONFIG)
    return tmp_path / "my.yaml"


def test_values_are_split_at_commas_outside_brackets_and_quotes():
    assert list(split_values("1,2, 3")) == ["1", "2", "3"]
    assert list(split_values("{kind: rnn, layers: 2},{kind: conv}")) == ["{kind: rnn, layers: 2}", "{kind: conv}"]
    assert list(split_values("[a, b],[c]")) == ["[a, b]", "[c]"]
    assert list(split_values("'a,b',c")) == ["'a,b'", "c"]


def test_names_are_as_short_as_they_can_be():
    assert short_names(["model.encoder.layers", "model.decoder.layers", "model.width"]) == [
        "encoder.layers",
        "decoder.layers",
        "width",
    ]


def test_the_grid_is_every_combination(config, tmp_path):
    trials = plan_trials(config, ["model.width=8,16", "training.seed=1,2,3", "model.dropout=0.1"], tmp_path / "s")
    assert len(trials) == len({trial.directory for trial in trials}) == 6
    assert {(trial.config.model.width, trial.config.training.seed) for trial in trials} == {
        (width, seed) for width in (8, 16) for seed in (1, 2, 3)
    }
    assert all(trial.config.model.dropout == 0.1 for trial in trials)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["model.width"], "not a setting"),
        (["model.width="], "not a setting"),
        (["model.width=8", "model.width=16"], "given twice"),
        ([f"training.seed={','.join(map(str, range(1001)))}"], "1,001 trials"),
        (["model.widht=8,16"], "width"),
    ],
)
def test_mistakes_are_refused_before_anything_is_trained(config, tmp_path, settings, message):
    with pytest.raises(UsageError, match=message):
        plan_trials(config, settings, tmp_path / "s")


def test_a_sweep_writes_its_table_in_every_form_and_is_not_trained_twice(config, tmp_path, capsys):
    command = ["sweep", "my.yaml", "model.width=8,16", "training.seed=1,2", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    directory = tmp_path / "runs" / "my-sweep"
    assert [row["settings"] for row in found["rows"]] == [{"model.width": "8"}, {"model.width": "16"}]
    for row in found["rows"]:
        width = row["settings"]["model.width"]
        runs = [Run.open(directory / f"width-{width}_seed-{seed}") for seed in (1, 2)]
        losses = [run.info["result"]["validation"]["loss"] for run in runs]
        assert row["scores"]["validation loss"]["mean"] == pytest.approx(statistics.fmean(losses))
        assert row["scores"]["validation loss"]["deviation"] == pytest.approx(statistics.stdev(losses))
    with (directory / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["validation loss"]) for row in rows] == pytest.approx(
        [row["scores"]["validation loss"]["mean"] for row in found["rows"]]
    )
    assert (directory / "sweep.tex").read_text().count("$\\pm$") >= 2
    assert (directory / "sweep.png").read_bytes().startswith(b"\x89PNG")

    times = {run: (run / "model.safetensors").stat().st_mtime_ns for run in directory.iterdir() if run.is_dir()}
    assert main([*command[:-2], "training.seed=1,2,3", "--json"]) == 0
    assert [row["seeds"] for row in json.loads(capsys.readouterr().out)["rows"]] == [3, 3]
    assert all((run / "model.safetensors").stat().st_mtime_ns == time for run, time in times.items())


def test_a_directory_of_another_configuration_is_refused_before_training(config, tmp_path, capsys):
    assert main(["sweep", "my.yaml", "training.seed=1,2"]) == 0
    capsys.readouterr()
    config.write_text(CONFIG.replace("width: 8", "width: 12"))
    assert main(["sweep", "my.yaml", "training.seed=3,2"]) == 2
    assert "another configuration" in capsys.readouterr().err
    assert not (tmp_path / "runs" / "my-sweep" / "seed-3").exists()


def test_a_failing_trial_does_not_stop_the_others(config, tmp_path, capsys, monkeypatch):
    train = sweep.train

    def failing(config, directory, **options):
        if config.training.seed == 1:
            raise RegardError("The loss is not finite.")
        return train(config, directory, **options)

    monkeypatch.setattr(sweep, "train", failing)
    assert main(["sweep", "my.yaml", "training.seed=1,2", "--json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["failed"] == {"seed-1": "The loss is not finite."}
    assert json.loads(printed.out)["rows"][0]["seeds"] == 1
    assert "seed-1: The loss is not finite." in printed.err


def test_one_seed_has_no_deviation(config, tmp_path):
    trial = plan_trials(config, ["model.width=8,16"], tmp_path / "s")[0]
    outcome = sweep.train(trial.config, tmp_path / "one")
    row = summarise([(trial, outcome)]).rows[0]
    assert row.scores["validation loss"][1] is None and "±" not in str(summarise([(trial, outcome)]))
