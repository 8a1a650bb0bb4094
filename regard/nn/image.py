"""From pixels to a grid of features: convolutions that halve an image, or its patches.

Axes: B batch, C channels, H rows, W columns, S positions of the grid (row by row), D width.
"""

import torch.nn.functional as F
from torch import Tensor, nn


class Halving(nn.Module):
    """ReLU(norm(W ∗ x)) with a 4×4 kernel and stride 2, which halves rows and columns."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels_in, channels, 4, stride=2, padding=1, bias=False)
        self.norm = nn.GroupNorm(
            1, channels
        )  # normalises each image by itself, so that the rest of the batch has no effect

    def forward(self, features: Tensor) -> Tensor:
        """Map features B×C×H×W to B×C'×H/2×W/2."""
        return F.relu(self.norm(self.convolution(features)))


class Residual(nn.Module):
    """ReLU(x + norm(W ∗ x)) with a 3×3 kernel (after He et al., 2016)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(1, channels)

    def forward(self, features: Tensor) -> Tensor:
        """Map features B×C×H×W to features of the same shape."""
        return F.relu(features + self.norm(self.convolution(features)))


def patches(pixels: Tensor, side: int) -> Tensor:
    """Cut images B×C×H×W into square patches, row by row, each flattened to one vector: B×S×C·side²."""
    return F.unfold(pixels, side, stride=side).transpose(1, 2)


def places(features: Tensor) -> Tensor:
    """Flatten a grid of features B×D×H×W to a sequence of positions: B×S×D."""
    return features.flatten(2).transpose(1, 2)
