"""What training shows: which loss is smoothed, a first output within seconds, and why final figures differ."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from regard.cli import main
from regard.config.loading import from_mapping
from regard.runs.run import Run
from regard.tasks.judgement import Sample
from regard.training import early_samples
from regard.training.early_samples import EarlySamples
from regard.training.loop import train
from regard.training.outcome import explain_difference
from regard.training.view import LinesView, LiveView, Moment, QuietView, View
from tests.task_runs import TASKS
from tests.task_runs import settings as task_settings

COPY = {
    "data": {"train": {"generate": "copy", "size": 400, "symbols": 5, "max_length": 5}, "held_out": 20},
    "text": {"tokenizer": {"kind": "words"}},
    "model": {"width": 16, "dropout": 0.2, "encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}},
}
SHORT = {"steps": 8, "validate_every": 4, "checkpoint_every": 4, "batch_tokens": 128, "log_every": 2, "device": "cpu"}


class Recorder(View):
    """Keeps what it is shown."""

    early_samples = 3

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []
        self.moments: list[Moment] = []
        self.samples: list[Sample] = []

    def moment(self, moment: Moment) -> None:
        self.moments.append(moment)

    def sampled(self, step: int, sample: Sample) -> None:
        self.events.append(("sample", step))
        self.samples.append(sample)

    def validated(self, line: Mapping[str, Any], samples: Sequence[Sample]) -> None:
        self.events.append(("validation", line["step"]))


def moment(**facts: Any) -> Moment:
    return Moment(**{"step": 3, "total": 9, "rate": 0.001, "tokens_per_second": 9.0, "skipped": 0, **facts})


# Which loss is smoothed


def test_the_smoothed_loss_is_named_next_to_the_plain_one() -> None:
    assert moment(loss=3.2, plain_loss=2.9, smoothing=0.1).losses == "smoothed loss 3.200, loss 2.900"
    assert moment(loss=2.9, plain_loss=2.9, smoothing=0.1).losses == "loss 2.900"  # a squared error is never smoothed
    assert moment(loss=2.9).losses == "loss 2.900"
    assert moment(loss=3.2, plain_loss=2.9).losses == "objective 3.200, loss 2.900"  # such as with a CTC loss
    assert "nan" in moment(loss=float("nan"), plain_loss=float("nan")).losses


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_training_reports_both_losses(smoothing: float, tmp_path: Path) -> None:
    view = Recorder()
    config = from_mapping({**COPY, "training": {**SHORT, "label_smoothing": smoothing}})
    train(config, tmp_path / "run", view=view)
    last = view.moments[-1]
    assert last.plain_loss is not None and last.smoothing == smoothing
    assert ("smoothed loss" in last.losses) == bool(smoothing)


def test_views_show_the_losses_and_the_early_sample(capsys) -> None:
    for view in (LiveView(Console(width=80, force_terminal=True)), LinesView(Console(width=80))):
        view.start(0, 9)
        view.sampled(3, Sample(source="a [b]", reference="x", output="y\n[/z]"))
        if isinstance(view, LinesView):
            view._last = -100.0  # as if the last line were long ago
        view.moment(moment(loss=3.2, plain_loss=2.9, smoothing=0.1))
        if isinstance(view, LiveView):
            view.console.print(view._picture())
        view.close()
        printed = " ".join(capsys.readouterr().out.split())
        assert "smoothed loss 3.200, loss 2.900" in printed
        assert "at step 3" in printed and "a [b]" in printed and "y [/z]" in printed


# The first output


def test_the_first_output_is_due_seconds_after_the_start_and_later_ones_are_rare(monkeypatch) -> None:
    now = 100.0
    monkeypatch.setattr(early_samples.time, "monotonic", lambda: now)
    samples = EarlySamples(3)
    samples.start()
    due = []
    for _ in range(4000):  # 400 seconds
        now += 0.1
        if samples.is_due():
            due.append(round(now - 100, 1))
            with samples.timed():
                now += 0.2
    assert due[0] <= 2.1
    assert len(due) == 3 and due[1] >= 20  # an output of 0.2 s is shown again when 20 s have passed
    assert not EarlySamples(0).is_due()
    samples = EarlySamples(3)
    samples.start()
    samples.stop()
    now += 1000
    assert not samples.is_due()


def test_outputs_are_shown_until_the_first_validation(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(early_samples, "FIRST_AFTER", 0.0)
    view = Recorder()
    train(from_mapping({**COPY, "training": SHORT}), tmp_path / "run", view=view)
    assert view.events[0] == ("sample", 1)
    kinds = [kind for kind, _ in view.events]
    assert kinds.count("validation") == 2 and "sample" not in kinds[kinds.index("validation") :]


@pytest.mark.parametrize("kind", ["translation", *TASKS])
def test_an_output_changes_nothing_in_training(kind: str, tmp_path: Path, monkeypatch) -> None:
    """With and without early outputs, the weights are the same bit for bit, for every task."""
    monkeypatch.setattr(early_samples, "FIRST_AFTER", 0.0)
    monkeypatch.setattr(early_samples, "LARGEST_SHARE", 1e9)
    weights = []
    for view in (Recorder(), View()):
        directory = tmp_path / type(view).__name__
        given = dict(COPY) if kind == "translation" else task_settings(kind, tmp_path)
        given["model"] = {**given.get("model", {}), "dropout": 0.2}
        given["training"] = {**given.get("training", {}), **SHORT, "ema": 0.5}
        train(from_mapping(given), directory, view=view)
        weights.append(load_file(Run.open(directory).directory / "model.safetensors"))
        if isinstance(view, Recorder):
            assert view.samples and view.samples[0].source
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_silent_views_cost_nothing() -> None:
    assert (View.early_samples, QuietView.early_samples, LinesView.early_samples) == (0, 0, 1)


# Final figures


def test_a_difference_is_explained_only_where_there_is_one() -> None:
    last, final = {"loss": 2.0, "bleu": 10.0}, {"loss": 2.0, "bleu": 12.0}
    assert explain_difference(last, last, ["beam"]) == ""
    assert explain_difference(None, final, ["beam"]) == ""
    text = explain_difference(last, final, ["the weights are the best checkpoint, step 5", "beam"])
    assert "loss 2.000, BLEU 10.0" in text and "step 5, beam" in text


def test_the_report_says_why_its_figures_differ(tmp_path: Path, capfd) -> None:
    """With a learning rate that ruins the model after the first validation, the best weights are not the last."""
    given = [f"training.{key}={value}" for key, value in SHORT.items()]
    given += ["training.optimizer.learning_rate=0.9", "training.schedule.kind=constant", "training.schedule.warmup=7"]
    run = str(tmp_path / "run")
    assert (
        main(["train", "copy", "--run", run, *given, "data.train.size=300", "model.width=16", "decoding.beam=3"]) == 0
    )
    printed = capfd.readouterr().out
    best, last = Run.open(Path(run)).info["best"]["step"], SHORT["steps"]
    assert best != last
    assert "Differs from the last validation (loss " in printed
    assert f"the weights are the best checkpoint, step {best}" in printed
    assert "outputs are decoded with beam 3, during training greedily" in printed
    assert main(["train", "--resume", run]) == 0
    assert "Differs from the last validation" in capfd.readouterr().out  # a finished run says it again


def test_the_same_figures_need_no_explanation(tmp_path: Path, capfd) -> None:
    given = [f"training.{key}={value}" for key, value in SHORT.items()]
    run = str(tmp_path / "run")
    assert (
        main(["train", "copy", "--run", run, *given, "data.train.size=300", "model.width=16", "decoding.beam=1"]) == 0
    )
    assert Run.open(Path(run)).info["best"]["step"] == SHORT["steps"]
    assert "Differs" not in capfd.readouterr().out
