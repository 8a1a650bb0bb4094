"""From pixels to a grid of features: convolutions that halve a picture, or patches cut out of it.

Axes: B batch, C channels, H rows, W columns, S places of the grid (row by row), D width.
"""

import torch.nn.functional as F
from torch import Tensor, nn


class Halving(nn.Module):
    """ReLU(norm(W ∗ x)): windows of 4×4 pixels, two apart, so that rows and columns are halved."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels_in, channels, 4, stride=2, padding=1, bias=False)
        self.norm = nn.GroupNorm(1, channels)  # of each picture by itself: its neighbours must not matter

    def forward(self, features: Tensor) -> Tensor:
        """B×C×H×W to B×C'×H/2×W/2."""
        return F.relu(self.norm(self.convolution(features)))


class Residual(nn.Module):
    """ReLU(x + norm(W ∗ x)): windows of 3×3 around each place (after He et al., 2016)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(1, channels)

    def forward(self, features: Tensor) -> Tensor:
        """B×C×H×W."""
        return F.relu(features + self.norm(self.convolution(features)))


def patches(pixels: Tensor, side: int) -> Tensor:
    """The square pieces of pictures B×C×H×W, row by row, each as one vector: B×S×C·side²."""
    return F.unfold(pixels, side, stride=side).transpose(1, 2)


def places(features: Tensor) -> Tensor:
    """A grid of features B×D×H×W as a row of places: B×S×D."""
    return features.flatten(2).transpose(1, 2)
