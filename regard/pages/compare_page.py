"""The page of `regard compare`: scores, the chart by length, and the outputs of all systems next to each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from regard.pages.modules import bundle, shared_view
from regard.pages.shell import render_page

COLOURS = ("#7d9fc4", "#c0504d", "#1f4e79", "#d08a10", "#4f8f5b", "#7a5195")
DARK = ("#9db8d2", "#e2827f", "#5b9bd5", "#e8b04a", "#7fc08c", "#b792cf")
"""Of the systems in turn, on white and on black."""

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 760, 300, 40, 16, 52
"""Measures of the chart in pixels."""

STEPS = (1, 2, 5, 10, 20, 25, 50, 100, 200, 500, 1000, 10_000)
"""Distances between the lines of the chart."""

START = 'modules["compare"].show(document.querySelector("main"));'


class Word(NamedTuple):
    """A word of an output, or of its reference where the output lacks it."""

    text: str
    kind: Literal["same", "extra", "missing"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a table: a score for each system."""

    name: str
    scores: Sequence[float]
    lines: int | None = None
    """Number of sentences, where it means something."""


@dataclass(frozen=True, kw_only=True)
class Slice:
    """A table of scores: by length, by kind, by frequency."""

    title: str
    rows: Sequence[Row]


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Sentences of similar length: the score of each system and its 95 % interval."""

    name: str
    lines: int
    scores: Sequence[float]
    intervals: Sequence[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Output:
    """What one system made of a sentence."""

    words: Sequence[Word]
    score: float


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A source, its reference, and the outputs of the systems in their order."""

    number: int
    source: str
    reference: str
    outputs: Sequence[Output]

    @property
    def gain(self) -> float:
        """How much better the last system is than the first."""
        return self.outputs[-1].score - self.outputs[0].score

    @property
    def best(self) -> float:
        """The highest score."""
        return max(output.score for output in self.outputs)


@dataclass(frozen=True, kw_only=True)
class ComparisonPage:
    """All that the page shows, as plain data."""

    systems: Sequence[str]
    scores: Sequence[Row]
    """By metric."""
    verdicts: Sequence[str]
    """A sentence for each difference: how large, and whether it is significant."""
    metric: str
    """What the chart shows."""
    sliced_by: str
    """The text whose length the chart goes by: source or reference."""
    bins: Sequence[Bin]
    slices: Sequence[Slice]
    sentences: Sequence[Sentence]
    """Those that are shown."""
    differing: int
    total: int
    signatures: Mapping[str, str]


def render(page: ComparisonPage) -> str:
    """Return the page."""
    script, style = bundle(["compare"], shared_view, START)
    return render_page(
        "compare.html",
        title=" · ".join(page.systems),
        run="",
        script=script,
        style=f"{_colours()}{style}",
        page=page,
        chart=_chart(page.bins),
        colours=len(COLOURS),
    )


def _colours() -> str:
    def variables(colours: Sequence[str]) -> str:
        return " ".join(f"--system-{index}: {colour};" for index, colour in enumerate(colours))

    classes = "\n".join(f".system-{index} {{ --own: var(--system-{index}); }}" for index in range(len(COLOURS)))
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}"
    return f":root {{ {variables(COLOURS)} }}\n{dark}\n{classes}\n"


def _chart(bins: Sequence[Bin]) -> dict[str, Any]:
    """Return the places of all that is drawn in the chart of scores by length."""
    highest = round(max((high for one in bins for _, high in one.intervals), default=0.0), 6)
    step = next(one for one in STEPS if one * 6 >= highest or one == STEPS[-1])
    top = step * max(1, -int(-highest // step))
    foot, apart = HEIGHT - BOTTOM, (WIDTH - LEFT) / max(1, len(bins))

    def x(place: int) -> float:
        return round(LEFT + (place + 0.5) * apart, 1)

    def y(value: float) -> float:
        return round(foot - (foot - TOP) * value / top, 1)

    curves = []
    for system in range(len(bins[0].scores) if bins else 0):
        lows = [f"{x(place)},{y(one.intervals[system][0])}" for place, one in enumerate(bins)]
        highs = [f"{x(place)},{y(one.intervals[system][1])}" for place, one in enumerate(bins)]
        curve = [f"{x(place)},{y(one.scores[system])}" for place, one in enumerate(bins)]
        curves.append({"points": " ".join(curve), "band": " ".join([*lows, *highs[::-1]])})
    columns = []
    for place, one in enumerate(bins):
        room, points = -99.0, []
        for system in sorted(range(len(one.scores)), key=lambda number: -one.scores[number]):
            room = max(room + 14, y(one.scores[system]) - 8)
            points.append({"system": system, "y": y(one.scores[system]), "label": max(12, room)})
        columns.append({"bin": one, "x": x(place), "left": x(place) - apart / 2, "points": points})
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "foot": foot,
        "apart": apart,
        "levels": [{"value": level, "y": y(level)} for level in range(0, top + 1, step)],
        "curves": curves,
        "columns": columns,
    }
