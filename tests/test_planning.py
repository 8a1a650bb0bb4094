"""What a plan says agrees with the model itself, with torch's own count, and with the literature."""

import json
from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from regard import planning
from regard.cli import main
from regard.config.loading import from_mapping, load
from regard.foundation.errors import UsageError
from regard.models import build
from regard.nn import taps
from regard.planning import estimate, measurement
from regard.planning.estimate import divide_time
from regard.planning.hardware import Hardware
from regard.planning.scaling import REACHED, Cluster, Sizes, memory_of_rank, parallel, update_on
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
    monkeypatch.setattr(measurement, "MOST_UPDATES", 1)  # so that both measure the memory of the same batch
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


SIZES = Sizes(parameters=400 << 20, outside=100 << 20, largest_layer=50 << 20, layers=6)
FAST = Hardware(100, 40, "", link=100, memory=1000, network=10, link_latency=0, network_latency=0)


@pytest.mark.parametrize("devices", [2, 8, 64])
def test_every_rank_sends_what_a_ring_needs(devices):
    """A ring of n sends (n - 1) / n of the bytes for each of reduce-scatter and all-gather."""
    cluster = Cluster(FAST, devices, max(1, devices // 8))
    share, whole, layers = (devices - 1) / devices, SIZES.parameters, SIZES.parameters - SIZES.outside
    assert update_on(cluster, SIZES, "ddp", 1.0).sent == pytest.approx(2 * share * whole)
    assert update_on(cluster, SIZES, "fsdp", 1.0).sent == pytest.approx(share * (2 * whole + layers))
    three = update_on(cluster, SIZES, "fsdp", 1.0, batches=3).sent  # gathered in each batch, reduced in the last
    assert three == pytest.approx(share * (3 * (whole + layers) + whole))
    assert update_on(cluster, SIZES, "ddp", 1.0, batches=3).sent == update_on(cluster, SIZES, "ddp", 1.0).sent


def test_communication_takes_bytes_divided_by_the_rate_of_the_slower_link():
    inside = 2 * 7 / 8 * SIZES.parameters / (100e9 * REACHED)
    assert update_on(Cluster(FAST, 8, 1), SIZES, "ddp", 0.0).communicating == pytest.approx(inside)
    between = 2 * 3 / 4 * SIZES.parameters / (10e9 * REACHED)
    assert update_on(Cluster(FAST, 32, 4), SIZES, "ddp", 0.0).communicating == pytest.approx(inside + between)
    slow = replace(FAST, link_latency=1e6)  # a second a step: 7 steps twice for each of 16 buckets of 25 MB
    late = update_on(Cluster(slow, 8, 1), SIZES, "ddp", 0.0).communicating
    assert late == pytest.approx(2 * 7 * 16 + inside)


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_long_computation_hides_communication_and_short_computation_does_not(kind):
    cluster = Cluster(FAST, 8, 1)
    long, none = (update_on(cluster, SIZES, kind, seconds) for seconds in (1000.0, 0.0))
    assert long.seconds == pytest.approx(1000, abs=none.communicating / 2)
    assert 0 < long.waiting < none.waiting == pytest.approx(none.communicating)
    shared = update_on(Cluster(FAST, 8, 1, cores=2), SIZES, kind, 1000.0)
    assert shared.waiting == shared.communicating > 0  # processes that share cores cannot overlap


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_one_device_neither_sends_nor_waits_nor_keeps_buffers(kind):
    update = update_on(Cluster(FAST, 1, 1), SIZES, kind, 3.0)
    assert (update.sent, update.waiting, update.seconds) == (0, 0, 3.0)
    memory = {"weights": 4.0, "gradients": 4.0, "optimiser": 8.0, "activations": 16.0}
    assert memory_of_rank(memory, SIZES, kind, 1) == memory


def test_fsdp_divides_what_ddp_repeats():
    memory = {"weights": 4e9, "gradients": 4e9, "optimiser": 8e9, "activations": 16e9, "logits": 1e9}
    ddp, fsdp = (memory_of_rank(memory, SIZES, kind, 8) for kind in ("ddp", "fsdp"))
    assert {name: ddp[name] for name in memory} == {**memory, "activations": 2e9}
    assert {name: fsdp[name] for name in memory} == {
        "weights": 0.5e9,
        "gradients": 0.5e9,
        "optimiser": 1e9,
        "activations": 2e9,
        "logits": 1e9,
    }
    assert ddp["communication"] == SIZES.parameters
    assert fsdp["communication"] == SIZES.outside + 2 * SIZES.largest_layer + SIZES.outside


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
@pytest.mark.parametrize("alone", [0.1, 10.0])
def test_more_devices_stop_paying_where_efficiency_falls_below_a_half(kind, alone):
    """The definition, tried out: with that many devices efficiency is at least a half, with twice as many it is not."""

    def made(devices):
        cluster = Cluster(FAST, devices, -(-devices // 8))
        return parallel(cluster, SIZES, kind, memory={}, alone=alone, updates=10)

    most = made(8).worthwhile
    assert most > 1 and made(most).efficiency >= 0.5 > made(2 * most).efficiency
    assert made(8).efficiency_per_device >= made(8).efficiency
    assert made(8).seconds == pytest.approx(10 * made(8).update.seconds)
    few = parallel(Cluster(FAST, 8, 1), SIZES, kind, memory={}, alone=1e9, updates=1, sentences=20.5)
    assert few.worthwhile == 16  # no more devices than sentences


def test_what_every_rank_repeats_is_divided_by_fsdp_only():
    cluster = Cluster(FAST, 4, 1)
    ddp, fsdp = (
        parallel(cluster, SIZES, kind, memory={}, alone=4.0, repeated=1.0, updates=1).update for kind in ("ddp", "fsdp")
    )
    assert (ddp.computing, fsdp.computing) == (2.0, 1.25)
    shared = Cluster(FAST, 4, 1, cores=2)  # four ranks take turns on two cores
    assert parallel(shared, SIZES, "ddp", memory={}, alone=4.0, repeated=1.0, updates=1).update.computing == 4.0
    assert divide_time(whole=5.0, part=2.0, count=4) == (4.0, 1.0)
    assert divide_time(whole=5.0, part=1.0, count=4) == (5.0, 0.0)


def test_the_units_of_a_model_are_its_layers_and_the_rest():
    model = build(config({"width": 32, "encoder": {"layers": 2}, "decoder": {"layers": 3}}).model, 40, 40)
    sizes = Sizes.of(model)
    decoder = {name: each.numel() for name, each in model.named_parameters() if name.startswith("decoder.layers.0.")}
    assert sizes.layers == 5 and sizes.largest_layer == 4 * sum(decoder.values())
    assert sizes.parameters == 4 * sum(each.numel() for each in model.parameters())
    rnn = Sizes.of(build(config({"encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}}).model, 40, 40))
    assert rnn.layers == 0 and rnn.outside == rnn.parameters


def test_more_devices_are_planned_from_the_command_line(tmp_path, capsys):
    path = tmp_path / "my.yaml"
    path.write_text("data: {train: {generate: copy}}\ntext: {tokenizer: {kind: words}}\n")
    command = ["plan", str(path), "--no-measure", "--devices", "64xA100", "--nodes", "8"]
    assert main([*command, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["elsewhere"]
    assert found["nodes"] == 8 and [way["kind"] for way in found["ways"]] == ["ddp", "fsdp"]
    assert main([*command, "--network", "10", "--json"]) == 0
    (slower,) = json.loads(capsys.readouterr().out)["elsewhere"]
    assert slower["hardware"]["network"] == 1.25
    assert slower["ways"][0]["update"]["seconds"] > found["ways"][0]["update"]["seconds"]
    assert main(command) == 0
    assert "waiting for communication" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--devices", "6xA100", "--nodes", "4", "--no-measure"], "cannot be divided evenly among 4 nodes"),
        (["--devices", "2xhere", "--no-measure"], "Leave out --no-measure"),
        (["--devices", "65xhere"], "more than 64 processes"),
        (["--devices", "8xA100", "--network", "0", "--no-measure"], "--network must be above 0"),
        (["--devices", "8xA100", "--network", "nan", "--no-measure"], "--network must be above 0"),
    ],
)
def test_impossible_clusters_are_refused(options, message, tmp_path, capsys):
    path = tmp_path / "my.yaml"
    path.write_text("data: {train: {generate: copy}}\ntext: {tokenizer: {kind: words}}\n")
    assert main(["plan", str(path), *options]) == 2
    assert message in capsys.readouterr().err


def test_processes_on_this_machine_are_measured(monkeypatch):
    monkeypatch.setattr(measurement, "SECONDS", 0.2)
    monkeypatch.setattr(estimate, "available_cores", lambda: 2)
    settings = config({"width": 32, "encoder": {"layers": 1}, "decoder": {"layers": 1}}, batch_tokens=256)
    threads = torch.get_num_threads()
    made = planning.plan(settings, ["2xhere"])
    assert torch.get_num_threads() == threads
    (found,) = made.elsewhere
    assert found.hardware.link > 0 and found.hardware.link_latency > 0
    ddp = found.ways[0].update
    assert ddp.communicating > 0 and ddp.waiting == ddp.communicating
    assert ddp.computing >= 0.99 * found.seconds / settings.training.steps
