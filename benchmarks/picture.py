"""Pictures of results: bars for programs side by side, lines for growth."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.places import RESULTS

OURS, THEIRS, INK = "#1f6f5c", "#b9c0c7", "#333333"


def bars(groups: Mapping[str, Mapping[str, float | None]], title: str, name: str, *, quick: bool) -> None:
    """A panel of bars for each group; what was not measured has none."""
    plots = _plots()
    shown = {group: {one: value for one, value in values.items() if value} for group, values in groups.items()}
    shown = {group: values for group, values in shown.items() if values}
    if plots is None or not shown:
        return
    tall = max(map(len, shown.values()))
    figure, axes = plots.subplots(1, len(shown), figsize=(4.6 * len(shown), 0.8 + 0.42 * tall), squeeze=False)
    for axis, (group, values) in zip(axes[0], shown.items(), strict=True):
        order = list(reversed(values.items()))
        colours = [OURS if one.startswith("Regard") else THEIRS for one, _ in order]
        drawn = axis.barh([one for one, _ in order], [value for _, value in order], color=colours)
        axis.bar_label(drawn, [_number(value) for _, value in order], padding=3, fontsize=8, color=INK)
        axis.set_xlim(0, 1.2 * max(values.values()))
        axis.set_title(group, fontsize=10, color=INK, loc="left")
        axis.tick_params(axis="y", labelsize=8, length=0)
        axis.xaxis.set_visible(False)
        for side in axis.spines.values():
            side.set_visible(False)
    figure.suptitle(title, fontsize=11, color=INK, x=0.01, ha="left")
    _save(figure, name, quick)


def lines(panels: Sequence[Mapping[str, Any]], name: str, *, quick: bool) -> None:
    """A panel for each law of growth, both axes logarithmic, with the fitted exponent."""
    plots = _plots()
    if plots is None or not panels:
        return
    across = min(4, len(panels))
    down = -(-len(panels) // across)
    figure, axes = plots.subplots(down, across, figsize=(3.6 * across, 2.7 * down), squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, panel in zip(axes.flat, panels, strict=False):
        axis.loglog(panel["x"], panel["y"], "o", color=OURS, markersize=5)
        fitted = [panel["factor"] * x ** panel["exponent"] for x in panel["x"]]
        axis.loglog(panel["x"], fitted, "-", color=OURS, linewidth=1, alpha=0.6)
        law = f"∝ x^{panel['exponent']:.2f} (mathematics: {panel['law']})"
        axis.set_title(f"{panel['title']}\n{law}", fontsize=9, color=INK)
        axis.set_xlabel(panel["x_name"], fontsize=8)
        low, high = min(panel["y"]), max(panel["y"])
        axis.set_ylim(low / 2, high * 2)
        axis.set_xticks(panel["x"], [_short(x) for x in panel["x"]])
        marks = [low / 2, *([low] if high > 1.1 * low else []), high, high * 2]
        axis.set_yticks(marks, [_short(mark) for mark in marks])
        axis.minorticks_off()
        axis.tick_params(labelsize=7)
        axis.grid(alpha=0.25)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    figure.tight_layout()
    _save(figure, name, quick)


def _plots() -> Any:
    """What draws; nothing where it is not installed, and the tables must do."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _save(figure: Any, name: str, quick: bool) -> None:
    from matplotlib import pyplot

    place: Path = RESULTS / "quick" if quick else RESULTS
    place.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(place / f"{name}.png", dpi=150)
    pyplot.close(figure)


def _short(value: float) -> str:
    """A count as it is, another number to three digits; large ones in thousands."""
    if isinstance(value, int) and value < 10_000:
        return f"{value:,}"
    large = value >= 10_000
    return f"{float(f'{value / (1000 if large else 1):.3g}'):,g}{'k' if large else ''}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 20 else f"{value:.2g}"
