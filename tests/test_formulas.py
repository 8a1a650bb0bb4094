"""Whole models against the formulas of their papers, written out without any of the code that they test.

The laws of the grid compare the code with itself (step = sweep, batch = single), so that an error in shared code is
invisible to them. Here one sentence at a time, without padding, goes through plain matrix products. Only the
parameters are the model's. Axes: S source positions, T target positions, D width.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.models import Model, build
from regard.nn import taps
from regard.text.specials import PAD
from tests.cells import VOCABULARY, cell, sentences

CLOSE = {"atol": 2e-5, "rtol": 1e-4}
D = 16
KINDS = ("elman", "gru", "lstm")


def model_with(**settings) -> Model:
    """A random model of a cell in which no parameter is zero."""
    torch.manual_seed(3)
    model = build(cell(dropout=0.0, **settings), VOCABULARY, VOCABULARY).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def rows(model: Model):
    """The model's logits for some padded sentences, and each of these sentences without its padding."""
    source, inputs = sentences(4, 6, seed=4)
    assert (source == PAD).any() and (inputs == PAD).any()
    logits = model(source, inputs)
    for found, one, other in zip(logits, source, inputs, strict=True):
        yield found[: int((other != PAD).sum())], one[one != PAD], other[other != PAD]


def embed(model: Model, tokens: Tensor, *, positions: bool = False) -> Tensor:
    """√E · W[token], and with positions [sin(t·ω), cos(t·ω)], ω_i = 10000^(−2i/E) added."""
    weight = model.decoder.embedding.weight
    vectors = math.sqrt(weight.shape[1]) * weight[tokens]
    if not positions:
        return vectors
    half = D // 2
    angles = [[t / 10_000 ** (2 * i / D) for i in range(half)] for t in range(len(tokens))]
    return vectors + torch.tensor([[*map(math.sin, row), *map(math.cos, row)] for row in angles])


def recur(layer, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The next (h, c) of a recurrent layer; only the LSTM has a c."""
    hidden, memory = state
    inner = layer.input_weight @ x + layer.input_bias
    outer = layer.state_weight @ hidden + layer.state_bias
    if layer.cell == "elman":
        return torch.tanh(inner + outer), memory
    if layer.cell == "gru":
        (r, z, n), (r_h, z_h, n_h) = inner.chunk(3), outer.chunk(3)
        r, z = torch.sigmoid(r + r_h), torch.sigmoid(z + z_h)
        return (1 - z) * torch.tanh(n + r * n_h) + z * hidden, memory
    i, f, g, o = (inner + outer).chunk(4)
    memory = torch.sigmoid(f) * memory + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(memory), memory


def encode_recurrently(model: Model, source: Tensor) -> tuple[Tensor, Tensor]:
    """States S×D of all positions, and the last state that each direction of the top layer came to."""
    encoder = model.encoder
    states, ends = embed(model, source), []
    for layer in encoder.layers:
        outputs, ends = [], []
        for direction, run in zip(encoder.directions, layer, strict=True):
            state = torch.zeros(run.width), torch.zeros(run.width)
            order = list(range(len(source)))
            order = order if direction == "forward" else order[::-1]
            found = {}
            for place in order:
                state = recur(run, states[place], state)
                found[place] = state[0]
            outputs.append(torch.stack([found[place] for place in range(len(source))]))
            ends.append(state[0])
        states = torch.cat(outputs, dim=1)
    return states, torch.cat(ends)


def attend(attention, query: Tensor, states: Tensor) -> Tensor:
    """Σ softmax(score(q, h_s)) h_s of one query D by an attention of one head without projections."""
    kind, score = type(attention.score).__name__, attention.score
    if kind == "Additive":
        energies = torch.stack(
            [
                score.out[0, 0, :, 0] @ torch.tanh(query @ score.query[0] + h @ score.key[0] + score.bias[0, 0])
                for h in states
            ]
        )
    elif kind == "Bilinear":
        energies = torch.stack([query @ score.weight[0] @ h for h in states])
    else:
        energies = states @ query
    weights = energies.exp() / energies.exp().sum()
    return weights @ states


def decode_recurrently(model: Model, states: Tensor, vector: Tensor, inputs: Tensor) -> Tensor:
    """Logits T×V of a recurrent decoder: Cho et al. (2014), Bahdanau et al. (2015), Luong et al. (2015)."""
    decoder, join = model.decoder, model.cell.join
    depth = len(decoder.layers)
    if getattr(join, "form", None) == "initial":
        past = [(vector, vector)] * depth
    elif getattr(join, "form", None) == "every-step":
        past = [(torch.zeros(D), torch.zeros(D))] * depth
    else:
        first = torch.tanh(decoder.first.weight @ vector + decoder.first.bias)
        both = first.view(depth, -1, D)  # h of each layer, and for the LSTM c behind it
        past = [(one[0], one[-1]) for one in both]
    fed, found = torch.zeros(D), []
    for embedded in embed(model, inputs):
        x, context = embedded, None
        if getattr(join, "form", None) == "every-step":
            x = torch.cat([x, vector])
        if getattr(join, "input_feeding", None):
            x = torch.cat([x, fed])
        if getattr(join, "order", None) == "before":
            context = attend(decoder.source_attention, past[-1][0], states)
            x = torch.cat([x, context])
        for number, layer in enumerate(decoder.layers):
            past[number] = recur(layer, x, past[number])
            x = past[number][0]
        if getattr(join, "order", None) == "after":
            context = attend(decoder.source_attention, x, states)
        if context is not None:
            x = fed = torch.tanh(decoder.readout.weight @ torch.cat([x, context]) + decoder.readout.bias)
        found.append(model.output_weight @ x + model.output_bias)
    return torch.stack(found)


JOINS = {
    "initial": ({"kind": "fixed", "form": "initial"}, {}),
    "transformed": ({"kind": "fixed", "form": "transformed"}, {}),
    "every-step": ({"kind": "fixed", "form": "every-step"}, {}),
    "before": ({"kind": "attention", "order": "before"}, {"score": "additive"}),
    "before-dot": ({"kind": "attention", "order": "before"}, {"score": "dot", "project": False}),
    "after": ({"kind": "attention", "order": "after"}, {"score": "bilinear"}),
    "feeding": ({"kind": "attention", "order": "after", "input_feeding": True}, {"score": "bilinear"}),
    "feeding-additive": ({"kind": "attention", "order": "after", "input_feeding": True}, {"score": "additive"}),
}


@torch.no_grad()
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("join", JOINS)
def test_recurrent_models_are_the_papers_formulas(join, kind, layers):
    settings, attention = JOINS[join]
    direction = "both" if layers > 1 else "forward"
    side = {"kind": "rnn", "cell": kind, "layers": layers}
    model = model_with(encoder={**side, "direction": direction}, decoder=side, join=settings, attention=attention)
    for logits, source, inputs in rows(model):
        states, vector = encode_recurrently(model, source)
        torch.testing.assert_close(logits, decode_recurrently(model, states, vector, inputs), **CLOSE)


@torch.no_grad()
def test_watching_changes_no_result_of_a_formula():
    settings, attention = JOINS["before-dot"]
    model = model_with(
        encoder={"kind": "rnn"}, decoder={"kind": "rnn", "layers": 2}, join=settings, attention=attention
    )
    with taps.watch(model, "*"):
        for logits, source, inputs in rows(model):
            states, vector = encode_recurrently(model, source)
            torch.testing.assert_close(logits, decode_recurrently(model, states, vector, inputs), **CLOSE)


def test_what_is_fed_back_is_the_last_output_and_every_input_column_learns():
    settings, attention = JOINS["feeding"]
    model = model_with(encoder={"kind": "rnn"}, decoder={"kind": "rnn"}, join=settings, attention=attention)
    source, inputs = sentences(2, 5, seed=4)
    state = model.start(model.encode(source))
    for t in range(3):
        output, state = model.decoder.step(inputs[:, t], state)
        torch.testing.assert_close(state.past["fed"], output)
    model(source, inputs[:, :2]).square().sum().backward()
    gradient = model.decoder.layers[0].input_weight.grad  # 3D×(E+E)
    assert (gradient.abs().sum(0) > 0).all()


def convolve(layer, states: Tensor, *, causal: bool) -> Tensor:
    """(x + GLU(conv(x))) · √½ with the layer's weights, zeros beyond the ends: T×D."""
    kernel = layer.linear.weight.shape[1] // states.shape[1]
    weight = layer.linear.weight.view(-1, kernel, states.shape[1]).transpose(
        1, 2
    )  # as conv1d has it: out × in × window
    before = kernel - 1 if causal else (kernel - 1) // 2
    padded = F.pad(states.T[None], (before, kernel - 1 - before))
    gated = F.glu(F.conv1d(padded, weight, layer.linear.bias), dim=1)[0].T
    return (states + gated) * math.sqrt(0.5)


def multi_head(attention, queries: Tensor, memory: Tensor, *, causal: bool = False) -> Tensor:
    """softmax(Q Kᵀ / √K) V of every head, side by side through W_O: T×D."""
    q, k, v = (
        part(one) for part, one in ((attention.query, queries), (attention.key, memory), (attention.value, memory))
    )
    heads, found = attention.heads, []
    for one, key, value in zip(q.chunk(heads, 1), k.chunk(heads, 1), v.chunk(heads, 1), strict=True):
        scores = one @ key.T / math.sqrt(one.shape[1])
        if causal:
            scores = scores + torch.full_like(scores, -torch.inf).triu(1)
        found.append(scores.softmax(-1) @ value)
    return attention.out(torch.cat(found, dim=1))


@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("join", ["attention", "fixed"])
@torch.no_grad()
def test_convolutional_models_are_the_papers_formulas(join, kernel):
    side = {"kind": "conv", "layers": 2, "kernel": kernel}
    model = model_with(
        encoder=side, decoder=side, join={"kind": join}, attention={"heads": 2} if join == "attention" else {}
    )
    for logits, source, inputs in rows(model):
        memory = embed(model, source, positions=True)
        for layer in model.encoder.layers:
            memory = convolve(layer, memory, causal=False)
        states = embed(model, inputs, positions=True)
        if join == "fixed":
            states = states + model.decoder.fixed.linear(memory.mean(0))
        for layer in model.decoder.layers:
            states = convolve(layer.convolution, states, causal=True)
            if join == "attention":
                states = (states + multi_head(layer.source_attention, states, memory)) * math.sqrt(0.5)
        torch.testing.assert_close(logits, states @ model.output_weight.T + model.output_bias, **CLOSE)


@pytest.mark.parametrize("form", ["initial", "transformed", "every-step"])
@pytest.mark.parametrize("encoder", [{"kind": "bag"}, {"kind": "bag", "pool": "sum"}, {"kind": "rnn", "cell": "lstm"}])
@torch.no_grad()
def test_a_fixed_vector_enters_a_transformer_where_its_form_says(encoder, form):
    model = model_with(
        encoder=encoder,
        decoder={"kind": "transformer", "layers": 1},
        join={"kind": "fixed", "form": form},
        attention={"heads": 2},
    )
    layer, decoder = model.decoder.layers[0], model.decoder

    def norm(states: Tensor, module) -> Tensor:
        centred = states - states.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + module.eps).sqrt() * module.weight + module.bias

    for logits, source, inputs in rows(model):
        if encoder["kind"] == "bag":
            read = embed(model, source)
            vector = read.sum(0) if encoder.get("pool") == "sum" else read.mean(0)
        else:
            _, vector = encode_recurrently(model, source)
        vector = vector if form == "initial" else decoder.fixed.linear.weight @ vector + decoder.fixed.linear.bias
        states = embed(model, inputs, positions=True)
        states = states + vector if form == "every-step" else torch.cat([states[:1] + vector, states[1:]])
        normed = norm(states, layer.attention_norm)
        states = states + multi_head(layer.attention, normed, normed, causal=True)
        inner = layer.feed_forward.inner(norm(states, layer.feed_forward_norm)).relu()
        states = norm(states + layer.feed_forward.outer(inner), decoder.norm)
        torch.testing.assert_close(logits, states @ model.output_weight.T + model.output_bias, **CLOSE)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_the_summary_of_a_recurrent_encoder_is_its_last_state(kind, direction, layers):
    model = model_with(
        encoder={"kind": "rnn", "cell": kind, "direction": direction, "layers": layers},
        decoder={"kind": "rnn"},
        join={"kind": "fixed"},
    )
    source, _ = sentences(3, 6, seed=4)
    memory = model.encode(source)
    for row, tokens in enumerate(source):
        states, vector = encode_recurrently(model, tokens[tokens != PAD])
        torch.testing.assert_close(memory.summary[row], vector, **CLOSE)
        torch.testing.assert_close(memory.states[row, : len(states)], states, **CLOSE)


@pytest.mark.parametrize("encoder", [{"kind": "conv"}, {"kind": "transformer"}, {"kind": "transformer", "norm": "rms"}])
@torch.no_grad()
def test_the_summary_of_other_encoders_is_the_mean_of_real_states(encoder):
    model = model_with(encoder=encoder, decoder={"kind": "rnn"}, join={"kind": "fixed"})
    source, _ = sentences(3, 6, seed=4)
    memory = model.encode(source)
    for row, tokens in enumerate(source):
        torch.testing.assert_close(memory.summary[row], memory.states[row][tokens != PAD].mean(0), **CLOSE)


def test_an_lstm_remembers_at_first():
    """Its forget gate begins with a bias of 1: of a state without any input, σ(1) = 0.731 is kept, not a half."""
    from regard.nn.recurrence import RecurrentLayer

    recurrence = RecurrentLayer("lstm", 4, 8)
    for parameter in (recurrence.input_weight, recurrence.state_weight):
        torch.nn.init.zeros_(parameter)
    state = torch.cat([torch.zeros(1, 8), torch.ones(1, 8)], dim=1)  # h and c
    after = recurrence.step(torch.zeros(1, 4), state)
    torch.testing.assert_close(after[:, 8:], torch.full((1, 8), torch.tensor(1.0).sigmoid().item()))
