"""Tokens as vectors.

Axes: B batch, T positions, V vocabulary, E embedding width.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TokenEmbedding(nn.Module):
    """x = √E · W[token], with W drawn at 1/√E: inputs of unit size, and a matrix that can also be the output layer.

    The scaling is that of Vaswani et al. (2017), and lets Press and Wolf's (2017) tying work.
    With `scaled` off there is no √E.
    """

    def __init__(self, vocabulary: int, width: int, *, scaled: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocabulary, width) * width**-0.5)
        self.scale = math.sqrt(width) if scaled else 1.0

    def forward(self, tokens: Tensor) -> Tensor:
        """Vectors …×E of tokens …"""
        return F.embedding(tokens, self.weight) * self.scale
