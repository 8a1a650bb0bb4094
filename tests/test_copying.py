"""Copying: a mixture of generating and pointing at source tokens, in the loss, in steps, in search and in runs."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from regard.config.cell import resolve
from regard.config.model import Model as Cell
from regard.foundation.errors import UsageError
from regard.models import Model, build
from regard.nn import taps
from regard.objectives.objective import batch_loss, coverage_loss, row_losses
from regard.search import beam, greedy
from regard.search.steps import ModelSteps
from regard.text.specials import BOS, EOS, PAD

VOCABULARY = 19
CELLS = {
    "transformer": {"encoder": {"kind": "transformer", "layers": 1}, "decoder": {"kind": "transformer", "layers": 2}},
    "conv": {"encoder": {"kind": "conv", "layers": 1}, "decoder": {"kind": "conv", "layers": 2}},
    "rnn": {"encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}},
    "rnn-feeding": {
        "encoder": {"kind": "bag"},
        "decoder": {"kind": "rnn", "cell": "lstm"},
        "join": {"kind": "attention", "input_feeding": True},
    },
    "wide": {"encoder": {"kind": "rnn", "width": 12}, "decoder": {"kind": "transformer", "layers": 1, "width": 8}},
}


def make(name: str, *, copying: bool = True) -> Model:
    cell = resolve(Cell.model_validate({"width": 16, "copying": copying, **CELLS[name]}), shared_vocabulary=True)
    torch.manual_seed(0)
    model = build(cell, VOCABULARY, VOCABULARY).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def some_source(rows: int = 3, length: int = 6) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(6, VOCABULARY, (rows, length), generator=generator)
    source[:, -1] = EOS
    source[0, 3] = source[0, 1]  # a token that occurs twice
    source[1, 3:] = torch.tensor([EOS, *[PAD] * (length - 4)])
    return source


def some_target(rows: int = 3, length: int = 5) -> torch.Tensor:
    target = torch.randint(6, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(2))
    target[:, 0] = BOS
    target[0, 2:4] = some_source()[0, 1:3]  # words of the source
    target[2, -1] = PAD
    return target


every_cell = pytest.mark.parametrize("name", CELLS)


@every_cell
def test_probabilities_sum_to_one(name: str) -> None:
    model = make(name)
    scores = model(some_source(), some_target())
    torch.testing.assert_close(scores.exp().sum(-1), torch.ones(scores.shape[:-1], dtype=torch.float64))


@every_cell
def test_step_by_step_is_all_at_once(name: str) -> None:
    model, source, inputs = make(name), some_source(), some_target()
    whole = model(source, inputs).log_softmax(-1)
    state = model.start(model.encode(source))
    for place in range(inputs.shape[1]):
        scores, state = model.step(inputs[:, place], state)
        torch.testing.assert_close(scores.log_softmax(-1), whole[:, place])


@every_cell
def test_rows_that_share_a_source_are_those_of_their_own(name: str) -> None:
    """A beam repeats, reorders and drops rows; each must go on copying from its own source."""
    model, source, inputs = make(name), some_source(), some_target()
    rows = torch.tensor([2, 0, 0, 1])
    with torch.no_grad():
        state = model.start(model.encode(source)).select(rows)
        for place in range(3):
            scores, state = model.step(inputs[rows, place], state)
        torch.testing.assert_close(scores, model(source[rows], inputs[rows, :3])[:, -1])


@every_cell
def test_the_formula_written_out(name: str) -> None:
    """P(y) = g · softmax(W o + b)_y + (1 − g) · Σ_{s: x_s = y} α_s, computed with loops from the model's parts."""
    follows = 0
    model, source, inputs = make(name).requires_grad_(False), some_source(), some_target()
    assert model.copying is not None
    memory = model.encode(source)
    outputs = model.decoder(memory, inputs)  # B×T×E
    found = model(source, inputs).exp()
    for row in range(len(source)):
        real = [place for place in range(source.shape[1]) if source[row, place] != PAD]
        for step in range(inputs.shape[1]):
            o = outputs[row, step]
            gate = 1 / (1 + math.exp(-float(model.copying.gate.weight[0] @ o + model.copying.gate.bias[0])))
            query = model.copying.query.weight @ o
            u, v = (model.copying.follow.weight @ o + model.copying.follow.bias).tolist()
            written = [None, *inputs[row, : step + 1].tolist()]
            points = []
            for place in real:
                point = float(query @ (model.copying.key.weight @ memory.states[row, place])) / math.sqrt(len(o))
                read = [None, None, *source[row, :place].tolist()]
                point += u * (read[-1] == written[-1]) + v * (read[-1] is not None and read[-2:] == written[-2:])
                follows += read[-1] == written[-1]
                points.append(point)
            total = sum(math.exp(point) for point in points)
            expected = gate * (model.output_weight @ o + model.output_bias).softmax(0)
            for place, point in zip(real, points, strict=True):
                expected[source[row, place]] += (1 - gate) * math.exp(point) / total
            torch.testing.assert_close(found[row, step], expected)
    assert follows  # some written token is in the source


@every_cell
def test_padding_changes_nothing(name: str) -> None:
    model, source, inputs = make(name), some_source(), some_target()
    padded = F.pad(source, (0, 4), value=PAD)
    torch.testing.assert_close(model(padded, inputs), model(source, inputs))


@every_cell
def test_a_gate_that_only_generates_is_a_model_without_copying(name: str) -> None:
    model, plain = make(name), make(name, copying=False)
    plain.load_state_dict({key: value for key, value in model.state_dict().items() if not key.startswith("copying.")})
    assert model.copying is not None
    with torch.no_grad():
        model.copying.gate.weight.zero_()
        model.copying.gate.bias.fill_(1e4)
    source, inputs = some_source(), some_target()
    expected = plain(source, inputs).log_softmax(-1)
    torch.testing.assert_close(model(source, inputs), expected)
    outputs = some_target()
    for smoothing in (0.0, 0.1):
        ours = batch_loss(model, model.outputs(source, inputs), outputs, smoothing=smoothing)
        theirs = batch_loss(plain, plain.outputs(source, inputs), outputs, smoothing=smoothing)
        torch.testing.assert_close(ours.smoothed, theirs.smoothed)
        torch.testing.assert_close(ours.nll, theirs.nll)


@every_cell
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_fused_loss_and_its_gradients_are_those_of_the_formula(name: str, smoothing: float) -> None:
    model, source, target = make(name), some_source(), some_target()
    inputs, outputs = target[:, :-1], target[:, 1:]
    asked = outputs != PAD
    loss = batch_loss(model, model.outputs(source, inputs), outputs, smoothing=smoothing, scale=0.5)
    loss.smoothed.backward()
    fused = {key: parameter.grad.clone() for key, parameter in model.named_parameters() if parameter.grad is not None}
    model.zero_grad()
    states = model.outputs(source, inputs)
    nll = -model.scores(states).gather(-1, outputs[..., None])[..., 0][asked]
    logits = F.linear(states[..., : model.output_weight.shape[1]], model.output_weight, model.output_bias)[asked]
    spread = logits.logsumexp(-1) - logits.mean(-1)
    explicit = 0.5 * ((1 - smoothing) * nll + smoothing * spread).sum()
    explicit.backward()
    torch.testing.assert_close(loss.smoothed, explicit)
    torch.testing.assert_close(loss.nll, nll.sum())
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        torch.testing.assert_close(fused[key], parameter.grad, msg=key)


@every_cell
def test_losses_of_rows_sum_to_that_of_the_batch(name: str) -> None:
    model, source, target = make(name), some_source(), some_target()
    states = model.outputs(source, target[:, :-1])
    losses, counts = row_losses(model, states, target[:, 1:])
    whole = batch_loss(model, states, target[:, 1:])
    assert float(losses.sum()) == pytest.approx(float(whole.nll), rel=1e-5)  # rows are computed in single precision
    assert int(counts.sum()) == whole.tokens


@every_cell
def test_coverage_is_the_attention_given_twice(name: str) -> None:
    """Equation 12 of See et al. (2017), with loops over the weights of the pointer."""
    model, source, target = make(name).requires_grad_(False), some_source(), some_target()
    inputs, outputs = target[:, :-1], target[:, 1:]
    with taps.watch(model, "copying.log_weights") as seen:
        states = model.outputs(source, inputs)
    weights = seen["copying.log_weights"].exp()
    expected = 0.0
    for row in range(len(outputs)):
        before = torch.zeros(source.shape[1], dtype=torch.float64)
        for step in range(outputs.shape[1]):
            if outputs[row, step] == PAD:
                continue
            expected += float(torch.minimum(weights[row, step], before).sum())
            before += weights[row, step]
    assert float(coverage_loss(model, states, outputs)) == pytest.approx(expected)


@every_cell
def test_searching_uses_the_mixture(name: str) -> None:
    """The reported log-probabilities are those of the mixture for the output as a whole; beam 1 is greedy."""
    model, source = make(name), some_source()
    with torch.no_grad():
        best = greedy(ModelSteps(model), source, [6, 6, 6])
        one = [found[0] for found in beam(ModelSteps(model), source, [6, 6, 6], width=1)]
        assert [hypothesis.tokens for hypothesis in best] == [hypothesis.tokens for hypothesis in one]
        wide = beam(ModelSteps(model), source, [6, 6, 6], width=3)
        for row, found in enumerate(wide):
            tokens = [*found[0].tokens, EOS][: len(found[0].log_probs)]
            inputs = torch.tensor([[BOS, *found[0].tokens]])[:, : len(tokens)]
            scores = model(source[row : row + 1], inputs)[0].log_softmax(-1)
            expected = [float(scores[place, token]) for place, token in enumerate(tokens)]
            assert list(found[0].log_probs) == pytest.approx(expected, rel=1e-4)


def test_the_pointer_and_the_gate_can_be_watched_and_written() -> None:
    model, source, inputs = make("transformer"), some_source(), some_target()
    with taps.watch(model, "copying.*") as seen:
        model(source, inputs)
    assert set(seen) == {"copying.log_weights", "copying.gate_logits"}
    torch.testing.assert_close(seen["copying.log_weights"].exp().sum(-1), torch.ones(3, 5, dtype=torch.float64))
    with taps.watch(model, write={"copying.gate_logits": lambda gate: gate - 1e4}):  # copies only
        scores = model(source, inputs)
    for row in range(len(source)):
        there = torch.zeros(VOCABULARY, dtype=torch.bool)
        there[source[row][source[row] != PAD]] = True
        assert (scores[row, :, ~there] < -60).all()


def test_a_memory_keeps_its_tokens_when_rows_are_selected() -> None:
    model = make("rnn")
    memory = model.encode(some_source()).select(torch.tensor([2, 0]))
    assert memory.tokens is not None
    assert torch.equal(memory.tokens, some_source()[[2, 0]])
    with pytest.raises(ValueError, match="no source tokens"):
        model.decode(replace(memory, tokens=None), some_target()[:2])


@pytest.mark.parametrize(
    ("settings", "shared", "message"),
    [
        ({"join": {"kind": "fixed"}}, True, "needs a decoder with attention"),
        ({}, False, "need one vocabulary"),
    ],
)
def test_impossible_copying_is_refused(settings: dict, shared: bool, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve(Cell.model_validate({"width": 16, "copying": True, **settings}), shared_vocabulary=shared)
