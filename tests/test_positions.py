"""Positions: what each kind promises about distance, length and order."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.nn.attention import Attention, KeyValues
from regard.nn.positions import Alibi, Learned, Rotary, Sinusoidal, make_distances, sinusoids


def scores(layer: Attention, query: torch.Tensor, key: torch.Tensor, i: int, j: int) -> float:
    """The score of a query standing at i and a key standing at j."""
    q = layer.distances.rotate(query.view(1, 1, 1, -1), i)
    k = layer.distances.rotate(key.view(1, 1, 1, -1), j)
    shift = layer.distances.shift(query.view(1, 1, 1, -1), i, j + 1)
    return float((q * k).sum()) + (0.0 if shift is None else float(shift[..., 0, j].flatten()[0]))


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(["relative", "bias", "rotary", "alibi"]),
    st.integers(0, 200),
    st.integers(0, 200),
    st.integers(0, 300),
    st.sampled_from([1.0, 2.0, 8.0]),
)
def test_scores_depend_on_distance_only(kind, i, j, moved, ntk):
    torch.manual_seed(i)
    inside = make_distances(kind, heads=1, width=8, max_distance=16, ntk=ntk)
    for parameter in inside.parameters():
        torch.nn.init.normal_(parameter)
    layer = Attention(query_width=8, memory_width=8, heads=1, score="dot", project=False, distances=inside)
    query, key = torch.randn(8), torch.randn(8)
    with torch.no_grad():
        assert scores(layer, query, key, i, j) == pytest.approx(
            scores(layer, query, key, i + moved, j + moved), abs=2e-3, rel=1e-3
        )


def test_sinusoids_are_the_papers_formula():
    table = sinusoids(50, 16)
    for t in (0, 1, 7, 49):
        for i in range(8):
            angle = t / 10_000 ** (2 * i / 16)
            assert table[t, i] == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[t, 8 + i] == pytest.approx(math.cos(angle), abs=1e-6)


def test_position_tables_grow_as_far_as_they_are_needed():
    places = Sinusoidal(16)
    torch.testing.assert_close(places(1000, 24), sinusoids(1024, 16)[1000:])
    torch.testing.assert_close(places(0, 3), sinusoids(3, 16))
    turning, vectors = Rotary(8), torch.randn(1, 1, 500, 8)
    whole = turning.rotate(vectors, 0)
    torch.testing.assert_close(Rotary(8).rotate(vectors[:, :, 400:], 400), whole[:, :, 400:])


def test_learned_positions_end_where_they_end():
    places = Learned(10, 4)
    assert places(3, 7).shape == (7, 4)
    with pytest.raises(ValueError, match="end at 10"):
        places(4, 7)


def test_rotation_keeps_lengths():
    vectors = torch.randn(2, 3, 40, 8)
    torch.testing.assert_close(Rotary(8).rotate(vectors, 5).norm(dim=-1), vectors.norm(dim=-1))


def test_ntk_scaling_stretches_the_slowest_rotation_by_its_factor_and_leaves_the_fastest():
    plain, stretched = Rotary(16).rates, Rotary(16, ntk=4.0).rates
    assert stretched[0] == plain[0]
    assert float(plain[-1] / stretched[-1]) == pytest.approx(4.0)


def test_alibi_has_the_papers_slopes_and_punishes_distance():
    alibi = Alibi(8)
    torch.testing.assert_close(alibi.slopes.flatten(), torch.tensor([2.0**-h for h in range(1, 9)]))
    shift = alibi.shift(torch.zeros(1, 8, 1, 4), 5, 6)
    assert (shift.diff(dim=-1) > 0).all()


def test_far_distances_share_one_relative_vector():
    relative = make_distances("relative", heads=1, width=4, max_distance=2, ntk=1.0)
    shift = relative.shift(torch.randn(1, 1, 1, 4), 0, 6)[0, 0, 0]
    assert shift[2] == shift[3] == shift[5] and shift[1] != shift[2]


@torch.no_grad()
def test_relative_vectors_are_added_to_keys_and_biases_to_scores():
    torch.manual_seed(0)
    width, length, most = 8, 7, 3
    states, identity = torch.randn(length, width), torch.eye(length)
    for kind in ("relative", "bias"):
        inside = make_distances(kind, heads=1, width=width, max_distance=most, ntk=1.0)
        torch.nn.init.normal_(inside.weight)
        layer = Attention(query_width=8, memory_width=8, heads=1, score="scaled-dot", project=False, distances=inside)
        expected = torch.zeros(length, length)
        for i in range(length):
            for j in range(length):
                apart = max(-most, min(most, j - i)) + most
                met = states[j] + inside.weight[apart] if kind == "relative" else states[j]
                expected[i, j] = states[i] @ met / math.sqrt(width)
                expected[i, j] += inside.weight[0, apart] if kind == "bias" else 0.0
        expected = expected.softmax(-1)
        memory = KeyValues(states[None, None], identity[None, None])
        torch.testing.assert_close(layer(states[None], memory)[0], expected)
        for i in range(length):  # one query at a time, which stands at i
            known = KeyValues(states[None, None], identity[None, None], query_position=i)
            torch.testing.assert_close(layer(states[None, i : i + 1], known)[0, 0], expected[i])
