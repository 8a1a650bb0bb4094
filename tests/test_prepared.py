"""Steps of decoding go through what has been prepared of a Transformer decoder: the same numbers, nothing hidden."""

import copy
import gc
import weakref

import pytest
import torch

from regard.nn import taps
from regard.text.specials import BOS
from tests.cells import CELLS, SEEING, VOCABULARY, covering, examples, model_of

CLOSE = {"atol": 3e-5, "rtol": 1e-4}
NAMES = covering(name for name, one in {**CELLS, **SEEING}.items() if one.decoder.kind == "transformer")
PLAIN = "transformer>transformer/attention/scaled-dot-2"


def given(name, rows, length, longest, seed):
    """Sources of up to `longest` tokens, and inputs of just this length: B×S and B×T."""
    source, _ = examples(name, rows, longest, seed=seed)
    inputs = torch.randint(6, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed))
    inputs[:, 0] = BOS
    return source, inputs


def decoded(model, source, inputs, moves=()):
    """Logits of all steps over inputs B×T; before step t the rows `moves[t]` are selected, where it is there."""
    state, found = model.start(model.encode(source)), []
    for t in range(inputs.shape[1]):
        if t in moves:
            inputs, state = inputs[moves[t]], state.select(moves[t])
        logits, state = model.step(inputs[:, t], state)
        found.append(logits)
    return found


@pytest.mark.parametrize("longest", [5, 40])
@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_prepared_is_plain_whatever_becomes_of_the_rows(name, longest):
    model, (source, inputs) = (
        model_of(name),
        given(name, 5, 19, longest, seed=11),
    )  # more than there is room for at first
    moves = {2: [0, 0, 1, 3, 3, 4], 5: [5, 0, 2, 1, 3], 9: [1, 2, 4], 17: [2, 0]}
    moves = {t: torch.tensor(rows) for t, rows in moves.items()}
    prepared = decoded(model, source, inputs, moves)
    with taps.watch(model, "*") as seen:
        plain = decoded(model, source, inputs, moves)
    assert any(name.startswith("decoder.layers.0") for name in seen)
    for one, other in zip(prepared, plain, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@torch.no_grad()
def test_whoever_begins_to_watch_in_the_middle_sees_the_rest():
    model, (source, inputs) = model_of(PLAIN), given(PLAIN, 3, 6, 7, seed=12)
    whole = decoded(model, source, inputs)
    state = model.start(model.encode(source))
    for t in range(3):
        _, state = model.step(inputs[:, t], state)
    with taps.watch(model, "decoder.layers.*.source_attention.weights") as seen:
        for t in range(3, 6):
            logits, state = model.step(inputs[:, t], state)
            torch.testing.assert_close(logits, whole[t], **CLOSE)
    weights = seen["decoder.layers.0.source_attention.weights"]
    assert weights.shape[2:] == (3, source.shape[1]), "three steps, each over the source and nothing else"
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


@torch.no_grad()
def test_a_hook_hears_every_step():
    model, (source, inputs) = model_of(PLAIN), given(PLAIN, 2, 4, 7, seed=13)
    decoded(model, source, inputs)
    heard = []
    hook = model.decoder.layers[0].feed_forward.register_forward_hook(lambda *what: heard.append(what))
    decoded(model, source, inputs)
    hook.remove()
    assert len(heard) == 4


@torch.no_grad()
def test_what_is_prepared_follows_every_change_of_the_decoder():
    model, (source, inputs) = copy.deepcopy(model_of(PLAIN)), given(PLAIN, 2, 3, 7, seed=14)
    before = decoded(model, source, inputs)[-1]
    layer = model.decoder.layers[0]

    def follows():
        now = decoded(model, source, inputs)[-1]
        torch.testing.assert_close(now, model(source, inputs)[:, -1], **CLOSE)
        return now

    layer.attention.query.weight.data.mul_(3)  # in place, behind torch's back
    changed = follows()
    assert not torch.allclose(changed, before, **CLOSE)
    model.load_state_dict({name: tensor.clone() for name, tensor in model_of(PLAIN).state_dict().items()}, assign=True)
    torch.testing.assert_close(follows(), before, **CLOSE)
    outer = layer.feed_forward.outer
    layer.feed_forward.outer = torch.nn.Linear(outer.in_features, outer.out_features)
    assert not torch.allclose(follows(), before, **CLOSE)
    torch.testing.assert_close(decoded(model_of(PLAIN), source, inputs)[-1], before, **CLOSE)  # the original's own


@torch.no_grad()
def test_dropout_while_training_is_not_prepared_away():
    model, (source, inputs) = copy.deepcopy(model_of(PLAIN)), given(PLAIN, 2, 3, 7, seed=15)
    model.decoder.layers[0].dropout.probability = 0.5
    calm = decoded(model, source, inputs)[-1]
    model.train()
    assert not torch.allclose(decoded(model, source, inputs)[-1], calm, **CLOSE)


@torch.no_grad()
def test_a_decoder_that_nobody_needs_is_not_kept():
    model, (source, inputs) = copy.deepcopy(model_of(PLAIN)), given(PLAIN, 2, 3, 7, seed=16)
    decoded(model, source, inputs)
    gone = weakref.ref(model.decoder)
    del model
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("name", [PLAIN, "transformer>transformer/sinusoidal"])
@torch.no_grad()
def test_a_model_laid_out_for_steps_is_the_same_model_with_the_same_weights(name):
    model, (source, inputs) = model_of(name), given(name, 3, 5, 7, seed=17)
    before, weight = model(source, inputs), model.output_weight
    copied = weight.clone()
    assert model.optimize_layout() is model and model.output_weight is weight
    assert torch.equal(weight, copied)
    torch.testing.assert_close(model(source, inputs), before, **CLOSE)
    torch.testing.assert_close(torch.stack(decoded(model, source, inputs), dim=1), before, **CLOSE)
