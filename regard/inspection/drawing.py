"""Attention maps as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.inspection.attention import AttentionMap

INK, PAPER = "#1f2a44", "#ffffff"
SHADES = [PAPER, "#dfe8f6", "#93b4e3", "#3f6fbf", "#16305f"]
CELL = 0.24
"""Inches a token."""


def draw_maps(maps: Sequence["AttentionMap"], path: Path | str, *, title: str | None = None) -> None:
    """Draw attention maps one below the other: source tokens across, target tokens down, dark where it looked."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.colors import LinearSegmentedColormap
        from matplotlib.figure import Figure
    except ImportError:
        raise RegardError('Pictures need matplotlib. Install it with: pip install "regard[plots]"') from None
    shades = LinearSegmentedColormap.from_list("regard", SHADES)
    heights = [len(one.target) * CELL for one in maps]
    left, right, gap, top = 0.7, 0.35, 0.6, 0.85 if title else 0.6
    width = max(len(one.source) for one in maps) * CELL + left + right
    height = sum(heights) + gap * (len(maps) - 1) + top + 0.3
    figure = Figure(figsize=(width, height), facecolor=PAPER)
    FigureCanvasAgg(figure)
    if title:
        figure.text(0.25 / width, 1 - 0.28 / height, title, fontsize=11, fontweight="bold", color=INK, va="center")
    above = top
    for one, tall in zip(maps, heights, strict=True):
        wide = len(one.source) * CELL
        axes = figure.add_axes((left / width, 1 - (above + tall) / height, wide / width, tall / height))
        axes.imshow(one.weights.numpy(), cmap=shades, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        across = _shown(one.source)
        axes.set_xticks(range(len(across)), across)
        axes.set_yticks(range(len(one.target)), _shown(one.target))
        axes.xaxis.tick_top()
        axes.tick_params(length=0, labelsize=9, labelcolor=INK, pad=3)
        if max(map(len, across)) > 3:
            axes.tick_params(axis="x", labelrotation=60)
        axes.set_xticks([x - 0.5 for x in range(1, len(one.source))], minor=True)
        axes.set_yticks([y - 0.5 for y in range(1, len(one.target))], minor=True)
        axes.grid(which="minor", color="#eef1f6", linewidth=0.6)
        axes.tick_params(which="minor", length=0)
        for side in axes.spines.values():
            side.set_color("#c8d0de")
        above += tall + gap
    figure.savefig(path, dpi=160)


def _shown(tokens: Sequence[str]) -> list[str]:
    """Tokens for labels: the end symbol as a return sign, dollar signs as themselves."""
    return [{"</s>": "↵"}.get(token, token).replace("$", r"\$") for token in tokens]
