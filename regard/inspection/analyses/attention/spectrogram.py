"""Spectrograms, and what a model listened to in them, on one axis of time.

Axes: S frames, F bands, W words, P positions of the encoder.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from regard.inspection.drawing import INK, LINE, QUIET, new_figure, shades, token_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from PIL.Image import Image

HIGH = 4
"""Pixels for each mel band of a spectrogram."""
ROW = 0.3
"""Inches for each word."""
SPECTROGRAM = 1.6
"""Inches of the height of a spectrogram."""
PER_SECOND, WIDTHS = 2.5, (6.0, 16.0)
"""Inches for a second of sound, and the smallest and largest width of a drawing."""


def draw_spectrogram(frames: Tensor, count: int | None = None) -> "Image":
    """Return log-mel features S×F as an image of `count` frames: time goes right, low tones are at the bottom."""
    from PIL import Image

    values = frames.float().T.flip(0)  # F×S
    low, high = values.quantile(0.02), values.quantile(0.995)
    loud = ((values - low) / (high - low).clamp(min=1e-6)).clamp(0, 1)
    loud = torch.nn.functional.pad(loud, (0, max(0, (count or 0) - loud.shape[1])))
    dots = (255 * (1 - loud)).to(torch.uint8).numpy()
    wide = max(320, min(1200, 3 * dots.shape[1]))
    return Image.fromarray(dots, "L").resize((wide, HIGH * dots.shape[0]), Image.Resampling.NEAREST).convert("RGB")


def draw_listening(
    image: "Image", seconds: float, words: Sequence[str], weights: Tensor | None, title: str | None = None
) -> "Figure":
    """Draw a spectrogram, and below it, for each word, where the model listened: W×P, each row on its own scale."""
    rows = len(words) if weights is not None else 0
    width = min(max(WIDTHS[0], 1 + PER_SECOND * seconds), WIDTHS[1])
    head, gap, foot = 0.5 if title else 0.2, 0.15 if rows else 0.0, 0.55
    height = head + SPECTROGRAM + gap + ROW * rows + foot
    figure = new_figure(width, height, title)
    left = 0.3 + 0.09 * min(max(map(len, words), default=0), 30)
    across = (width - left - 0.3) / width
    bottom = foot + ROW * rows + gap
    upper = figure.add_axes((left / width, bottom / height, across, SPECTROGRAM / height))
    upper.imshow(np.asarray(image), extent=(0, seconds, 0, 1), aspect="auto")
    upper.set_yticks([])
    timed = upper
    if rows and weights is not None:
        timed = figure.add_axes((left / width, foot / height, across, ROW * rows / height))
        shares = weights / weights.amax(1, keepdim=True).clamp(min=1e-9)
        extent = (0, seconds, rows - 0.5, -0.5)
        timed.imshow(
            shares.numpy(), cmap=shades(), vmin=0, vmax=1, extent=extent, aspect="auto", interpolation="nearest"
        )
        timed.set_yticks(range(rows), token_labels(words))
        timed.set_yticks([row + 0.5 for row in range(rows - 1)], minor=True)
        timed.grid(which="minor", axis="y", color=LINE, linewidth=0.8)
        upper.set_xticks([])
    timed.tick_params(axis="x", length=3, color=QUIET)
    timed.tick_params(axis="y", which="both", length=0)
    timed.tick_params(labelsize=9, labelcolor=INK)
    timed.set_xlabel("seconds", fontsize=9, color=INK)
    for axes in (upper, timed):
        for side in axes.spines.values():
            side.set_color(QUIET)
            side.set_linewidth(0.5)
    return figure
