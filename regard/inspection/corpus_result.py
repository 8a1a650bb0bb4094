"""The result of an analysis over a corpus: means by group, with intervals over sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from regard.foundation.display import columns
from regard.inspection.corpus_means import Chart, Grouping, GroupMeans, Observations
from regard.inspection.drawing import COLOURS, INK, QUIET, new_figure, reserve_title, style_axes, token_labels
from regard.inspection.examples import Examples
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.metrics.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INTERVALS = (
    "A mean is over the tokens of a group; its 95 % interval is from a bootstrap over whole sentences, because tokens "
    "of one sentence are not independent. With few sentences an interval is itself uncertain, and "
    "one from 0 to 0 only says that these sentences had none."
)
UNTAGGED = (
    "Word classes need no tagger; a token has the first that applies: punctuation, number, copied (the word is in the "
    "source as it is), word-internal piece, and then frequent (the most frequent tokens that together are half of the "
    "target side of the training data) or rare."
)
UNCOUNTED = "Frequent and rare words are not distinguished, because the run no longer has its training data."
TAGGED = (
    "The word class of an output word is the part of speech of the reference word at the same place by edit distance."
)
ERRORS = (
    "Output and reference are aligned by the fewest word edits: a word is correct, substituted, or inserted; words "
    "that the output lacks belong to its sentence."
)


@dataclass(frozen=True, repr=False)
class CorpusMeans(Result):
    """What an analysis of one output shows, as means over the outputs for a corpus."""

    heading: str
    note: str
    """How to read the measures."""
    corpus: str
    reference: str | None
    sentences: int
    left_out: dict[str, int]
    """Reasons, and how many examples were left out for each."""
    charts: list[Chart]
    overall: GroupMeans
    groupings: list[Grouping]
    classes: str
    """What the word classes are."""

    @classmethod
    def of(cls, heading: str, note: str, examples: Examples, seen: Observations, *, counted: bool) -> Self:
        """Build the result of some observations; `counted` if training frequencies are known."""
        left_out = {reason: count for reason, count in examples.left_out.items() if count}
        classes = TAGGED if examples.has_tags else UNTAGGED if counted else f"{UNTAGGED} {UNCOUNTED}"
        overall = seen.overall()
        return cls(
            heading,
            note,
            examples.corpus,
            examples.reference,
            overall.sentences,
            left_out,
            seen.charts,
            overall,
            seen.groupings(),
            classes,
        )

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"{self.heading}, over {self.sentences:,} sentences"

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{self.overall.tokens:,} tokens, {len(self.groupings)} groupings"

    @property
    def measures(self) -> list[str]:
        """The names of all measures, in the order of means and intervals."""
        return [measure for chart in self.charts for measure in chart.measures]

    def to_json(self) -> dict[str, Any]:
        """Return every mean and interval as plain data."""
        starts = self._starts()
        return {
            "title": self.heading,
            "corpus": self.corpus,
            "reference": self.reference,
            "sentences": self.sentences,
            "left_out": [{"reason": reason, "examples": count} for reason, count in self.left_out.items()],
            "explanation": self._explanation(),
            "charts": [
                {
                    "title": chart.title,
                    "unit": chart.unit,
                    "by_layer": chart.by_layer,
                    "start": start,
                    "measures": list(chart.measures),
                }
                for start, chart in zip(starts, self.charts, strict=True)
            ],
            "overall": _data(self.overall),
            "groupings": [
                {"name": grouping.name, "groups": [_data(group) for group in grouping.groups]}
                for grouping in self.groupings
            ],
        }

    def _starts(self) -> list[int]:
        """Return the place of the first measure of each chart."""
        sizes = [len(chart.measures) for chart in self.charts]
        return [sum(sizes[:index]) for index in range(len(sizes))]

    def _explanation(self) -> str:
        return " ".join(
            sentence for sentence in (self.note, INTERVALS, self.classes, self.reference and ERRORS) if sentence
        )

    def __str__(self) -> str:
        """Return a table for each chart: a row for each group, a column for each measure."""
        parts = []
        for start, chart in zip(self._starts(), self.charts, strict=True):
            rows = [["", "tokens", "sentences", *chart.measures]]
            for name, groups in (
                ("", [self.overall]),
                *((grouping.name, grouping.groups) for grouping in self.groupings),
            ):
                rows += [[f"by {name}:", *[""] * (2 + len(chart.measures))]] if name else []
                for group in groups:
                    cells = [_cell(group, start + index) for index in range(len(chart.measures))]
                    label = f"  {group.name}" if name else group.name
                    rows.append([label, f"{group.tokens:,}", f"{group.sentences:,}", *cells])
            unit = f" ({chart.unit})" if chart.unit else ""
            parts.append(f"{chart.title}{unit}\n\n{columns(rows, right=range(1, 3 + len(chart.measures)))}")
        parts.append(self._explanation())
        if self.left_out:
            lines = [f"  {count:,}: {reason}" for reason, count in self.left_out.items()]
            parts.append("\n".join(["Left out:", *lines[:5], *(["  …"] if len(lines) > 5 else [])]))
        return "\n\n".join(parts)

    def draw(self) -> "Figure":
        """Draw bars with intervals for single measures, and curves by word class for those of layers."""
        rows: list[tuple[str, GroupMeans]] = [("all", self.overall)]
        rows += [(f"{grouping.name}: {group.name}", group) for grouping in self.groupings for group in grouping.groups]
        bars = [
            (f"{chart.title}: {name}" if len(chart.measures) > 1 else chart.title, start + index)
            for start, chart in zip(self._starts(), self.charts, strict=True)
            if not chart.by_layer
            for index, name in enumerate(chart.measures)
        ]
        curves = [(start, chart) for start, chart in zip(self._starts(), self.charts, strict=True) if chart.by_layer]
        count = len(bars) + len(curves)
        across = min(count, 3)
        down = -(-count // across)
        figure = new_figure(5.6 * across, (0.9 + 0.24 * len(rows)) * down + 0.4, self.title, layout="constrained")
        reserve_title(figure)
        every = figure.subplots(down, across, squeeze=False).flatten()
        for axes, (name, measure) in zip(every, bars, strict=False):
            _draw_bars(axes, name, rows, measure)
        for axes, (start, chart) in zip(every[len(bars) :], curves, strict=False):
            _draw_curves(axes, chart, [self.overall, *self.groupings[0].groups], start)
        for axes in every[count:]:
            axes.axis("off")
        return figure

    def panels(self) -> list[Panel]:
        """Return bars, or curves by layer, with a table of every number."""
        return [Panel("corpus_means", self.to_json(), note=self._explanation())]


def _data(group: GroupMeans) -> dict[str, Any]:
    return {
        "name": group.name,
        "tokens": group.tokens,
        "sentences": group.sentences,
        "counts": group.counts,
        "means": group.means,
        "intervals": [None if interval is None else list(interval) for interval in group.intervals],
    }


def _cell(group: GroupMeans, measure: int) -> str:
    mean, interval = group.means[measure], group.intervals[measure]
    if mean is None:
        return "–"
    return _number(mean) if interval is None else f"{_number(mean)} ({' to '.join(map(_number, interval))})"


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00")


def _draw_bars(axes: "Axes", name: str, rows: Sequence[tuple[str, GroupMeans]], measure: int) -> None:
    means = [group.means[measure] or 0.0 for _, group in rows]
    ends: list[Interval] = [
        group.intervals[measure] or (mean, mean) for (_, group), mean in zip(rows, means, strict=True)
    ]
    axes.barh(range(len(rows)), means, color=COLOURS[0], height=0.65)
    spread = [[mean - low for mean, (low, _) in zip(means, ends, strict=True)]]
    spread.append([high - mean for mean, (_, high) in zip(means, ends, strict=True)])
    axes.errorbar(means, list(range(len(rows))), xerr=spread, fmt="none", ecolor=QUIET, elinewidth=1, capsize=2)
    axes.set_yticks(range(len(rows)), token_labels([label for label, _ in rows]))
    axes.invert_yaxis()
    style_axes(axes)
    axes.grid(visible=False)
    axes.set_title(name, loc="left", fontsize=10, color=INK)


def _draw_curves(axes: "Axes", chart: Chart, groups: Sequence[GroupMeans], start: int) -> None:
    for number, group in enumerate(groups):
        places = [index for index in range(len(chart.measures)) if group.means[start + index] is not None]
        colour = INK if number == 0 else COLOURS[(number - 1) % len(COLOURS)]
        means = [group.means[start + position] or 0.0 for position in places]
        axes.plot(places, means, color=colour, marker="o", label=group.name)
        known = [position for position in places if group.intervals[start + position] is not None]
        ends = [group.intervals[start + index] or (0.0, 0.0) for index in known]
        low, high = [end[0] for end in ends], [end[1] for end in ends]
        axes.fill_between(known, low, high, color=colour, alpha=0.1, linewidth=0)
    axes.set_xticks(range(len(chart.measures)), token_labels(chart.measures))
    style_axes(axes)
    axes.set_title(chart.title, loc="left", fontsize=10, color=INK)
    axes.legend(frameon=False, fontsize=7, labelcolor=INK)
