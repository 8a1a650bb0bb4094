"""What a plan says agrees with the model itself, with torch's own count, and with the literature."""

import json

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from regard import planning
from regard.cli import main
from regard.config.loading import from_mapping, load
from regard.foundation.errors import UsageError
from regard.models import build
from regard.nn import taps
from regard.planning import measurement
from regard.recipes import recipe
from tests.cells import CELLS, KINDS

COPY = {"train": {"generate": "copy", "size": 200, "symbols": 10, "max_length": 8}, "held_out": 10}


def config(model=None, **training):
    text = {"tokenizer": {"kind": "words", "vocabulary": 40}}
    return from_mapping({"data": COPY, "text": text, "model": model or {}, "training": training})


@pytest.mark.parametrize("name", KINDS)
def test_parameters_are_counted_once_and_all_of_them(name):
    settings = config().model_copy(update={"model": CELLS[name]})
    made = planning.plan(settings, measure=False)
    assert sum(made.parameters.values()) == sum(each.numel() for each in build(settings.model, 40, 40).parameters())


@pytest.mark.parametrize("model", [{}, {"encoder": {"layers": 2}, "decoder": {"layers": 1, "activation": "swiglu"}}])
def test_flops_are_those_that_torch_counts(model):
    settings = config({"width": 64, "attention": {"heads": 4}, **model})
    lengths = planning.Lengths(20, 20, "")
    network = build(settings.model, 40, 40)
    planned = planning.flops_per_token(settings, network, (40, 40), lengths)
    source, inputs = torch.randint(6, 40, (3, 20)), torch.randint(6, 40, (3, 20))
    with FlopCounterMode(display=False) as counter, taps.watch(network, "*weights"):  # attention in the open
        network(source, inputs).sum().backward()
    assert planned * source.numel() == pytest.approx(counter.get_total_flops(), rel=0.05)


@pytest.mark.parametrize(("name", "published", "hours"), [("base", 3.3e18, 12), ("big", 2.3e19, 84)])
def test_the_published_cost_of_the_transformer_comes_out_within_a_fifth(name, published, hours):
    made = planning.plan(load(recipe(f"wmt14/{name}"), []), ["8xP100"], measure=False)
    there = made.elsewhere[0]
    assert there.spent == pytest.approx(published, rel=0.25)
    assert there.seconds / 3600 == pytest.approx(hours, rel=0.25)
    assert sum(made.parameters.values()) == pytest.approx({"base": 65e6, "big": 213e6}[name], rel=0.05)


def test_this_machine_is_measured_by_training_on_it(monkeypatch):
    monkeypatch.setattr(measurement, "SECONDS", 0.2)
    settings = {"width": 32, "encoder": {"layers": 1}, "decoder": {"layers": 1}}
    one, two = (planning.plan(config(settings, batch_tokens=256, accumulate=each)) for each in (1, 2))
    assert one.here is not None and two.here is not None
    assert one.here.seconds > 0
    assert one.memory["activations"] == pytest.approx(two.memory["activations"], rel=0.02)
    assert one.memory["activations"] > 0
    assert two.flops == 2 * one.flops


def test_random_text_has_the_lengths_of_the_corpus_in_batches_that_fit():
    from itertools import islice

    from regard.data.batches import Cursor
    from regard.data.random_text import RandomText

    lengths = [(5.0, 6.0), (9.4, 8.0), (30.0, 28.0)]
    text = RandomText((40, 50), lengths, tokens=200)
    seen = set()
    for batch, _ in islice(text.after(Cursor()), 60):
        assert max(batch.source.numel(), batch.outputs.numel()) <= 200
        assert batch.source.max() < 40 and batch.target.max() < 50
        seen |= set(zip((batch.source != 0).sum(1).tolist(), (batch.outputs != 0).sum(1).tolist(), strict=True))
    assert seen == {(5, 6), (9, 8), (30, 28)}


def test_activations_are_those_of_the_whole_batch_however_many_threads_share_it(monkeypatch):
    monkeypatch.setattr(measurement, "SECONDS", 0.1)
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(planning.plan(config({"width": 32}, batch_tokens=512)).memory["activations"])
    finally:
        torch.set_num_threads(threads)
    assert found[0] == pytest.approx(found[1], rel=0.02)


def test_the_bytes_of_a_plan_are_those_of_the_tensors():
    settings = config({"width": 32})
    made = planning.plan(settings, measure=False)
    parameters = sum(made.parameters.values())
    assert made.memory["weights"] == made.memory["gradients"] == 4 * parameters
    assert made.memory["optimiser"] == 8 * parameters
    plain = planning.plan(config({"width": 32}, optimizer={"kind": "sgd"}), measure=False)
    assert plain.memory["optimiser"] == 0


def test_a_vocabulary_left_open_is_estimated_from_the_corpus():
    settings = from_mapping({"data": COPY, "text": {"tokenizer": {"kind": "words"}}})
    assert planning.plan(settings, measure=False).vocabulary == (16, 16)  # ten symbols, six special tokens


def test_named_hardware_is_read_and_unknown_hardware_refused():
    assert planning.parse_devices("8xA100") == (8, "A100")
    assert planning.parse_devices("rtx-4090") == (1, "RTX4090")
    for wrong in ("8xB9000", "", "0xA100", "x", "9" * 5000 + "xA100"):
        with pytest.raises(UsageError, match="not known hardware"):
            planning.parse_devices(wrong)


def test_the_command_says_it_in_a_table_and_in_json(tmp_path, capsys):
    path = tmp_path / "my.yaml"
    path.write_text("data: {train: {generate: copy}}\ntext: {tokenizer: {kind: words}}\n")
    assert main(["plan", str(path), "--no-measure", "--devices", "8xA100"]) == 0
    table = capsys.readouterr().out
    assert "8xA100" in table and "35%" in table and "not measured" in table
    assert main(["plan", str(path), "--no-measure", "--json", "model.width=32"]) == 0
    assert json.loads(capsys.readouterr().out)["updates"] > 0
    assert main(["plan", str(path), "--utilisation", "2"]) == 2
