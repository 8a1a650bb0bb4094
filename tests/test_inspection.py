"""A trace tells what happened inside the real model, and a picture shows it."""

import pytest
import torch

import regard
from regard.errors import RegardError
from regard.inspection.attention import attention
from regard.inspection.trace import Trace, trace


@pytest.fixture(scope="module")
def model(copy_run):
    return regard.load(copy_run)


def test_every_position_of_a_trace_has_its_token(model):
    seen = trace(model, "a b c")
    assert seen.source == ["a", "b", "c", "</s>"]
    assert seen.target == [*model.translate("a b c").split(), "</s>"]
    weights = seen.activations["decoder.source_attention.weights"]
    assert weights.shape == (1, 1, len(seen.target), len(seen.source))


def test_a_copying_model_looks_at_what_it_copies(model):
    found = attention(trace(model, "d a c b", target="d a c b"))
    torch.testing.assert_close(found.weights.sum(-1), torch.ones(5))
    assert found.weights.argmax(-1)[:4].tolist() == [0, 1, 2, 3]
    assert found.to_json()["target"] == ["d", "a", "c", "b", "</s>"]


def test_watching_changes_nothing(model):
    before = model.translate(["a b c", "c b a"])
    trace(model, "a b c")
    assert model.translate(["a b c", "c b a"]) == before


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_map_can_be_drawn(model, tmp_path, ending):
    pytest.importorskip("matplotlib", reason="the plots extra is not installed")
    attention(trace(model, "a b c")).save(tmp_path / f"map.{ending}")
    drawn = (tmp_path / f"map.{ending}").read_bytes()
    assert drawn.startswith(b"\x89PNG") if ending == "png" else b"<svg" in drawn


def test_a_model_without_attention_says_so():
    with pytest.raises(RegardError, match="fixed vector"):
        attention(Trace(["a"], ["b"], {}))
