"""Token embeddings.

Axes: B batch, T positions, V vocabulary, E embedding width.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TokenEmbedding(nn.Module):
    """x = √E · W[token], where W is initialised with standard deviation 1/√E.

    The scaling (Vaswani et al., 2017) gives inputs of unit variance, and a matrix that can be tied to the output layer
    (Press and Wolf, 2017). With `scaled` off there is no √E.
    """

    def __init__(self, vocabulary: int, width: int, *, scaled: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocabulary, width) * width**-0.5)
        self.scale = math.sqrt(width) if scaled else 1.0

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vectors …×E of tokens …"""
        return F.embedding(tokens, self.weight) * self.scale
