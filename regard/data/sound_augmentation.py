"""Augmentation of training sounds: speed, noise, an equaliser, and masked bands and frames.

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
"""Largest share of the frames that one mask covers; of a long sound at most `MOST_FRAMES`."""
MOST_FRAMES = 100
"""Largest number of frames that one mask covers (one second, as in SpecAugment)."""
GAINS = 4
"""Points of the mel scale at which the equaliser draws a gain."""


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


def equalise(frames: Tensor, decibels: float, random: torch.Generator) -> Tensor:
    """Return frames S×F through a random equaliser, as if another microphone had recorded them.

    The gains at `GAINS` points, evenly spaced on the mel scale, are normal with a standard deviation of `decibels`, and
    linear in between. Levels remain relative to the loudest, and silence stays silence.
    """
    heard = frames > 0
    if not heard.any():
        return frames
    gains = torch.randn(1, 1, GAINS, generator=random) * (decibels / RANGE)
    changed = frames + F.interpolate(gains, size=frames.shape[1], mode="linear", align_corners=True)[0]  # S×F
    return torch.where(heard, changed + (1 - changed[heard].max()), frames).clamp(min=0)


def hide_stretches(frames: Tensor, masks: int, random: torch.Generator) -> Tensor:
    """Return frames S×F with `masks` ranges of bands and as many of frames set to the mean level (SpecAugment)."""
    if not masks:
        return frames
    frames, mean = frames.clone(), frames.mean()
    length, bands = frames.shape
    widest, longest = int(bands * WIDEST_BANDS), min(int(length * LONGEST_FRAMES), MOST_FRAMES)
    for axis, size, most in ((1, bands, widest), (0, length, longest)):
        for _ in range(masks):
            wide = _draw(most + 1, random)
            start = _draw(size - wide + 1, random)
            frames.narrow(axis, start, wide).fill_(mean)
    return frames


def _draw(below: int, random: torch.Generator) -> int:
    return int(torch.randint(below, (), generator=random))
