"""Local self-attention: a window around each position, computed in blocks."""

import pytest
import torch
import torch.nn.functional as F

from regard.config.cell import resolve
from regard.config.model import Model as Cell
from regard.models import Model, build
from regard.nn import taps
from regard.nn.attention import local_attention
from regard.text.specials import EOS, PAD

VOCABULARY = 17


def make(window: int | None, positions: str = "sinusoidal", **attention) -> Model:
    settings = {
        "width": 16,
        "encoder": {"kind": "transformer", "layers": 2, "window": window},
        "decoder": {"kind": "rnn"},
        "positions": {"kind": positions},
        "attention": {"heads": 2, **attention},
    }
    torch.manual_seed(0)
    return build(resolve(Cell.model_validate(settings), shared_vocabulary=True), VOCABULARY, VOCABULARY).double().eval()


def some_source(length: int = 11) -> torch.Tensor:
    source = torch.randint(6, VOCABULARY, (2, length), generator=torch.Generator().manual_seed(1))
    source[:, -1] = EOS
    source[1, 4:] = PAD
    return source


@pytest.mark.parametrize("window", [1, 2, 3, 5, 10, 40])
def test_each_query_sees_its_window_and_nothing_else(window: int) -> None:
    """Blocks = the definition: softmax over the keys at most `window` away that are real, or the query itself."""
    torch.manual_seed(window)
    q, k, v = torch.randn(3, 2, 2, 11, 4, dtype=torch.float64).unbind(0)
    real = torch.ones(2, 11, dtype=torch.bool)
    real[1, 4:] = False
    found = local_attention(q, k, v, real[:, None, None], window=window, scale=0.5)
    for row in range(2):
        for place in range(11):
            near = [s for s in range(11) if s == place or (abs(s - place) <= window and real[row, s])]
            weights = (0.5 * q[row, :, place, None] @ k[row, :, near].transpose(1, 2)).softmax(-1)
            torch.testing.assert_close(found[row, :, place], (weights @ v[row, :, near])[:, 0])


@pytest.mark.parametrize("window", [2, 4, 11])
def test_gradients_are_those_of_masked_attention(window: int) -> None:
    torch.manual_seed(window)
    q, k, v = torch.randn(3, 3, 2, 11, 4, dtype=torch.float64).requires_grad_().unbind(0)
    places = torch.arange(11)
    near = (places[None] - places[:, None]).abs() <= window
    blocks = local_attention(q, k, v, None, window=window, scale=0.5)
    masked = F.scaled_dot_product_attention(q, k, v, near, scale=0.5)
    downstream = torch.randn_like(blocks)
    for ours, theirs in zip(
        torch.autograd.grad(blocks, (q, k, v), downstream, retain_graph=True),
        torch.autograd.grad(masked, (q, k, v), downstream),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi", "relative"])
@pytest.mark.parametrize("window", [10, 11, 50])
def test_a_window_as_long_as_the_source_is_full_attention(window: int, positions: str) -> None:
    source, inputs = some_source(), torch.tensor([[1, 7, 8], [1, 9, 2]])
    torch.testing.assert_close(make(window, positions)(source, inputs), make(None, positions)(source, inputs))


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "alibi", "relative"])
@pytest.mark.parametrize("window", [1, 3])
def test_padding_changes_nothing(window: int, positions: str) -> None:
    model, source = make(window, positions), some_source()
    inputs = torch.tensor([[1, 7, 8], [1, 9, 2]])
    torch.testing.assert_close(model(F.pad(source, (0, 9), value=PAD), inputs), model(source, inputs))


def test_watched_weights_are_those_of_the_blocks() -> None:
    model, source = make(2, "rotary"), some_source()
    expected = model.encode(source).states
    with taps.watch(model, "encoder.*.weights") as seen:
        watched = model.encode(source)
    torch.testing.assert_close(watched.states[watched.mask], expected[watched.mask])
    weights = seen["encoder.layers.0.attention.weights"]  # B×H×S×S
    places = torch.arange(11)
    far = (places[None] - places[:, None]).abs() > 2
    assert (weights[:, :, far] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 11, dtype=torch.float64))


def test_a_narrow_window_is_not_full_attention() -> None:
    source, inputs = some_source(), torch.tensor([[1, 7, 8], [1, 9, 2]])
    assert not torch.allclose(make(1)(source, inputs), make(None)(source, inputs))


def test_attention_dropout_and_other_scores_keep_the_window() -> None:
    source = some_source()
    model = make(2, score="additive")
    with taps.watch(model, "encoder.*.weights") as seen:
        expected = model.encode(source).states
    torch.testing.assert_close(model.encode(source).states, expected)
    assert (seen["encoder.layers.1.attention.weights"][:, :, 0, 3:] == 0).all()
    dropped = make(2, dropout=0.5).train()
    with taps.watch(dropped, "encoder.*.weights") as seen:
        dropped.encode(source)
    assert (seen["encoder.layers.1.attention.weights"][:, :, 0, 3:] == 0).all()
