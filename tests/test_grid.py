"""The laws that every cell of the grid obeys."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config.cell import resolve
from regard.config.model import Model as Cell
from regard.foundation.errors import UsageError
from regard.models import build
from regard.nn import taps
from tests.cells import CELLS, SEEING, VOCABULARY, cell, examples, model_of, sentences

CLOSE = {"atol": 3e-5, "rtol": 1e-4}
every_cell = pytest.mark.parametrize("name", [*CELLS, *SEEING])


@every_cell
@torch.no_grad()
def test_step_by_step_is_all_at_once(name):
    model, (source, inputs) = model_of(name), examples(name, 4, 6, seed=1)
    state, scores = model.start(model.encode(source)), []
    for t in range(inputs.shape[1]):
        assert state.position == t
        logits, state = model.step(inputs[:, t], state)
        scores.append(logits)
    torch.testing.assert_close(torch.stack(scores, dim=1), model(source, inputs), **CLOSE)


@every_cell
@torch.no_grad()
def test_batch_is_single_and_padding_changes_nothing(name):
    model, (source, inputs) = model_of(name), examples(name, 4, 6, seed=2)
    together = model(source, inputs)
    for row in range(len(source)):
        only = source[row : row + 1] if name in SEEING else source[row : row + 1, : int((source[row] != 0).sum())]
        alone = model(only, inputs[row : row + 1])
        torch.testing.assert_close(together[row : row + 1], alone, **CLOSE)


@every_cell
@torch.no_grad()
def test_the_future_does_not_leak(name):
    model, (source, inputs) = model_of(name), examples(name, 3, 6, seed=3)
    changed = inputs.clone()
    changed[:, 3:] = 7
    torch.testing.assert_close(model(source, inputs)[:, :3], model(source, changed)[:, :3], **CLOSE)


@every_cell
@torch.no_grad()
def test_watched_is_unwatched_and_attention_rows_sum_to_one(name):
    model, (source, inputs) = model_of(name), examples(name, 3, 5, seed=4)
    plain = model(source, inputs)
    with taps.watch(model, "*") as recording:
        watched = model(source, inputs)
    torch.testing.assert_close(watched, plain, **CLOSE)
    assert set(recording) == set(taps.names(model)) or name.startswith("bag")
    for tap in recording:
        if tap.endswith(".weights"):
            sums = recording[tap].sum(-1)
            torch.testing.assert_close(sums, torch.ones_like(sums))
    assert not any(m.watched for m in model.modules() if isinstance(m, taps.Tap))


@every_cell
@torch.no_grad()
def test_a_state_can_keep_drop_duplicate_and_reorder_its_rows(name):
    model, (source, inputs) = model_of(name), examples(name, 4, 5, seed=5)
    rows = torch.tensor([2, 0, 2])
    state = model.start(model.encode(source))
    _, state = model.step(inputs[:, 0], state)
    chosen, _ = model.step(inputs[rows, 1], state.select(rows))
    whole, _ = model.step(inputs[:, 1], state)
    torch.testing.assert_close(chosen, whole[rows], **CLOSE)


@every_cell
@torch.no_grad()
def test_a_step_leaves_the_state_it_came_from_as_it_was(name):
    model, (source, inputs) = model_of(name), examples(name, 2, 4, seed=6)
    state = model.start(model.encode(source))
    first, _ = model.step(inputs[:, 0], state)
    model.step(torch.full_like(inputs[:, 0], 9), state)
    again, _ = model.step(inputs[:, 0], state)
    torch.testing.assert_close(again, first, rtol=0, atol=0)
    _, one = model.step(inputs[:, 0], state)
    _, other = model.step(torch.full_like(inputs[:, 0], 9), state)  # two ways on from the same state
    for t in range(1, inputs.shape[1]):
        model.step(inputs[:, t], other)
        logits, one = model.step(inputs[:, t], one)
    torch.testing.assert_close(logits, model(source, inputs)[:, -1], **CLOSE)


@every_cell
def test_every_parameter_learns(name):
    torch.manual_seed(0)
    model = build({**CELLS, **SEEING}[name], VOCABULARY, VOCABULARY).train()
    source, inputs = examples(name, 4, 6, seed=7)
    model(source, inputs).square().mean().backward()
    model(source, inputs).square().mean().backward()  # what is fed back is zero before the first step
    idle = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert set(idle) <= {n for n in idle if n.endswith("key.bias")}, idle  # the same for all keys: softmax cancels it


@every_cell
def test_words_of_its_own_enter_where_they_are_mixed_in(name):
    model, (source, inputs) = model_of(name), examples(name, 3, 5, seed=8)
    memory = model.encode(source)

    def true_words(scores, true):
        assert scores.shape == (*true.shape, VOCABULARY)
        return true

    torch.testing.assert_close(model.decode(memory, inputs, true_words), model.decode(memory, inputs), **CLOSE)
    other = model.decode(memory, inputs, lambda scores, true: torch.full_like(true, 7))
    sevens = torch.cat([inputs[:, :1], torch.full_like(inputs[:, 1:], 7)], dim=1)
    torch.testing.assert_close(other, model.decode(memory, sevens), **CLOSE)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(CELLS)),
    st.integers(1, 5),
    st.integers(1, 9),
    st.integers(0, 10_000),
    st.integers(1, 4),
)
@torch.no_grad()
def test_any_padding_and_any_neighbours_change_nothing(name, rows, longest, seed, padding):
    model, (source, inputs) = model_of(name), sentences(rows, longest, seed)
    padded = torch.nn.functional.pad(source, (0, padding))
    reversed_rows = torch.arange(rows - 1, -1, -1)
    torch.testing.assert_close(model(padded, inputs), model(source, inputs), **CLOSE)
    torch.testing.assert_close(
        model(source[reversed_rows], inputs[reversed_rows])[reversed_rows], model(source, inputs), **CLOSE
    )


def test_the_bag_is_blind_to_order_and_the_others_are_not():
    source, inputs = torch.tensor([[7, 8, 9, 2]]), torch.tensor([[1, 7]])
    shuffled = torch.tensor([[9, 7, 8, 2]])
    with torch.no_grad():
        for name in ("bag>gru/transformed", "bag>transformer/attention"):
            model = model_of(name)
            torch.testing.assert_close(model(source, inputs), model(shuffled, inputs), **CLOSE)
        for name in ("gru-both>gru/transformed", "conv>gru/transformed", "transformer>gru/transformed"):
            model = model_of(name)
            assert not torch.allclose(model(source, inputs), model(shuffled, inputs), atol=1e-3)


def test_reading_backwards_is_reading_the_reversed_source_forwards():
    torch.manual_seed(0)
    sides = {"decoder": {"kind": "rnn"}, "join": {"kind": "fixed"}}
    backward = build(cell(encoder={"kind": "rnn", "direction": "backward"}, **sides), VOCABULARY, VOCABULARY).eval()
    forward = build(cell(encoder={"kind": "rnn", "direction": "forward"}, **sides), VOCABULARY, VOCABULARY).eval()
    forward.load_state_dict(backward.state_dict())
    source, inputs = torch.tensor([[7, 8, 9, 2]]), torch.tensor([[1, 7]])
    torch.testing.assert_close(backward(source, inputs), forward(source.flip(1), inputs))


def test_tied_embeddings_are_one_matrix():
    tied = build(cell(), VOCABULARY, VOCABULARY)
    untied = build(cell(embeddings={"tie": "none"}), VOCABULARY, VOCABULARY)
    assert tied.output_weight is tied.source_embedding.weight
    assert untied.output_weight is not untied.decoder.embedding.weight
    extra = sum(p.numel() for p in untied.parameters()) - sum(p.numel() for p in tied.parameters())
    assert extra == 2 * VOCABULARY * 16


def test_an_intervention_changes_what_comes_behind_it_and_only_while_it_lasts():
    model, (source, inputs) = model_of("transformer>transformer/attention"), sentences(2, 5, seed=9)
    name = "decoder.layers.1.source_attention.head_outputs"
    with torch.no_grad():
        plain = model(source, inputs)
        with taps.watch(model, write={name: torch.zeros_like}) as recording:
            silenced = model(source, inputs)
        assert not recording[name].any()
        assert not torch.allclose(plain, silenced, atol=1e-4)
        torch.testing.assert_close(model(source, inputs), plain, rtol=0, atol=0)
    with (
        pytest.raises(KeyError, match="The model has no tap called nowhere"),
        taps.watch(model, write={"nowhere": torch.zeros_like}),
    ):
        pass


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"encoder": {"kind": "rnn", "width": 15}, "decoder": {"kind": "rnn"}}, "Make it even"),
        ({"encoder": {"kind": "conv", "kernel": 4}}, "Make it odd"),
        ({"attention": {"heads": 3}}, "is not divisible by 3 attention heads"),
        ({"decoder": {"kind": "conv"}, "join": {"kind": "fixed", "form": "initial"}}, "every-step"),
        (
            {
                "encoder": {"kind": "rnn", "width": 8},
                "decoder": {"kind": "rnn"},
                "join": {"kind": "fixed", "form": "initial"},
            },
            "transformed",
        ),
        ({"join": {"kind": "attention", "order": "before"}}, "on every layer"),
        ({"encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}, "positions": {"kind": "rotary"}}, "no effect"),
        ({"encoder": {"kind": "conv"}, "decoder": {"kind": "conv"}, "positions": {"kind": "alibi"}}, "sinusoidal"),
        ({"positions": {"kind": "rotary"}, "attention": {"heads": 16}}, "odd width"),
        (
            {
                "encoder": {"kind": "rnn", "width": 8},
                "decoder": {"kind": "rnn"},
                "attention": {"score": "dot"},
            },
            "project=true",
        ),
    ],
)
def test_a_cell_that_makes_no_sense_says_why(settings, words):
    with pytest.raises(UsageError, match=words):
        cell(**settings)


def test_separate_vocabularies_cannot_share_all_embeddings():
    with pytest.raises(UsageError, match=r"text\.joint=true"):
        resolve(Cell.model_validate({"embeddings": {"tie": "all"}}), shared_vocabulary=False)
