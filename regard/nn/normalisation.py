"""Normalisation layers."""

from torch import nn


def make_norm(kind: str, width: int, epsilon: float = 1e-5) -> nn.Module:
    """Build LayerNorm (Ba et al., 2016) with this ε, or RMSNorm (Zhang and Sennrich, 2019), over the last axis."""
    return nn.LayerNorm(width, eps=epsilon) if kind == "layer" else nn.RMSNorm(width, eps=1e-6)
