"""Plots the scores of a sweep: one panel for each score, one bar for each combination of settings."""

from pathlib import Path

from regard.foundation import durable
from regard.training.sweep import SweepResult, short_names

BAR, INK = "#9db8d2", "#333333"


def draw_sweep(result: SweepResult, path: Path) -> None:
    """Draw means with their deviations as a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for row in result.rows for name in row.scores))
    short = dict(zip(result.head, short_names(result.head), strict=True))
    labels = [", ".join(f"{short[key]} {value}" for key, value in row.settings.items()) or "all" for row in result.rows]
    wide = min(0.09 * max(map(len, labels)), 4.0)
    size = (1.2 + wide + 2.8 * len(names), 1.1 + 0.34 * len(labels))
    figure = Figure(figsize=size, dpi=144, layout="constrained")
    FigureCanvasAgg(figure)
    places = range(len(labels))
    for number, (axes, name) in enumerate(zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True)):
        scores = [row.scores.get(name, (0.0, None)) for row in result.rows]
        means = [mean for mean, _ in scores]
        axes.barh(places, means, height=0.62, color=BAR)
        for index, (mean, spread) in enumerate(scores):
            if spread:
                axes.plot([mean - spread, mean + spread], [index, index], color=INK, linewidth=1.6)
        axes.set_yticks(places, labels if number == 0 else [""] * len(labels), fontsize=8, color=INK)
        axes.invert_yaxis()
        axes.set_title(name, loc="left", fontsize=9, color=INK)
        axes.tick_params(labelsize=8, colors=INK, length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.set_xlim(left=0)
    with_seeds = any(row.seeds > 1 for row in result.rows)
    if with_seeds:
        figure.supxlabel("Bars are means over seeds; lines are one standard deviation.", fontsize=7, color=INK)
    durable.build(path, lambda aside: figure.savefig(aside, format="png"))
