"""Our layers against torch's own, with the same weights."""

import pytest
import torch
from torch import nn

from regard.models.encoders import TransformerEncoderLayer
from regard.models.transformer_decoder import TransformerDecoderLayer
from regard.nn.attention import Attention, KeyValues, causal_mask, lookup
from regard.nn.recurrence import RecurrentLayer, backwards
from tests.cells import cell

CLOSE = {"atol": 1e-5, "rtol": 1e-4}
B, S, T, D, H = 3, 7, 5, 16, 4


def copy_attention(ours: Attention, theirs: nn.MultiheadAttention) -> None:
    """Give our attention the weights of torch's."""
    weights, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    for linear, weight, bias in zip((ours.query, ours.key, ours.value), weights, biases, strict=True):
        linear.weight.data.copy_(weight)
        linear.bias.data.copy_(bias)
    ours.out.load_state_dict(theirs.out_proj.state_dict())


@pytest.mark.parametrize("cell_kind", ["elman", "gru", "lstm"])
@pytest.mark.parametrize("stepwise", [False, True])
def test_recurrence_is_torchs(cell_kind, stepwise):
    torch.manual_seed(0)
    theirs = {"elman": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}[cell_kind](6, D, batch_first=True)
    ours = RecurrentLayer(cell_kind, 6, D)
    for mine, name in zip(ours._weights, ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"), strict=True):
        mine.data.copy_(getattr(theirs, name).data)
    inputs = torch.randn(B, T, 6)
    state = torch.randn(B, ours.state_width)
    hidden = state[:, :D].unsqueeze(0).contiguous()
    start = (hidden, state[:, D:].unsqueeze(0).contiguous()) if cell_kind == "lstm" else hidden
    expected = theirs(inputs, start)[0]
    if stepwise:
        outputs = []
        for t in range(T):
            state = ours.step(inputs[:, t], state)
            outputs.append(state[:, :D])
        torch.testing.assert_close(torch.stack(outputs, 1), expected, **CLOSE)
    else:
        torch.testing.assert_close(ours(inputs, state), expected, **CLOSE)


def test_reading_both_ways_is_torchs_packed_bidirectional_gru():
    torch.manual_seed(0)
    theirs = nn.GRU(6, D, batch_first=True, bidirectional=True)
    ours = [RecurrentLayer("gru", 6, D) for _ in range(2)]
    for layer, suffix in zip(ours, ("", "_reverse"), strict=True):
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        for mine, name in zip(layer._weights, names, strict=True):
            mine.data.copy_(getattr(theirs, name + suffix).data)
    inputs, lengths = torch.randn(B, S, 6), torch.tensor([7, 4, 1])
    packed = nn.utils.rnn.pack_padded_sequence(inputs, lengths, batch_first=True)
    expected, _ = nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    forward = ours[0](inputs, ours[0].blank(inputs))
    back = backwards(ours[1](backwards(inputs, lengths), ours[1].blank(inputs)), lengths)
    real = (torch.arange(S) < lengths[:, None])[:, :, None]
    torch.testing.assert_close(torch.cat([forward, back], 2) * real, expected, **CLOSE)


@pytest.mark.parametrize("watched", [False, True])
def test_attention_is_torchs_multihead_attention(watched):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(D, H, batch_first=True)
    nn.init.normal_(theirs.in_proj_bias)
    ours = Attention(query_width=D, memory_width=D, heads=H, score="scaled-dot")
    copy_attention(ours, theirs)
    queries, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    allowed = torch.arange(S) < torch.tensor([7, 4, 1])[:, None]
    expected, weights = theirs(queries, memory, memory, key_padding_mask=~allowed, average_attn_weights=False)
    if watched:
        ours.weights.watcher = lambda found: (torch.testing.assert_close(found, weights, **CLOSE), found)[1]
    found = ours(queries, memory, allowed[:, None, None, :])
    torch.testing.assert_close(found, expected, **CLOSE)


@pytest.mark.parametrize("place", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformer_layers_are_torchs(place, activation):
    torch.manual_seed(0)
    how = {"kind": "transformer", "norm_place": place, "activation": activation, "feed_forward": 24}
    small = cell(encoder=how, decoder=how, attention={"heads": H})
    theirs_like = {"dropout": 0.0, "activation": activation, "batch_first": True, "norm_first": place == "pre"}
    states, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    allowed = torch.arange(S) < torch.tensor([7, 4, 1])[:, None]

    theirs = nn.TransformerEncoderLayer(D, H, 24, **theirs_like)
    ours = TransformerEncoderLayer(small, small.encoder).eval()
    copy_attention(ours.attention, theirs.self_attn)
    ours.feed_forward.inner.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.outer.load_state_dict(theirs.linear2.state_dict())
    for norm in (theirs.norm1, theirs.norm2):
        nn.init.normal_(norm.weight)
    ours.attention_norm.load_state_dict(theirs.norm1.state_dict())
    ours.feed_forward_norm.load_state_dict(theirs.norm2.state_dict())
    expected = theirs(memory, src_key_padding_mask=~allowed)
    torch.testing.assert_close(ours(memory, allowed[:, None, None, :]), expected, **CLOSE)

    theirs = nn.TransformerDecoderLayer(D, H, 24, **theirs_like)
    ours = TransformerDecoderLayer(small, small.decoder).eval()
    copy_attention(ours.attention, theirs.self_attn)
    copy_attention(ours.source_attention, theirs.multihead_attn)
    ours.feed_forward.inner.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.outer.load_state_dict(theirs.linear2.state_dict())
    ours.attention_norm.load_state_dict(theirs.norm1.state_dict())
    ours.source_norm.load_state_dict(theirs.norm2.state_dict())
    ours.feed_forward_norm.load_state_dict(theirs.norm3.state_dict())
    expected = theirs(states, memory, tgt_mask=~causal_mask(T, states.device), memory_key_padding_mask=~allowed)
    source = ours.source_attention.key_values(memory)
    found = ours(states, source, allowed[:, None, None, :])
    torch.testing.assert_close(found, expected, **CLOSE)


@pytest.mark.parametrize("score", ["dot", "scaled-dot", "bilinear"])
def test_fused_is_explicit_in_value_and_gradient(score):
    torch.manual_seed(0)
    layer = Attention(query_width=D, memory_width=D, heads=H, score=score)
    states = torch.randn(B, T, D)
    results = []
    for watcher in (None, lambda weights: weights):
        layer.weights.watcher = watcher
        inputs = states.clone().requires_grad_()
        found = layer(inputs, inputs, causal=True)
        (found**2).sum().backward()
        results.append((found, inputs.grad))
    torch.testing.assert_close(results[0], results[1], **CLOSE)


def test_additive_attention_is_bahdanaus_formula():
    torch.manual_seed(0)
    layer = Attention(query_width=D, memory_width=6, heads=1, score="additive", project=False)
    query, memory = torch.randn(1, 1, D), torch.randn(1, S, 6)
    score = layer.score
    asked = query[0, 0] @ score.query[0] + score.bias[0, 0]
    energies = [score.out[0, 0, :, 0] @ torch.tanh(asked + key @ score.key[0]) for key in memory[0]]
    weights = torch.stack(energies).softmax(0)
    torch.testing.assert_close(layer(query, memory)[0, 0], weights @ memory[0], **CLOSE)


def test_a_sharp_query_looks_up_its_own_key_as_a_dictionary_would():
    keys, values = torch.eye(4) * 100, torch.randn(4, 3)
    found, weights = lookup(keys[[2, 0]], keys, values)
    torch.testing.assert_close(found, values[[2, 0]], **CLOSE)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2))
    mask = torch.tensor([True, True, False, True])
    assert lookup(keys[[2]], keys, values, mask)[1][0, 2] == 0


def test_unprojected_attention_returns_a_mixture_of_the_states_themselves():
    layer = Attention(query_width=D, memory_width=D, heads=1, score="dot", project=False)
    memory = torch.randn(1, S, D)
    same = KeyValues(torch.zeros(1, 1, S, D), memory[:, None])
    torch.testing.assert_close(layer(torch.randn(1, 1, D), same)[0, 0], memory[0].mean(0), **CLOSE)
    assert not list(layer.parameters())
