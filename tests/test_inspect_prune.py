"""Heads that are removed are gone, and nothing else is; gates learn which they should be."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard import inspection
from regard.cli import main
from regard.config.loading import dump, from_mapping, load
from regard.foundation.errors import UsageError
from regard.inspection.analyses.prune.gates import HIGH, LOW, TEMPERATURE, Gates, close_heads
from regard.inspection.analyses.prune.removal import without_heads
from regard.inspection.interventions import attentions, scale_heads
from regard.models import Model, build
from regard.nn import taps
from regard.runs.run import Run
from regard.tasks.loaded import load_run
from regard.training.view import View
from tests.cells import ATTENTIONS, CELLS, POSITIONS, covering, model_of, sentences


def removed(model: Model, kept: dict[str, list[int]]) -> Model:
    """What is left of a model that reads and writes."""
    sizes = len(model.source_embedding.weight), len(model.decoder.embedding.weight)
    return without_heads(model, kept, lambda cell: build(cell, *sizes))


PROJECTED = covering(
    name for name, cell in CELLS.items() if cell.attentions and cell.attention.project and cell.attention.heads > 1
)


@pytest.mark.parametrize("name", PROJECTED)
def test_removed_heads_are_zeroed_heads_in_any_cell(name):
    model = model_of(name)
    source, inputs = sentences(4, 6, seed=1)
    for kept in ([0], [1], []):
        chosen = dict.fromkeys(attentions(model), kept)
        smaller = removed(model, chosen)
        heads = {one: found.heads for one, found in attentions(model).items()}
        off = {(one, head): 0.0 for one in chosen for head in range(heads[one]) if head not in kept}
        with torch.no_grad():
            with taps.watch(model, write=scale_heads(off)):
                zeroed = model(source, inputs)
            torch.testing.assert_close(smaller(source, inputs), zeroed, rtol=1e-4, atol=1e-5)
        assert sum(p.numel() for p in smaller.parameters()) < sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", PROJECTED)
def test_a_pruned_model_decodes_step_by_step_what_it_reads_at_once(name):
    kept = {one: [1] if place % 2 else [] for place, one in enumerate(CELLS[name].attentions)}
    model = removed(model_of(name), kept)
    source, inputs = sentences(3, 5, seed=2)
    with torch.no_grad():
        whole = model(source, inputs)
        state = model.start(model.encode(source))
        for t in range(inputs.shape[1]):
            logits, state = model.step(inputs[:, t], state)
            torch.testing.assert_close(logits, whole[:, t], rtol=1e-4, atol=1e-4)


def test_every_score_and_position_kind_is_among_the_cells_that_can_be_pruned():
    assert {CELLS[name].attention.score for name in PROJECTED} == {"additive", "dot", "scaled-dot", "bilinear"}
    assert {CELLS[name].positions.kind for name in PROJECTED} >= {each["kind"] for each in POSITIONS.values()}
    assert any(CELLS[name].attention.keys_values == "shared" for name in PROJECTED) and ATTENTIONS


def test_pruning_twice_counts_heads_from_those_that_are_left():
    model = model_of("transformer>transformer/relative")
    name = "encoder.layers.0.attention"
    twice = removed(removed(model, {name: [1, 3]}), {name: [1]})
    assert twice.cell.pruned == {name: [3]}
    once = removed(model, {name: [3]})
    source, inputs = sentences(2, 4, seed=0)
    with torch.no_grad():
        assert torch.equal(twice(source, inputs), once(source, inputs))


def test_a_cell_says_which_heads_are_left_and_refuses_those_it_has_not():
    settings = {"data": {"train": {"generate": "copy"}}, "model": {"width": 16, "attention": {"heads": 2}}}

    def pruned(heads):
        return from_mapping(settings | {"model": settings["model"] | {"pruned": heads}})

    config = pruned({"encoder.layers.1.attention": [1], "decoder.layers.0.source_attention": []})
    assert "encoder.layers.1.attention" in dump(config)
    with pytest.raises(UsageError, match=r"encoder\.layers\.9\.attention"):
        pruned({"encoder.layers.9.attention": [0]})
    for wrong in ([2], [1, 0], [0, 0]):
        with pytest.raises(UsageError, match="ascending order"):
            pruned({"encoder.layers.0.attention": wrong})
    with pytest.raises(UsageError, match="pruned"):
        pruned({"encoder.layers.0.attention": [-1]})


def test_heads_without_projections_cannot_be_removed():
    model = model_of("gru-both>gru/before/additive-1")
    with pytest.raises(UsageError, match="no projections"):
        removed(model, {"decoder.source_attention": []})


@given(st.floats(-6, 6))
def test_the_share_of_open_gates_is_the_promised_one(log_alpha):
    gates = Gates({"a": 4000})
    torch.nn.init.constant_(gates.log_alpha[0], log_alpha)
    drawn = gates.draw(torch.Generator().manual_seed(3))[0]
    assert drawn.min() >= 0 and drawn.max() <= 1
    promised = gates.expected_open().item() / 4000
    assert (drawn > 0).float().mean().item() == pytest.approx(promised, abs=0.04)


def test_the_gates_are_the_papers():
    assert (TEMPERATURE, LOW, HIGH) == (0.33, -0.1, 1.1)


def test_a_gate_is_open_where_one_is_likelier_than_zero():
    gates = Gates({"a": 2})
    gates.log_alpha[0].data = torch.tensor([-0.3, 0.3])
    drawn = torch.stack([gates.draw(torch.Generator().manual_seed(n))[0] for n in range(2000)])
    ones, zeros = (drawn == 1).sum(0), (drawn == 0).sum(0)
    assert (ones > zeros).tolist() == [False, True]
    assert gates.open() == {"a": [1]} and gates.most_open(1) == {"a": [1]}


@pytest.fixture(scope="module")
def pruned(transformer_run, tmp_path_factory):
    directory = tmp_path_factory.mktemp("pruned") / "small"
    found = inspection.prune(transformer_run, keep=2, steps=200, directory=directory, view=View())
    return found, directory


def test_pruning_keeps_as_many_heads_as_asked_for_and_the_rest_is_gone(pruned, transformer_run):
    found, directory = pruned
    assert sum(map(len, found.kept.values())) == 2
    whole, small = load_run(transformer_run), load_run(directory)
    assert sum(one.heads for name, one in attentions(small.model).items() if name.startswith("encoder")) == 2
    assert Run.open(directory).info["parameters"] < Run.open(transformer_run).info["parameters"]
    assert small.model.cell.pruned
    texts = ["a b c", "d d a e f", "b"]
    assert small.translate(texts) == whole.translate(texts) == texts


def test_a_pruned_run_is_a_run_like_any_other(pruned, transformer_run, capsys):
    directory = pruned[1]
    run = Run.open(directory)
    assert run.status == "finished" and load(directory / "config.yaml") == run.config
    card = run.card.read_text()
    assert f"from {transformer_run}".replace("_", "\\_") in card and "2 of 4 heads kept" in card
    assert main(["evaluate", str(directory), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"]["bleu"] > 90
    assert main(["inspect", "attention", str(directory), "a b c"]) == 0
    assert {"pruning.json", "pruning.html"} <= {path.name for path in directory.iterdir()}


def test_only_the_encoder_has_moved(pruned, transformer_run):
    whole, small = load_run(transformer_run).model, load_run(pruned[1]).model
    old, new = dict(whole.named_parameters()), dict(small.named_parameters())
    frozen = [name for name in new if name.startswith("decoder")]
    assert frozen and all(torch.equal(old[name], new[name]) for name in frozen)
    name = "encoder.layers.0.feed_forward.inner.weight"
    assert name not in old or not torch.equal(old[name], new[name])


def test_a_pruned_run_can_be_trained_on(pruned, tmp_path):
    import shutil

    from regard.training.loop import train

    directory = tmp_path / "copy"
    shutil.copytree(pruned[1], directory)
    steps = Run.open(directory).config.training.steps + 3
    outcome = train(load(directory / "config.yaml", [f"training.steps={steps}"]), directory, resume=True, view=View())
    assert outcome.step == steps and load_run(directory).model.cell.pruned


def test_the_result_becomes_everything(pruned, tmp_path):
    found = pruned[0]
    for ending in ("html", "json", "txt", "png", "svg"):
        found.save(tmp_path / f"pruning.{ending}")
    said = json.loads((tmp_path / "pruning.json").read_text())
    for row in said["rows"]:
        assert row["loss_95"][0] <= row["loss"] <= row["loss_95"][1]
        assert row["rise_95"][0] <= row["rise"] <= row["rise_95"][1]
        assert row["rise"] == pytest.approx(row["loss"] - said["rows"][0]["loss"], abs=2e-3)
    assert said["rows"][0]["rise"] == pytest.approx(0, abs=1e-4)
    rise, interval = said["settled"]
    assert interval[0] <= rise <= interval[1] and "Settled, the validation loss is" in str(found)
    assert said["rows"][0]["heads"] == 4 and said["rows"][-1]["heads"] == 2
    assert "heads kept" in str(found) and "before" in str(found)


def test_a_price_that_no_head_is_worth_closes_all_and_what_is_left_still_runs(transformer_run, tmp_path):
    directory = tmp_path / "none"
    found = inspection.prune(transformer_run, price=100.0, which="all", steps=120, directory=directory, view=View())
    assert sum(map(len, found.kept.values())) == 0 and len(found.gates) == 12
    small = load_run(directory)
    assert all(one.heads == 0 for one in attentions(small.model).values())
    assert isinstance(small.translate("a b c"), str)
    assert found.validation_after["bleu"] < found.validation_before["bleu"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--keep N"),
        (["--keep", "4"], "keep from 0 to 3"),
        (["--keep", "-1"], "keep from 0 to 3"),
        (["--lambda", "0"], "above 0"),
        (["--keep", "1", "--which", "nobody"], "use one of encoder"),
        (["--keep", "1", "--steps", "3"], "at least 20 steps"),
        (["--keep", "1", "-o", "x.doc"], "no ending"),
    ],
)
def test_wrong_usage_is_told_and_nothing_is_written(arguments, said, transformer_run, capsys):
    assert main(["inspect", "prune", str(transformer_run), *arguments]) == 2
    assert said in capsys.readouterr().err
    assert not transformer_run.with_name("transformer-pruned").exists()


def test_a_model_without_such_heads_says_so(copy_run, capsys):
    assert main(["inspect", "prune", str(copy_run), "--keep", "0", "--which", "encoder"]) == 2
    assert "has no heads of the kind `encoder`, and none that can be taken apart" in capsys.readouterr().err
    for more in ([], ["--which", "source"], ["--which", "all"]):
        assert main(["inspect", "prune", str(copy_run), "--keep", "0", *more]) == 2
        assert "no projections" in capsys.readouterr().err


def test_an_interruption_leaves_nothing_behind(transformer_run, tmp_path):
    import os
    import signal

    from regard.training.interruption import Interrupted

    class Stops(View):
        def moment(self, moment):
            if moment.step == 2:
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted, match="as it was"):
        inspection.prune(transformer_run, keep=1, steps=60, directory=tmp_path / "small", view=Stops())
    assert not (tmp_path / "small").exists()


def test_fixed_gates_and_removed_heads_say_the_same(transformer_run):
    model = load_run(transformer_run).model
    kept = {"encoder.layers.0.attention": [1], "encoder.layers.1.attention": []}
    source = torch.randint(6, 10, (3, 5))
    inputs = torch.randint(6, 10, (3, 4))
    with torch.no_grad(), taps.watch(model, write=close_heads(kept, model)):
        gated = model(source, inputs)
    with torch.no_grad():
        torch.testing.assert_close(removed(model, kept)(source, inputs), gated, rtol=1e-4, atol=1e-4)


def test_what_is_frozen_stays_and_a_name_that_nothing_has_is_refused(tmp_path):
    from regard.training.loop import train

    settings = {
        "data": {"train": {"generate": "copy", "size": 200, "symbols": 6, "max_length": 5}, "held_out": 10},
        "text": {"tokenizer": {"kind": "words"}},
        "model": {"width": 8, "encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}},
        "training": {"steps": 3, "batch_tokens": 64},
    }

    def trained(name, frozen):
        config = from_mapping(settings | {"training": settings["training"] | {"frozen": frozen}})
        train(config, tmp_path / name, view=View())
        return dict(load_run(tmp_path / name).model.named_parameters())

    free, frozen = trained("free", None), trained("frozen", ["decoder.*", "output_bias"])
    assert not torch.equal(free["output_bias"], frozen["output_bias"]) and frozen["output_bias"].abs().max() == 0
    with pytest.raises(UsageError, match="has nothing, which matches no parameter"):
        trained("wrong", ["nothing"])
    with pytest.raises(UsageError, match="nothing can be trained"):
        trained("all", ["*"])


def test_a_frozen_output_layer_has_no_gradient_and_changes_no_other():
    from regard.objectives.objective import cross_entropy

    torch.manual_seed(0)
    weight, bias, targets = torch.randn(9, 5), torch.randn(9), torch.randint(0, 9, (3, 4))
    slopes = []
    for frozen in (False, True):
        states = torch.ones(3, 4, 5, requires_grad=True)
        own = weight.clone().requires_grad_(not frozen)
        cross_entropy(states, own, bias, targets, smoothing=0.1).smoothed.backward()
        slopes.append(states.grad)
        assert (own.grad is None) == frozen
    assert torch.equal(*slopes)
