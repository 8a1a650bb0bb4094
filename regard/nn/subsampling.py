"""Subsampling of audio frames by convolutions over time and frequency.

Axes: B batch, C channels, S frames, F bands, D width.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FACTOR = 4
"""Frames that become one position."""
SMALLEST_VARIANCE = 0.01
"""Is added to the variance of each band or frame, so that those without a signal are not amplified."""

LARGEST_RAISE = 0.5
"""Quiet stretches are raised by at most this share of the range of levels."""
STRETCH = 51
"""Frames among which the loudest decides how far the one in the middle is raised."""


def subsampled_length(frames: int) -> int:
    """Return the number of positions that `frames` frames become."""
    return -(-frames // FACTOR)


class Subsampling(nn.Module):
    """W · ReLU(K₂ ∗ ReLU(K₁ ∗ x)): two 3×3 convolutions with stride 2, each of which halves time and frequency.

    With `pool_bands`, the stride is 2 over time alone. Each frame is normalised after the convolution (Ba et al.,
    2016), and the larger of two neighbouring bands remains (max pooling over frequency, Abdel-Hamid et al., 2014), so
    that a vowel of a shorter vocal tract, a band or two higher, gives similar features. The second convolution then has
    twice the channels.

    Frames after the end of a row are set to zero before each convolution, so that padding has no effect.
    """

    def __init__(self, bands: int, channels: int, width: int, *, pool_bands: bool = False) -> None:
        super().__init__()
        last = 2 * channels if pool_bands else channels
        stride = (2, 1) if pool_bands else 2
        self.first = nn.Conv2d(1, channels, 3, stride=stride, padding=1)
        self.second = nn.Conv2d(channels, last, 3, stride=stride, padding=1)
        self.norms = nn.ModuleList(FrameNorm(count) for count in (channels, last) if pool_bands)
        self.linear = nn.Linear(last * subsampled_length(bands), width)
        for layer in (self.first, self.second, self.linear):  # keeps the variance (He et al., 2015)
            nn.init.kaiming_normal_(layer.weight, nonlinearity="linear" if layer is self.linear else "relu")
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
        # DDP expects the strides of its gradient, which are these. In memory nothing moves, since it reads one channel.
        self.first.weight.data = self.first.weight.data.to(memory_format=torch.channels_last)

    def forward(self, frames: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Map frames B×S×F with mask B×S (true at real frames) to vectors B×⌈S/4⌉×D with mask B×⌈S/4⌉."""
        features = (frames * mask[:, :, None])[..., None]  # B×S×F×1; channels last is fastest on a CPU
        for depth, convolution in enumerate((self.first, self.second)):
            mask = mask[:, ::2]  # a position is real if the first of its two frames is
            channels_first = features.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
            features = convolution(channels_first).permute(0, 2, 3, 1)  # B×S'×F'×C
            if self.norms:
                features = larger_neighbours(self.norms[depth](features))
            features = F.relu(features) * mask[:, :, None, None]
        vectors: Tensor = self.linear(features.transpose(2, 3).flatten(2))  # B×S/4×D
        return vectors, mask


def larger_neighbours(features: Tensor) -> Tensor:
    """Return the larger of two neighbouring bands of features B×S×F×C: B×S×⌈F/2⌉×C.

    max(a, b) is computed as a + ReLU(b − a), whose backward pass takes a third of the time of max pooling.
    """
    if features.shape[2] % 2:
        features = torch.cat([features, features[:, :, -1:]], dim=2)
    low, high = features[:, :, 0::2], features[:, :, 1::2]
    return low + F.relu(high - low)


class FrameNorm(nn.Module):
    """Normalises each frame of features B×S×F×C to mean 0 and variance 1 over bands and channels, then scales channels.

    No frame depends on another, so padding has no effect.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, features: Tensor) -> Tensor:
        """Normalise features B×S×F×C."""
        shape = features.shape[2:]  # the same scale and shift for every band
        return F.layer_norm(features, shape, self.weight.expand(shape), self.bias.expand(shape), SMALLEST_VARIANCE)


def even_loudness(frames: Tensor) -> Tensor:
    """Return frames B×S×F, levels from 0 to 1, in which quiet stretches are raised to the loudness of the others.

    A level x becomes x + min(x, r), where r is the distance from the loudest level of the half second around it to 1.
    Silence, also that of padding, stays silence.
    """
    around = F.max_pool1d(frames.amax(2)[:, None], STRETCH, stride=1, padding=STRETCH // 2)  # B×1×S
    raised = (1 - around).clamp(0, LARGEST_RAISE).transpose(1, 2)  # B×S×1
    return frames + torch.minimum(frames, raised)


def standardise_bands(frames: Tensor, mask: Tensor) -> Tensor:
    """Return frames B×S×F with mean 0 and variance 1 in each band of each sound.

    Frames are weighted by the square of their mean level, so that pauses have little influence. This is cepstral mean
    and variance normalisation (Viikki and Laurila, 1998), of log-energies.
    """
    weights = (frames.mean(2, keepdim=True) * mask[:, :, None]).square()  # B×S×1
    weights = weights / weights.sum(1, keepdim=True).clamp(min=1e-6)
    centre = (frames * weights).sum(1, keepdim=True)  # B×1×F
    variance = ((frames - centre).square() * weights).sum(1, keepdim=True)
    return (frames - centre) / (variance + SMALLEST_VARIANCE).sqrt()


def pad_frames(rows: list[Tensor]) -> Tensor:
    """Pad the frames S×F of several sounds to one tensor B×S×F+1; the last number of each real frame is 1."""
    longest, bands = max(map(len, rows)), rows[0].shape[1]
    padded = torch.zeros(len(rows), longest, bands + 1)
    for row, frames in zip(padded, rows, strict=True):
        row[: len(frames), :bands] = frames
        row[: len(frames), bands] = 1.0
    return padded
