"""Hooks inside blocks: pre-softmax scores, states between blocks, hidden units of feed-forward blocks."""

import json

import pytest
import torch

from regard import inspection
from regard.cli import main
from regard.foundation.errors import UsageError
from regard.nn.taps import names
from regard.tasks.loaded import load_run
from tests.stored_runs import FIXTURES

RUN = FIXTURES / "format-1" / "translation-transformer"


@pytest.fixture(scope="module")
def run():
    return load_run(RUN)


@pytest.fixture(scope="module")
def trace(run):
    return run.trace("a b c d")


def test_weights_are_the_softmax_of_the_scores(trace):
    found = 0
    for name in trace.matching("*.scores"):
        scores, weights = trace.activations[name], trace.activations[f"{name.removesuffix('scores')}weights"]
        allowed = weights > 0
        masked = scores.masked_fill(~allowed, float("-inf"))
        assert torch.allclose(masked.softmax(-1), weights, atol=1e-6)
        found += 1
    assert found == 3  # encoder, decoder, source


def test_states_between_blocks_are_the_residual_stream(run, trace):
    layer, active = run.model.decoder.layers[0], trace.activations
    name = "decoder.layers.0"
    before, after = (active[f"{name}.after_{block}"] for block in ("attention", "source_attention"))
    added = active[f"{name}.source_attention.output"]
    assert torch.allclose(after, before + added if layer.pre else layer.source_norm(before + added), atol=1e-5)
    hidden = active[f"{name}.feed_forward.hidden"]
    last = after + layer.feed_forward.outer(hidden)
    assert torch.allclose(active[f"{name}.states"], last if layer.pre else layer.feed_forward_norm(last), atol=1e-5)


@pytest.mark.parametrize("tap", ["attention.scores", "feed_forward.hidden", "after_attention"])
def test_writing_to_a_hook_changes_the_output_and_undoing_it_restores_it(trace, tap):
    name = f"encoder.layers.0.{tap}"
    changed = trace.again({name: torch.zeros_like})
    assert not torch.allclose(changed.log_probabilities, trace.log_probabilities)
    assert torch.equal(trace.again({name: lambda value: value}).log_probabilities, trace.again({}).log_probabilities)


def test_equal_scores_spread_attention_evenly(trace):
    name = "decoder.layers.0.source_attention"
    even = trace.again({f"{name}.scores": torch.zeros_like}).activations[f"{name}.weights"]
    assert torch.allclose(even, torch.full_like(even, 1 / even.shape[-1]))


def test_the_lens_reads_between_blocks(trace):
    inside, layers = inspection.lens(trace, inside=True), inspection.lens(trace)
    assert inside.names == ["layer 0, attention", "layer 0, source attention", "layer 0"]
    assert torch.equal(inside.ranks[-1], layers.ranks[-1])
    own = trace.log_probabilities.exp().gather(1, torch.tensor(trace.target.ids)[:, None])[:, 0]
    assert torch.allclose(inside.probabilities[-1], own, atol=1e-6)
    assert inside.to_json()["names"] == inside.names


def test_patching_reaches_between_blocks_and_into_feed_forward_blocks(run):
    clean, corrupted = run.trace("a b c d", "d c b a"), run.trace("a b e d", "d e b a")
    found = inspection.patch(clean, corrupted, inside=True)
    plain = inspection.patch(clean, corrupted)
    new = {(one.part, one.kind) for one in found.maps} - {(one.part, one.kind) for one in plain.maps}
    assert new == {("feed_forward", "encoder"), ("feed_forward", "decoder")}
    states = next(one for one in found.maps if (one.part, one.kind) == ("states", "encoder"))
    assert "layer 0, attention" in states.rows
    same = next(one for one in plain.maps if (one.part, one.kind) == ("states", "encoder"))
    for name, row in zip(same.rows, same.values, strict=True):
        assert torch.allclose(states.values[states.rows.index(name)], row, atol=1e-5)


def test_a_model_without_blocks_says_so(run):
    rnn = load_run(FIXTURES / "format-1" / "translation-rnn")
    with pytest.raises(UsageError, match="Only Transformer layers"):
        inspection.lens(rnn.trace("a b"), inside=True)


def test_on_the_command_line(capsys, tmp_path):
    assert main(["inspect", "lens", str(RUN), "a b c d", "--inside", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["names"]) == 3
    (tmp_path / "pairs.tsv").write_text("a b\ta c\n")
    assert main(["inspect", "patch", str(RUN), "--pairs", str(tmp_path / "pairs.tsv"), "--inside"]) == 2
    assert "one of them" in capsys.readouterr().err


def test_hooks_have_names_that_do_not_clash(run):
    assert len(names(run.model)) == len(set(names(run.model)))
