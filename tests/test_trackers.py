"""Experiment trackers hear every measurement of a run, and never stop it."""

import json
from pathlib import Path

import pytest

from regard.config import choices
from regard.config.loading import from_mapping
from regard.foundation.errors import UsageError
from regard.training import trackers
from regard.training.loop import train
from regard.training.view import View

SETTINGS = {
    "data": {"train": {"generate": "copy", "size": 300, "symbols": 5, "max_length": 4}},
    "text": {"tokenizer": {"kind": "words"}},
    "model": {"width": 16, "encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}},
    "training": {"steps": 4, "validate_every": 2, "batch_tokens": 256, "device": "cpu"},
}


class Warnings(View):
    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


class Recorder(trackers.Tracker):
    def begin(self, step):
        self.events = [("begin", step)]
        RECORDED.append(self)

    def add(self, kind, step, values):
        assert values and all(type(value) is float for value in values.values())
        self.events.append((kind, step, dict(values)))

    def close(self):
        self.events.append(("close",))


class Failing(Recorder):
    def add(self, kind, step, values):
        raise ConnectionError("the server is gone")


RECORDED: list[Recorder] = []


@pytest.fixture
def own(monkeypatch):
    RECORDED.clear()
    for name, kind in {"recorder": Recorder, "failing": Failing}.items():
        monkeypatch.setitem(trackers.TRACKERS, name, kind)
        monkeypatch.setitem(choices.TRACKERS._added, name, "")


def config(*names: str):
    return from_mapping(SETTINGS, [f"training.trackers=[{', '.join(names)}]"])


def test_a_tracker_hears_every_line_of_the_journal(own, tmp_path):
    train(config("recorder"), tmp_path / "run", view=View())
    events = RECORDED[0].events
    assert events[0] == ("begin", 0) and events[-1] == ("close",)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert {line["kind"] for line in lines} >= {"validation", "result"}
    heard = [(kind, step, values) for kind, step, values in events[1:-1]]
    written = [
        (line["kind"], line["step"], {name: float(value) for name, value in line.items() if _is_number(name, value)})
        for line in lines
    ]
    assert heard == written


def _is_number(name, value):
    return name not in ("kind", "step") and isinstance(value, int | float) and not isinstance(value, bool)


def test_a_resumed_run_says_where_it_resumes(own, tmp_path):
    train(config("recorder"), tmp_path / "run", view=View())
    longer = from_mapping(SETTINGS, ["training.trackers=[recorder]", "training.steps=6"])
    train(longer, tmp_path / "run", resume=True, view=View())
    assert RECORDED[1].events[0] == ("begin", 4)


def test_a_failing_tracker_is_reported_once_and_training_ends_the_same(own, tmp_path):
    view = Warnings()
    outcome = train(config("failing", "recorder"), tmp_path / "run", view=view)
    plain = train(from_mapping(SETTINGS), tmp_path / "plain", view=View())
    assert outcome.validation == plain.validation
    assert [warning for warning in view.warnings if "ConnectionError: the server is gone" in warning] == [
        "The tracker Failing failed (ConnectionError: the server is gone) and gets no more measurements. "
        "Training continues."
    ]
    assert RECORDED[1].events[-1] == ("close",)


def test_a_missing_package_is_refused_before_training(own, tmp_path, monkeypatch):
    monkeypatch.setattr(Recorder, "package", "a_package_that_is_not_there", raising=False)
    with pytest.raises(UsageError, match="needs the package a_package_that_is_not_there"):
        train(config("recorder"), tmp_path / "run", view=View())
    assert not (tmp_path / "run").exists()


def test_an_unknown_tracker_is_refused_by_name():
    with pytest.raises(UsageError, match="tensorboard, wandb, mlflow"):
        from_mapping(SETTINGS, ["training.trackers=[comet]"])


def test_tensorboard_by_either_setting(tmp_path):
    pytest.importorskip("tensorboard", reason="needs tensorboard")
    for name, setting in {"old": "training.tensorboard=true", "new": "training.trackers=[tensorboard]"}.items():
        train(from_mapping(SETTINGS, [setting]), tmp_path / name, view=View())
        assert list((tmp_path / name / "tensorboard").iterdir())


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_the_services_record_offline(name, tmp_path: Path, monkeypatch):
    pytest.importorskip(name, reason=f"needs {name}")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    view = Warnings()
    train(from_mapping(SETTINGS, [f"training.trackers=[{name}]"]), tmp_path / "run", view=view)
    assert not [warning for warning in view.warnings if "tracker" in warning]
    written = (tmp_path / "run" / "wandb") if name == "wandb" else tmp_path / "mlruns"
    assert [file for file in written.rglob("*") if file.is_file()]
