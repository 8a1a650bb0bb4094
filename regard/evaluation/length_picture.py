"""Plot of scores by the length of the source, as in Bahdanau et al. (2015)."""

import importlib.util
import io
from pathlib import Path
from typing import Any

from regard.evaluation.comparison import Comparison
from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command
from regard.metrics.scoring import label
from regard.pages.compare_page import COLOURS

INK, GRID = "#333333", "#e3e3e3"


def draw_by_length(comparison: Comparison, path: Path) -> None:
    """Draw the score of each system by the length of the source, as a PNG file."""
    if importlib.util.find_spec("matplotlib") is None:
        raise RegardError(f"Pictures need matplotlib. Install it with `{install_command('plots')}`.")
    durable.write(path, _png(comparison))


def _png(comparison: Comparison) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.8), dpi=144, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    bins = list(comparison.lengths)
    for index, system in enumerate(comparison.systems):
        values = [comparison.lengths[name][system] for name in bins]
        hue = COLOURS[index % len(COLOURS)]
        lows, highs = zip(*(comparison.bands[name][system] for name in bins), strict=True)
        axes.fill_between(range(len(bins)), lows, highs, color=hue, alpha=0.15, linewidth=0)
        axes.plot(values, color=hue, linewidth=2, marker="o", markersize=4, label=system.replace("$", r"\$"))
    axes.set_xticks(range(len(bins)), [f"{name}\n({comparison.sizes[name]:,})" for name in bins])
    axes.set_title(
        f"{label(comparison.main)} by length of the {comparison.sliced_by}", loc="left", fontsize=11, fontweight="bold"
    )
    axes.set_xlabel(
        f"words in the {comparison.sliced_by} (sentences); shaded: 95 % of resamples", fontsize=8, color=INK
    )
    axes.set_ylim(bottom=0)
    _plain(axes)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRID)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=8, length=0)
    axes.legend(frameon=False, fontsize=8, labelcolor=INK)
