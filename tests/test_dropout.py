"""Dropout is dropout, whatever it costs."""

import pytest
import torch

from regard.nn.dropout import Dropout, kept


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 0.9])
def test_as_many_are_dropped_as_the_probability_says_and_the_mean_stays(probability):
    torch.manual_seed(1)
    mask = kept(torch.Size([500, 1001]), probability)
    dropped = (mask == 0).double().mean().item()
    spread = (probability * (1 - probability) / mask.numel()) ** 0.5
    assert abs(dropped - probability) < 5 * spread
    assert mask.unique().numel() == 2
    assert mask.max().item() == pytest.approx(1 / (1 - probability), rel=1e-3)


def test_neighbours_that_share_a_draw_are_dropped_independently():
    torch.manual_seed(2)
    dropped = (kept(torch.Size([400_000]), 0.3).view(-1, 4) == 0).double()
    correlations = torch.corrcoef(dropped.t()) - torch.eye(4)
    assert correlations.abs().max() < 5 / 100_000**0.5


def test_the_gradient_passes_where_the_state_did():
    torch.manual_seed(3)
    states = torch.randn(7, 13, requires_grad=True)
    out = Dropout(0.4)(states)
    out.sum().backward()
    torch.testing.assert_close(states.grad, (out / states).detach())


def test_the_same_seed_drops_the_same_and_nothing_is_dropped_in_use():
    layer, states = Dropout(0.4), torch.randn(5, 3)
    torch.manual_seed(4)
    once = layer(states)
    torch.manual_seed(4)
    assert torch.equal(layer(states), once)
    assert layer.eval()(states) is states
    assert Dropout(0.0)(states) is states
