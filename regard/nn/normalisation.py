"""Norms that keep the size of states in hand."""

from torch import nn


def make_norm(kind: str, width: int) -> nn.Module:
    """LayerNorm (Ba et al., 2016) or RMSNorm (Zhang and Sennrich, 2019) over the last axis."""
    return nn.LayerNorm(width) if kind == "layer" else nn.RMSNorm(width, eps=1e-6)
