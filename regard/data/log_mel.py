"""Acoustic features: resampling, and log-mel energies every 10 ms.

Axes: N samples, S frames, F bands.
"""

from functools import lru_cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float32]
"""N numbers, usually from −1 to 1."""
Frames = NDArray[np.uint8]
"""S×F: levels from 0 (`RANGE` decibels below the loudest, or less) to 255 (the loudest)."""

FRAMES_PER_SECOND = 100
WINDOW = 0.025
"""Length of a frame in seconds."""
RANGE = 60.0
"""Decibels between the lowest level that is represented and the loudest of a sound."""
_CHUNK = 4096
"""Frames that are transformed at once."""


def resample(samples: Samples, rate: int, wanted: int) -> Samples:
    """Return samples at another rate; the spectrum is cut off, or padded with zeros, at half the lower rate."""
    if rate == wanted or not len(samples):
        return samples
    step = rate // gcd(rate, wanted)
    margin = rate // 20  # silence, so that the end does not wrap around to the beginning
    length = -(-(len(samples) + margin) // step) * step
    count = length * wanted // rate
    spectrum = np.fft.rfft(samples, length)[: count // 2 + 1]
    result = np.fft.irfft(spectrum, count) * (count / length)
    return result[: max(1, -(-len(samples) * wanted // rate))].astype(np.float32)


def log_mel(samples: Samples, rate: int, bands: int) -> Frames:
    """Log-energies of mel bands in windows of 25 ms, 10 ms apart, relative to the loudest: S×F, at least one frame."""
    hop, window = rate // FRAMES_PER_SECOND, round(rate * WINDOW)
    size = 1 << (window - 1).bit_length()
    count = 1 + max(0, -(-(len(samples) - window) // hop))
    padded = np.zeros((count - 1) * hop + window, dtype=np.float32)
    _, exponent = np.frexp(np.abs(samples).max(initial=0.0))
    padded[: len(samples)] = np.ldexp(samples, -exponent)  # exact, and energies neither overflow nor vanish
    views = np.lib.stride_tricks.sliding_window_view(padded, window)[::hop]  # S×window
    shape, filters = np.hanning(window).astype(np.float32), mel_filters(rate, size, bands)
    energies = np.empty((count, bands), dtype=np.float32)
    for start in range(0, count, _CHUNK):
        spectrum = np.fft.rfft(views[start : start + _CHUNK] * shape, size)
        energies[start : start + _CHUNK] = (spectrum.real**2 + spectrum.imag**2) @ filters.T
    loudest = float(energies.max())
    if loudest <= 0.0:
        return np.zeros((count, bands), dtype=np.uint8)
    decibels = 10 * np.log10(np.maximum(energies / loudest, 1e-12))  # S×F, from −120 to 0
    levels: Frames = np.rint(255 * np.clip(1 + decibels / RANGE, 0, 1)).astype(np.uint8)
    return levels


@lru_cache(maxsize=8)
def mel_filters(rate: int, size: int, bands: int) -> NDArray[np.float32]:
    """Return triangular filters, evenly spaced on the mel scale: F×(size/2+1), each with sum 1.

    A band that is narrower than the distance between two frequencies takes the nearest one.
    """
    edges = mel_to_hertz(np.linspace(0.0, hertz_to_mel(rate / 2), bands + 2))
    frequencies = np.linspace(0.0, rate / 2, size // 2 + 1)
    low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    filters = np.maximum(0, np.minimum((frequencies - low) / (middle - low), (high - frequencies) / (high - middle)))
    for row, centre in zip(filters, edges[1:-1], strict=True):
        if not row.any():
            row[np.abs(frequencies - centre).argmin()] = 1.0
    return np.asarray(filters / filters.sum(1, keepdims=True), dtype=np.float32)


def hertz_to_mel(hertz: float) -> float:
    """m = 2595 · log₁₀(1 + f / 700)."""
    return float(2595 * np.log10(1 + hertz / 700))


def mel_to_hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    """f = 700 · (10^(m / 2595) − 1)."""
    return np.asarray(700 * (10 ** (mel / 2595) - 1))
