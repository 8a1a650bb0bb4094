"""What the pictures of all analyses share: a figure, its ink, a map of tokens by tokens."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.errors import RegardError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, PAPER, QUIET, LINE = "#1f2a44", "#ffffff", "#667799", "#dde3ee"
SHADES = [PAPER, "#dfe8f6", "#93b4e3", "#3f6fbf", "#16305f"]
SIGNED = ["#7d1f18", "#b0443c", "#e7b3ae", PAPER, "#93b4e3", "#3f6fbf", "#16305f"]
COLOURS = ["#2f5fae", "#c0504d", "#4f8f5b", "#e0a030", "#7a5ea8", "#3a9ea5", "#b0608f", "#7f7f3f"]
"""The same as in `views/kit.js`."""

CELL = 0.24
"""Inches a token."""


def blank(width: float, height: float, title: str | None = None, **more: Any) -> "Figure":
    """An empty figure of a size in inches; `more` goes to matplotlib's `Figure`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise RegardError('Pictures need matplotlib. Install it with: pip install "regard[plots]"') from None
    figure = Figure(figsize=(width, height), facecolor=PAPER, **more)
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(
            title, x=0.01, y=1 - 0.1 / height, va="top", ha="left", fontsize=11, fontweight="bold", color=INK
        )
    return figure


def below_title(figure: "Figure") -> None:
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
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("regard", SIGNED if signed else SHADES)
    low = -top if signed else 0.0
    axes.imshow(values.numpy(), cmap=shades, vmin=low, vmax=top or 1.0, aspect="auto", interpolation="nearest")
    across = labels(columns)
    axes.set_xticks(range(len(across)), across)
    axes.set_yticks(range(len(rows)), labels(rows))
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


def plain(axes: "Axes") -> None:
    """Axes of a chart without a box, with a quiet grid."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=9, labelcolor=INK)


def labels(tokens: Sequence[str]) -> list[str]:
    """Tokens for labels: the end symbol as a return sign, dollar signs as themselves."""
    return [{"</s>": "↵"}.get(token, token).replace("$", r"\$") for token in tokens]
