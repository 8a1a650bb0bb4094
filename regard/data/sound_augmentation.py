"""Augmentation of training sounds: speed, noise, and masked bands and frames.

Axes: S frames, F bands. Frames are levels from 0, `RANGE` decibels below the loudest, to 1.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.log_mel import RANGE, hertz_to_mel, mel_to_hertz

WIDEST_BANDS = 0.2
"""Largest share of the bands that one mask covers."""
LONGEST_FRAMES = 0.1
"""Largest share of the frames that one mask covers."""


def change_speed(frames: Tensor, rate: int, factor: float) -> Tensor:
    """Return the frames S×F of a sound played `factor` times as fast, which raises its frequencies as well."""
    length, bands = frames.shape
    edges = np.linspace(0.0, hertz_to_mel(rate / 2), bands + 2)
    sources = [hertz_to_mel(hertz / factor) for hertz in mel_to_hertz(edges[1:-1])]  # source of each band
    places = torch.tensor(sources, dtype=torch.float32) / float(edges[1]) - 1  # F, in bands
    low = places.floor().clamp(0, bands - 1).long()
    high = (low + 1).clamp(max=bands - 1)
    share = (places - low).clamp(0, 1)
    shifted = frames[:, low] * (1 - share) + frames[:, high] * share  # S×F
    count = max(1, round(length / factor))
    stretched = F.interpolate(shifted.T[None], size=count, mode="linear", align_corners=False)  # 1×F×S'
    return stretched[0].T


def add_noise(frames: Tensor, decibels: float, random: torch.Generator) -> Tensor:
    """Return frames S×F with added noise whose mean level is `decibels` below the loudest; energies are summed."""
    noise = torch.empty_like(frames).exponential_(generator=random) * 10 ** (-decibels / 10)
    energies = 10 ** ((frames - 1) * (RANGE / 10)) + noise
    return (1 + 10 * torch.log10(energies) / RANGE).clamp(0, 1)


def hide_stretches(frames: Tensor, masks: int, random: torch.Generator) -> Tensor:
    """Return frames S×F with `masks` ranges of bands and as many of frames set to the mean level (SpecAugment)."""
    if not masks:
        return frames
    frames, mean = frames.clone(), frames.mean()
    for axis, share in ((1, WIDEST_BANDS), (0, LONGEST_FRAMES)):
        size = frames.shape[axis]
        for _ in range(masks):
            wide = _draw(int(size * share) + 1, random)
            start = _draw(size - wide + 1, random)
            frames.narrow(axis, start, wide).fill_(mean)
    return frames


def _draw(below: int, random: torch.Generator) -> int:
    return int(torch.randint(below, (), generator=random))
