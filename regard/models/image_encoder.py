"""Image encoders: a grid of feature vectors, one for each position of the image.

Axes: B batch, H rows and W columns of pixels, S positions of the grid (row by row), D width.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import resolved
from regard.models.encoders import Encoder, TransformerEncoderLayer
from regard.models.memory import Memory
from regard.nn.dropout import Dropout
from regard.nn.image import Halving, Residual, patches, places
from regard.nn.normalisation import make_norm
from regard.nn.stack import Stack
from regard.nn.taps import Tap


class ImageEncoder(Encoder):
    """Encodes pixels B×3×H×W (numbers from −1 to 1) as `Memory` without padding, whose summary is the mean state.

    Each position has a learned embedding that is added to its features, so that a decoder can tell positions apart.
    """

    reads_tokens = False

    def __init__(self, cell: config.Model, part: config.ImageEncoder) -> None:
        super().__init__()
        self.size, self.grid = part.size, part.grid
        rows, columns = part.grid
        self.places = nn.Parameter(0.1 * torch.randn(rows * columns, resolved(part.width)))  # S×D
        self.dropout = Dropout(cell.dropout)
        self.states = Tap(time=1)

    def forward(self, pixels: Tensor) -> Memory:  # type: ignore[override]
        """Encode pixels B×3×H×W."""
        states = self.states(self.look(pixels))  # B×S×D
        mask = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
        return Memory(states, mask, self.summary(states.mean(1)))

    def look(self, pixels: Tensor) -> Tensor:
        """Compute the features of each position: B×S×D."""
        raise NotImplementedError


class ConvImageEncoder(ImageEncoder):
    """Convolutions that halve the image until a position covers one patch, followed by residual convolutions."""

    def __init__(self, cell: config.Model, part: config.ImageEncoder) -> None:
        super().__init__(cell, part)
        width, times = resolved(part.width), part.patch.bit_length() - 1
        channels = [3, *(max(4, width >> left) for left in range(times - 1, 0, -1)), width]
        self.halvings = Stack(Halving(*pair) for pair in pairwise(channels))
        self.layers = Stack(Residual(width) for _ in range(part.layers))

    def look(self, pixels: Tensor) -> Tensor:
        """Compute the features of each position: B×S×D."""
        features = pixels
        for halving in self.halvings:
            features = halving(features)
        for layer in self.layers:
            features = layer(features)
        found: Tensor = self.dropout(places(features) + self.places)  # B×S×D
        return found


class PatchImageEncoder(ImageEncoder):
    """A Transformer encoder over image patches (Dosovitskiy et al., 2021)."""

    def __init__(self, cell: config.Model, part: config.ImageEncoder, name: str) -> None:
        super().__init__(cell, part)
        width = resolved(part.width)
        layers = config.TransformerEncoder(layers=part.layers, width=width, feed_forward=4 * width)
        unplaced = cell.model_copy(update={"positions": config.Positions(kind="none")})  # `places` are its positions
        self.patch = part.patch
        self.entrance = nn.Linear(3 * part.patch**2, width)
        self.layers = Stack(
            TransformerEncoderLayer(unplaced, layers, f"{name}.layers.{depth}") for depth in range(part.layers)
        )
        self.norm = make_norm(layers.norm, width, cell.norm_epsilon)

    def look(self, pixels: Tensor) -> Tensor:
        """Compute the features of each position: B×S×D."""
        states = self.dropout(self.entrance(patches(pixels, self.patch)) + self.places)  # B×S×D
        for layer in self.layers:
            states = layer(states, None)
        found: Tensor = self.norm(states)
        return found


def make_image_encoder(
    cell: config.Model, part: config.ImageEncoder, *, name: str = "encoder", drop_states: bool = True
) -> ImageEncoder:
    """Build the image encoder of a configuration section; `name` is its path in the model."""
    return ConvImageEncoder(cell, part) if part.form == "conv" else PatchImageEncoder(cell, part, name)
