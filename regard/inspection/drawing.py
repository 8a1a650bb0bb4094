"""Shared parts of pictures: figures, colours, maps of tokens by tokens."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

INK, PAPER, QUIET, LINE = "#1f2a44", "#ffffff", "#667799", "#dde3ee"
SHADES = [PAPER, "#dfe8f6", "#93b4e3", "#3f6fbf", "#16305f"]
SIGNED = ["#7d1f18", "#b0443c", "#e7b3ae", PAPER, "#93b4e3", "#3f6fbf", "#16305f"]
COLOURS = ["#2f5fae", "#c0504d", "#4f8f5b", "#e0a030", "#7a5ea8", "#3a9ea5", "#b0608f", "#7f7f3f"]
"""The same as in `views/kit.js`."""

CELL = 0.24
"""Inches a token."""

KEY = 0.4
"""Inches that a colour key takes below what it explains."""


def new_figure(width: float, height: float, title: str | None = None, **more: Any) -> "Figure":
    """An empty figure of a size in inches; `more` goes to matplotlib's `Figure`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise RegardError(f"Pictures need matplotlib. Install it with `{install_command('plots')}`.") from None
    figure = Figure(figsize=(width, height), facecolor=PAPER, **more)
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(
            title, x=0.01, y=1 - 0.1 / height, va="top", ha="left", fontsize=11, fontweight="bold", color=INK
        )
    return figure


def reserve_title(figure: "Figure") -> None:
    """Keep what a figure lays out by itself clear of its title."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0, 0, 1, 1 - 0.35 / figure.get_figheight()))  # type: ignore[call-arg]


def draw_map(
    axes: "Axes",
    values: Tensor,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    top: float = 1.0,
    signed: bool = False,
) -> None:
    """A matrix rows × columns, dark where it is large; with `signed`, red below zero."""
    low = -top if signed else 0.0
    axes.imshow(values.numpy(), cmap=shades(signed), vmin=low, vmax=top or 1.0, aspect="auto", interpolation="nearest")
    across = token_labels(columns)
    axes.set_xticks(range(len(across)), across)
    axes.set_yticks(range(len(rows)), token_labels(rows))
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=9, labelcolor=INK, pad=3)
    if max(map(len, across), default=0) > 3:
        axes.tick_params(axis="x", labelrotation=60)
        for label in axes.get_xticklabels():
            label.set(ha="left", rotation_mode="anchor")
    axes.set_xticks([x - 0.5 for x in range(1, len(columns))], minor=True)
    axes.set_yticks([y - 0.5 for y in range(1, len(rows))], minor=True)
    axes.grid(which="minor", color="#eef1f6", linewidth=0.6)
    axes.tick_params(which="minor", length=0)
    for side in axes.spines.values():
        side.set_color("#c8d0de")


def draw_key(figure: "Figure", left: float, low: str, high: str, *, signed: bool = False, bottom: float = 0.12) -> None:
    """What the colours of maps mean: a bar of them at a place in inches, between the words for its two ends."""
    width, height = figure.get_size_inches()
    axes = figure.add_axes((left / width, bottom / height, 1.3 / width, 0.11 / height))
    axes.imshow(torch.linspace(0, 1, 128)[None].numpy(), cmap=shades(signed), aspect="auto")
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color("#c8d0de")
    axes.text(-0.04, 0.5, low, transform=axes.transAxes, ha="right", va="center", fontsize=8, color=QUIET)
    axes.text(1.04, 0.5, high, transform=axes.transAxes, ha="left", va="center", fontsize=8, color=QUIET)


def label_height(names: Sequence[str]) -> float:
    """Inches that the names of columns take above a map: they lean, so that long ones need height."""
    return 0.15 + 0.065 * min(max(map(len, names), default=0), 40)


def shades(signed: bool = False) -> "LinearSegmentedColormap":
    """The colours of maps; with `signed`, red below zero."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("regard", SIGNED if signed else SHADES)


def style_axes(axes: "Axes") -> None:
    """Axes of a chart without a box, with a quiet grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=9, labelcolor=INK)


def token_labels(tokens: Sequence[str]) -> list[str]:
    """Return tokens as labels of a picture, with dollar signs escaped, which would start a formula."""
    return [token.replace("$", r"\$") for token in tokens]
