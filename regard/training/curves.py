"""Plots of loss and scores over the steps of a run."""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.foundation import durable
from regard.metrics.scoring import NAMES

INK, GRID = "#333333", "#e3e3e3"
TRAINING, VALIDATION = "#9db8d2", "#1f4e79"
SCORES = {
    "bleu": "#c0504d",
    "chrf": "#e0a030",
    "meteor": "#e0a030",
    "exact": "#4f8f5b",
    "true": "#2f5fae",
    "f1": "#e0a030",
    "wer": "#c0504d",
    "cer": "#e0a030",
    "accuracy": "#4f8f5b",
    "macro_f1": "#e0a030",
    "span_f1": "#7a5cc0",
    "pearson": "#4f8f5b",
    "spearman": "#e0a030",
}


def can_draw() -> bool:
    """Return whether the `plots` extra is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_curves(
    lines: Sequence[Mapping[str, Any]], path: Path, title: str, *, loss_name: str, best: int | None = None
) -> None:
    """Draw training and validation loss on the left and validation scores on the right."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    train = [line for line in lines if line["kind"] == "train" and line.get("loss") is not None]
    validation = [line for line in lines if line["kind"] == "validation" and line.get("loss") is not None]
    figure = Figure(figsize=(10, 3.8), dpi=144, layout="constrained")
    FigureCanvasAgg(figure)
    scored = [name for name in SCORES if any(line.get(name) is not None for line in validation)]
    left, *rest = figure.subplots(1, 2 if scored else 1, squeeze=False)[0]
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", color=INK)
    nll = [line.get("nll", line["loss"]) for line in train]
    left.plot([line["step"] for line in train], nll, color=TRAINING, linewidth=1.2, label="training")
    _curve(left, validation, "loss", VALIDATION, "validation")
    left.set_ylim(bottom=0)
    left.set_title(f"loss, {loss_name}", loc="left", fontsize=9, color=INK)
    for right in rest:
        for metric in scored:
            _curve(right, validation, metric, SCORES[metric], NAMES[metric])
        right.set_title("validation scores", loc="left", fontsize=9, color=INK)
        right.set_ylim(0, 103)
    last = max((line["step"] for line in lines), default=1)
    for axes in (left, *rest):
        axes.set_xlim(0, last * 1.02)
        _plain(axes, best)
    durable.build(path, lambda aside: figure.savefig(aside, format="png"))


def _curve(axes: Any, lines: Sequence[Mapping[str, Any]], key: str, colour: str, label: str) -> None:
    points = [(line["step"], line[key]) for line in lines if line.get(key) is not None]
    marker = "o" if len(points) <= 25 else None
    axes.plot(*zip(*points, strict=True), color=colour, linewidth=1.8, marker=marker, markersize=3.5, label=label)


def _plain(axes: Any, best: int | None) -> None:
    """Style the axes: no box, a light grid, the best step marked, a legend."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRID)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=8, length=0)
    axes.set_xlabel("step", fontsize=8, color=INK)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if best is not None:
        axes.axvline(best, color=INK, linewidth=0.8, linestyle=(0, (2, 3)))
        axes.annotate(
            "best", (best, 1), xycoords=("data", "axes fraction"), fontsize=7, color=INK, ha="right", va="bottom"
        )
    if axes.lines:
        axes.legend(frameon=False, fontsize=8, labelcolor=INK)
