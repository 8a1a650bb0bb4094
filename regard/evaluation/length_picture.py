"""The picture that made attention famous: scores by the length of the source (Bahdanau et al., 2015)."""

import importlib.util
import io
from pathlib import Path
from typing import Any

from regard.evaluation.comparison import Comparison
from regard.evaluation.page import escape
from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command
from regard.metrics.scoring import label

INK, GRID = "#333333", "#e3e3e3"
COLOURS = ("#7d9fc4", "#c0504d", "#1f4e79", "#d08a10", "#4f8f5b", "#7a5195")
DARK = ("#9db8d2", "#e2827f", "#5b9bd5", "#e8b04a", "#7fc08c", "#b792cf")
"""Of the systems in turn, on white and on black."""

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 300, 40, 16, 52

STYLE = f"""
:root {{ {" ".join(f"--system-{place}: {colour};" for place, colour in enumerate(COLOURS))} }}
@media (prefers-color-scheme: dark) {{ :root {{
  {" ".join(f"--system-{place}: {colour};" for place, colour in enumerate(DARK))} }} }}
.chart {{ display: block; width: 100%; min-width: 34rem; height: auto; }}
.chart text {{ font: 12px system-ui, sans-serif; fill: var(--ink); }} .chart .count {{ fill: var(--quiet); }}
.chart .grid {{ stroke: var(--line); }} .chart polyline {{ fill: none; stroke-width: 2.5; }}
.chart .value {{ opacity: 0; font-weight: 600; stroke: var(--paper); stroke-width: 4; paint-order: stroke; }}
.chart .reach {{ fill: transparent; }}
.chart .bin:hover .value, .chart .bin:focus .value {{ opacity: 1; }} .chart .bin:focus {{ outline: none; }}
.chart .bin:hover .reach, .chart .bin:focus .reach {{ fill: var(--line); fill-opacity: .35; }}
.legend {{ display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }}
.dot {{ display: inline-block; width: .7rem; height: .7rem; border-radius: 50%; margin-right: .4rem; }}
"""


def colour(place: int) -> str:
    """The colour of a system on a page, by its place."""
    return f"var(--system-{place % len(COLOURS)})"


def draw_by_length(comparison: Comparison, path: Path) -> None:
    """Draw the score of each system by the length of the source, as a PNG file."""
    if importlib.util.find_spec("matplotlib") is None:
        raise RegardError(f"Pictures need matplotlib. Install it with `{install_command('plots')}`.")
    durable.write(path, _png(comparison))


def chart(comparison: Comparison) -> str:
    """The same as SVG for a page: it follows the reader's colours, and a bin tells its scores when pointed at."""
    bins, systems = list(comparison.lengths), comparison.systems
    highest = round(max((high for name in bins for _, high in comparison.bands[name].values()), default=0.0), 6)
    step = next(one for one in (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 10_000) if one * 6 >= highest)
    top = step * max(1, -int(-highest // step))
    foot = HEIGHT - BOTTOM
    apart = (WIDTH - LEFT) / max(1, len(bins))

    def at(place: int) -> float:
        return LEFT + (place + 0.5) * apart

    def down(value: float) -> float:
        return foot - (foot - TOP) * value / top

    drawn = []
    for level in range(0, top + 1, step):
        drawn.append(
            f'<line class=grid x1={LEFT} x2={WIDTH} y1="{down(level):.1f}" y2="{down(level):.1f}" />'
            f'<text class=count x={LEFT - 8} y="{down(level) + 4:.1f}" text-anchor=end>{level}</text>'
        )
    for number, system in enumerate(systems):
        points = " ".join(
            f"{at(place):.1f},{down(comparison.lengths[name][system]):.1f}" for place, name in enumerate(bins)
        )
        drawn.append(f'<polyline points="{points}" style="stroke:{colour(number)}" />')
        edges = [
            f"{at(place):.1f},{down(comparison.bands[name][system][side]):.1f}"
            for side, places in ((0, range(len(bins))), (1, range(len(bins) - 1, -1, -1)))
            for place in places
            for name in [bins[place]]
        ]
        drawn.append(f'<polygon points="{" ".join(edges)}" style="fill:{colour(number)};opacity:.13" />')
    for place, name in enumerate(bins):
        inside = f'<rect class=reach x="{at(place) - apart / 2:.1f}" y=0 width="{apart:.1f}" height={HEIGHT} rx=6 />'
        ranked = sorted(range(len(systems)), key=lambda number: -comparison.lengths[name][systems[number]])
        room = -99.0
        for number in ranked:
            value = comparison.lengths[name][systems[number]]
            room = max(room + 14, down(value) - 8)
            inside += f'<circle cx="{at(place):.1f}" cy="{down(value):.1f}" r=4 style="fill:{colour(number)}" />'
            inside += (
                f'<text class=value x="{at(place) + 9:.1f}" y="{max(12, room):.1f}" '
                f'style="fill:{colour(number)}">{value:.1f}</text>'
            )
        told = ", ".join(f"{system} {comparison.lengths[name][system]:.1f}" for system in systems)
        drawn.append(
            f"<g class=bin tabindex=0><title>{escape(name)} words: {escape(told)}</title>{inside}"
            f'<text x="{at(place):.1f}" y={foot + 20} text-anchor=middle>{escape(name)}</text>'
            f'<text class=count x="{at(place):.1f}" y={foot + 36} text-anchor=middle>'
            f"({comparison.sizes[name]:,})</text></g>"
        )
    legend = "".join(
        f'<span><i class=dot style="background:{colour(number)}"></i>{escape(system)}</span>'
        for number, system in enumerate(systems)
    )
    return (
        f"<p class=legend>{legend}</p><div class=scroll><svg class=chart viewBox='0 0 {WIDTH} {HEIGHT}' role=img "
        f"aria-label='{escape(label(comparison.main))} by length of the {comparison.sliced_by}'>"
        f"{''.join(drawn)}</svg></div><p class=quiet>Words in the {comparison.sliced_by} (sentences): below each "
        "point. Shaded: where 95 % of resamples lie.</p>"
    )


def _png(comparison: Comparison) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.8), dpi=144, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    bins = list(comparison.lengths)
    for place, system in enumerate(comparison.systems):
        values = [comparison.lengths[name][system] for name in bins]
        hue = COLOURS[place % len(COLOURS)]
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
