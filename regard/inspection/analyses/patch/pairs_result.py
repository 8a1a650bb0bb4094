"""What parts of a model carry the difference between two sources, over many pairs of sources: means with intervals."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.foundation.display import columns
from regard.inspection.drawing import COLOURS, INK, QUIET, new_figure, reserve_title, style_axes
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.metrics.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SHOWN = 20
"""Heads that a table shows."""


@dataclass(frozen=True)
class MeanRecovery:
    """What copying one part recovers, on average over pairs."""

    name: str
    mean: float
    interval: Interval | None
    """95 %, by a bootstrap over pairs; none for a single pair."""
    pairs: int

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data for JSON."""
        return {
            "name": self.name,
            "recovery": self.mean,
            "recovery_95": None if self.interval is None else list(self.interval),
            "pairs": self.pairs,
        }


@dataclass(frozen=True, repr=False)
class PatchingPairs(Result):
    """Mean recoveries over pairs of sources: of whole parts, and of single heads."""

    pairs: int
    skipped: list[str]
    """Pairs that could not be compared, and why."""
    wholes: list[MeanRecovery]
    heads: list[MeanRecovery]
    """The strongest first."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"Which activation carries the difference, over {self.pairs:,} pairs"

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.wholes)} parts, {len(self.heads)} heads"

    def to_json(self) -> dict[str, Any]:
        """Return the means and intervals of all parts and heads."""
        return {
            "pairs": self.pairs,
            "skipped": self.skipped,
            "wholes": [whole.to_json() for whole in self.wholes],
            "heads": [head.to_json() for head in self.heads],
        }

    def __str__(self) -> str:
        parts = [f"{self.pairs:,} pairs of sources; intervals are 95 %, by a bootstrap over pairs."]
        for title, some in (("copied as a whole", self.wholes), ("head, at all positions", self.heads[:MOST_SHOWN])):
            rows = [[title, "recovers", "95 %", "pairs"]]
            rows += [[mean.name, f"{mean.mean:.2f}", _range(mean.interval), f"{mean.pairs:,}"] for mean in some]
            if some:
                parts.append(columns(rows, right=(1, 2, 3)))
        if self.skipped:
            reasons = "\n".join(f"  {why}" for why in self.skipped[:3])
            parts.append(f"{len(self.skipped):,} pairs could not be compared, such as:\n{reasons}")
        return "\n\n".join(parts)

    def draw(self) -> "Figure":
        """Draw the mean recovery of whole parts and of the strongest heads, with their intervals."""
        shown = [*self.wholes, *self.heads[:MOST_SHOWN]]
        figure = new_figure(8.0, 1.2 + 0.3 * len(shown), self.title, layout="constrained")
        reserve_title(figure)
        axes = figure.subplots()
        places = range(len(shown))
        axes.barh(places, [mean.mean for mean in shown], color=COLOURS[0], height=0.65)
        ends = [mean.interval or (mean.mean, mean.mean) for mean in shown]
        spread = [[mean.mean - low for mean, (low, _) in zip(shown, ends, strict=True)]]
        spread.append([high - mean.mean for mean, (_, high) in zip(shown, ends, strict=True)])
        axes.errorbar([mean.mean for mean in shown], list(places), xerr=spread, fmt="none", ecolor=QUIET, elinewidth=1)
        axes.set_yticks(places, [mean.name for mean in shown])
        axes.invert_yaxis()
        axes.set_xlabel("share of the difference recovered", fontsize=9, color=INK)
        style_axes(axes)
        return figure

    def panels(self) -> list[Panel]:
        """Return tables of whole parts and heads."""
        note = (
            "One part of the clean pass is copied into the corrupted pass; a figure is the mean share of the "
            "difference between the two answers that this brings back, with its 95 % interval over resampled pairs."
        )
        return [Panel("recoveries", self.to_json(), note=note)]


def _range(interval: Interval | None) -> str:
    return "–" if interval is None else f"{interval[0]:.2f}–{interval[1]:.2f}"
