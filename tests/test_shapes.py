"""Laws of every shape: what holds for one end left off or replaced as it holds for the whole."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.cli import main
from regard.config.loading import dump, from_mapping
from regard.data.batches import Batches
from regard.data.labels import Labels
from regard.data.prepare import prepare
from regard.data.reading import Numbered, numbers_in
from regard.data.corpus import Pair
from regard.errors import RegardError, UsageError
from regard.evaluation.labels import confusion, correlation, ranks, score_labels, score_numbers
from regard.models.acceptor import apart
from regard.predictor import Predictor
from regard.run import Run
from regard.shapes.acceptor import fitted_temperature
from regard.shapes.choice import shape_of
from regard.text.joined import Joined
from regard.text.specials import BOS, EOS, PAD, SEP
from regard.training.journal import Journal
from regard.training.loop import train
from regard.training.validation import JUDGING_SEED
from regard.training.view import View
from regard.weights import read_weights

ENCODERS = ("bag", "rnn", "conv", "transformer")
COURSE = {"steps": 12, "validate_every": 6, "checkpoint_every": 6, "batch_tokens": 300, "device": "cpu", "log_every": 3}


def corpus(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def words(seed: int, most: int = 8) -> list[str]:
    random = np.random.default_rng(seed)
    return [f"w{n}" for n in random.integers(0, 12, int(random.integers(1, most + 1)))]


def labelled_lines(count: int) -> list[str]:
    """Texts whose label says whether `w0` occurs in them before `w1` would: it is there, or it is not."""
    rows = [words(seed) for seed in range(count)]
    return [f"{'yes' if 'w0' in row else 'no'} {' '.join(row)}" for row in rows]


def pair_lines(count: int) -> list[str]:
    """Two texts, whether they begin alike, and how many words they share."""
    lines = []
    for seed in range(count):
        one, other = words(2 * seed), words(2 * seed + 1)
        alike = "same" if seed % 3 == 0 else "other"
        other = [one[0], *other] if alike == "same" else ["w99", *other]
        shared = len(set(one) & set(other)) / 2
        lines.append("\t".join([" ".join(one), " ".join(other), alike, f"{shared}"]))
    return lines


def tagged_lines(count: int) -> list[str]:
    """Words whose tag says what stands before them: a tagger must look around."""
    lines = []
    for seed in range(count):
        row = words(seed)
        lines += [f"{word} {'first' if not place else row[place - 1]}" for place, word in enumerate(row)]
        lines.append("")
    return lines


def settings(kind: str, directory: Path, **more: Any) -> dict[str, Any]:
    """A tiny run of a shape, over a corpus that is made for it."""
    shapes: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "classes": ({"kind": "acceptor"}, {"labelled": corpus(directory / "labelled.txt", labelled_lines(120))}),
        "number": (
            {"kind": "acceptor", "output": "number"},
            {"tsv": corpus(directory / "pairs.tsv", pair_lines(120)), "second_column": 2, "target_column": 4},
        ),
        "pairs": (
            {"kind": "acceptor"},
            {"tsv": corpus(directory / "pairs.tsv", pair_lines(120)), "second_column": 2, "target_column": 3},
        ),
        "tags": (
            {"kind": "transducer"},
            {"columns": corpus(directory / "tagged.txt", tagged_lines(120))},
        ),
        "language": (
            {"kind": "language-model", "length": 12},
            {"text": corpus(directory / "text.txt", [" ".join(words(seed, 30)) for seed in range(120)])},
        ),
        "masked": (
            {"kind": "masked"},
            {"text": corpus(directory / "text.txt", [" ".join(words(seed, 30)) for seed in range(120)])},
        ),
    }
    shape, data = shapes[kind]
    found: dict[str, Any] = {
        "shape": shape,
        "data": {"train": data, "held_out": 20},
        "text": {"tokenizer": {"kind": "words", "min_frequency": 1}},
        "model": {"width": 16, **({"decoder": {"kind": "rnn"}} if kind == "language" else {"encoder": {"kind": "rnn"}})},
        "training": dict(COURSE),
    }
    for name, value in more.items():
        found[name] = {**found.get(name, {}), **value}
    return found


SHAPES = ("classes", "number", "pairs", "tags", "language", "masked")
READING = ("classes", "number", "pairs", "tags")


def shape_and_model(kind: str, directory: Path, **more: Any):
    config = from_mapping(settings(kind, directory, **more))
    prepared = prepare(config, directory / "run")
    shape = shape_of(config, prepared.form)
    torch.manual_seed(0)
    model = shape.build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return shape, model, prepared


class TestEveryShape:
    @pytest.mark.parametrize("kind", SHAPES)
    def test_it_trains_and_ends_with_a_card_that_says_how_to_use_it(self, kind, tmp_path):
        config = from_mapping(settings(kind, tmp_path))
        outcome = train(config, tmp_path / "run", view=View())
        run = Run.open(tmp_path / "run")
        assert run.status == "finished" and set(config.shape.scores) <= set(outcome.validation)
        card = run.card.read_text()
        assert config.cell in card and outcome.next_command.split()[1] in card
        assert Journal(run.metrics).lines("validation")

    @pytest.mark.parametrize("kind", SHAPES)
    def test_interrupted_and_continued_is_uninterrupted(self, kind, tmp_path):
        whole = from_mapping(settings(kind, tmp_path))
        train(whole, tmp_path / "whole", view=View())
        half = from_mapping(settings(kind, tmp_path, training={"steps": 6}), ["training.schedule.warmup=2"])
        whole_again = from_mapping(settings(kind, tmp_path), ["training.schedule.warmup=2"])
        train(half, tmp_path / "parts", view=View())
        train(whole_again, tmp_path / "parts", resume=True, view=View())
        one = read_weights(tmp_path / "whole" / "checkpoints" / "step-00000012" / "model.safetensors")
        other = read_weights(tmp_path / "parts" / "checkpoints" / "step-00000012" / "model.safetensors")
        assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)

    @pytest.mark.parametrize("kind", SHAPES)
    def test_its_configuration_survives_being_written_and_read(self, kind, tmp_path):
        config = from_mapping(settings(kind, tmp_path))
        path = tmp_path / "config.yaml"
        path.write_text(dump(config))
        from regard.config.loading import load

        assert load(path) == config

    @pytest.mark.parametrize("kind", READING)
    @pytest.mark.parametrize("encoder", ENCODERS)
    def test_padding_and_company_change_nothing(self, kind, encoder, tmp_path):
        shape, model, prepared = shape_and_model(kind, tmp_path, model={"encoder": {"kind": encoder}})
        random = torch.Generator().manual_seed(JUDGING_SEED)
        together = sum(
            shape.loss(model, shape.lesson(batch, random, learning=False)).nll.item()
            for batch in shape.batches(prepared.validation).once()
        )
        alone = 0.0
        for batch in Batches(prepared.validation, 1, 1, frames=prepared.form.frames).once():
            lesson = shape.lesson(batch, random, learning=False)
            alone += shape.loss(model, lesson).nll.item()
        assert together == pytest.approx(alone, rel=1e-4)
