"""What identifiability over a corpus found."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.foundation.display import columns
from regard.inspection.analyses.identify.token_identity import AMONG, MAPS, NEARNESS, TokenIdentity
from regard.inspection.attention_kinds import KINDS, Kind
from regard.inspection.drawing import COLOURS, INK, new_figure, reserve_title, style_axes
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.inspection.states import layer_names
from regard.metrics.intervals import Interval, ratio_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BIN, LAST = 10, 100
"""Lengths are counted in tens, and all above a hundred together."""


@dataclass(frozen=True, slots=True)
class Similarity:
    """How much the weights of one attention in one sentence are like their effective part, on average over heads."""

    kind: Kind
    layer: int
    length: int
    """Tokens that can be looked at, the end or start symbol included."""
    width: int
    """Of a head."""
    rank: float
    identifiable: float
    """The share of heads whose rank is the length."""
    correlation: float
    sentence: int
    """The number of the sentence."""


@dataclass(frozen=True)
class Bin:
    """Sentences of similar length."""

    name: str
    sentences: int
    correlation: float
    identifiable: float
    rank: float
    intervals: dict[str, Interval | None]
    """95 % intervals of `correlation`, `identifiable` and `rank`, by a bootstrap over sentences."""


@dataclass(frozen=True)
class MixingByLayer:
    """What tokens contribute to their own states, layer by layer."""

    median: list[float]
    mean: list[float]
    still_main: list[float]
    """The share of tokens that are the greatest contributor to their own state."""
    intervals: dict[str, list[Interval | None]]
    """95 % intervals of `median`, `mean` and `still_main`, by a bootstrap over sentences."""
    error: list[float]
    """The standard error of one token's share (root mean square)."""
    sentences: int
    tokens: int
    projections: int


@dataclass(frozen=True, repr=False)
class Identification(Result):
    """Whether attention and tokens can be identified, over a corpus."""

    likenesses: list[Similarity]
    """Of every attention and sentence; none if the model has no attention."""
    tokens: TokenIdentity
    mixing: MixingByLayer
    sentences: int
    left_out: int
    """Empty and too long texts."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Is attention identifiable, are tokens?"

    @property
    def layers(self) -> list[str]:
        """Names of the encoder's layers."""
        return layer_names(len(self.mixing.median))

    def bins(self, kind: Kind, layer: int | None = None) -> list[Bin]:
        """Correlations by length, of one layer or of all."""
        if (kind, layer) not in self._bins:
            self._bins[kind, layer] = self._count_bins(kind, layer)
        return self._bins[kind, layer]

    @cached_property
    def _bins(self) -> dict[tuple[Kind, int | None], list[Bin]]:
        """Those that have been counted: their intervals take some time."""
        return {}

    def _count_bins(self, kind: Kind, layer: int | None) -> list[Bin]:
        groups: dict[int, list[Similarity]] = {}
        for likeness in self.likenesses:
            if likeness.kind == kind and layer in (None, likeness.layer):
                groups.setdefault(min((likeness.length - 1) // BIN, LAST // BIN), []).append(likeness)
        return [
            Bin(
                f"{likeness * BIN + 1}+" if likeness * BIN >= LAST else f"{likeness * BIN + 1}–{likeness * BIN + BIN}",
                len(some) // len({likeness.layer for likeness in some}),
                _mean(likeness.correlation for likeness in some),
                _mean(likeness.identifiable for likeness in some),
                _mean(likeness.rank for likeness in some),
                _bin_intervals(some),
            )
            for likeness, some in sorted(groups.items())
        ]

    def kinds(self) -> list[tuple[Kind, int, list[int]]]:
        """The kinds of attention that there are, their head width and their layers."""
        found = []
        for kind in KINDS:
            some = [likeness for likeness in self.likenesses if likeness.kind == kind]
            if some:
                found.append((kind, some[0].width, sorted({likeness.layer for likeness in some})))
        return found

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{self.sentences:,} sentences, {len(self.layers)} layers"

    def to_json(self) -> dict[str, Any]:
        """Plain data: all that was found."""
        return {
            "sentences": self.sentences,
            "left_out": self.left_out,
            "layers": self.layers,
            "attention": [
                {
                    "kind": kind,
                    "name": KINDS[kind],
                    "width": width,
                    "all": [_bin_data(bin_) for bin_ in self.bins(kind)],
                    "layers": {str(layer): [_bin_data(bin_) for bin_ in self.bins(kind, layer)] for layer in layers},
                }
                for kind, width, layers in self.kinds()
            ],
            "tokens": {
                "sentences": self.tokens.sentences,
                "measured": self.tokens.tokens,
                "chance": self.tokens.chance,
                "found": [
                    {"map": how, "nearness": by, "among": among, "accuracy": shares, "intervals": intervals}
                    for ((how, by, among), shares), intervals in zip(
                        self.tokens.found.items(), self.tokens.intervals.values(), strict=True
                    )
                ],
            },
            "contributions": {
                "median": self.mixing.median,
                "mean": self.mixing.mean,
                "still_main": self.mixing.still_main,
                "intervals": self.mixing.intervals,
                "standard_error": self.mixing.error,
                "sentences": self.mixing.sentences,
                "tokens": self.mixing.tokens,
                "projections": self.mixing.projections,
            },
        }

    def __str__(self) -> str:
        """Three tables: attention by length, tokens by layer, contributions by layer."""
        parts = []
        for kind, width, _ in self.kinds():
            rows = [["tokens", "sentences", "rank", "identifiable heads", "correlation of raw and effective"]]
            rows[0] += ["95 % of rank", "95 % of heads", "95 % of correlation"]
            for bin_ in self.bins(kind):
                agreeing = f"{bin_.identifiable:.0%}", f"{bin_.correlation:.3f}"
                intervals = bin_.intervals
                ranges = (
                    _range(intervals["rank"]),
                    _range(intervals["identifiable"], 100, 0),
                    _range(intervals["correlation"], 1, 3),
                )
                rows.append([bin_.name, f"{bin_.sentences:,}", f"{bin_.rank:.1f}", *agreeing, *ranges])
            parts.append(f"Attention {KINDS[kind]} (head width {width}):\n\n{columns(rows, right=range(1, 8))}")
        heads = [["", *(word for how in MAPS for word in (f"map: {how}", "", "", ""))]]
        heads.append(["", *(word for _ in MAPS for word in ("cosine", "", "euclidean", ""))])
        heads.append(["layer", *(word for _ in range(6) for word in ("sent.", "vocab."))])
        for index, name in enumerate(self.layers):
            found = [self.tokens.found[how, by, among][index] for how in MAPS for by in NEARNESS for among in AMONG]
            heads.append([name, *("–" if share is None else f"{100 * share:.1f}" for share in found)])
        parts.append(
            f"Tokens identified, % of {self.tokens.tokens:,} (by chance in a sentence: {100 * self.tokens.chance:.1f}):"
            f"\n\n{columns(heads, right=range(1, 13))}"
        )
        ends = self.tokens.intervals
        spans = [
            [name, *(_range(ends[how, by, among][index], 100) for how in MAPS for by in NEARNESS for among in AMONG)]
            for index, name in enumerate(self.layers)
        ]
        parts.append(f"95 % intervals of these shares:\n\n{columns([*heads[:3], *spans], right=range(1, 13))}")
        table = [["layer", "own contribution: median", "mean", "tokens that still contribute most"]]
        table[0] += ["95 % of median", "95 % of mean", "95 % of tokens"]
        for index, name in enumerate(self.layers):
            mixing = self.mixing
            own = [mixing.median[index], mixing.mean[index], mixing.still_main[index]]
            spread = [_range(interval[index], 100) for interval in mixing.intervals.values()]
            table.append([name, *(f"{share:.1%}" for share in own), *spread])
        parts.append(
            f"Contributions of tokens to their own states ({self.mixing.tokens:,} tokens of {self.mixing.sentences} "
            f"sentences, {self.mixing.projections} random projections each, standard error of one share "
            f"(root mean square) {max(self.mixing.error):.1%}):\n\n{columns(table, right=range(1, 7))}"
        )
        return "\n\n".join(parts)

    def draw(self) -> "Figure":
        """Correlation by length, tokens by layer, contributions by layer."""
        figure = new_figure(13, 4.4, self.title, layout="constrained")
        reserve_title(figure)
        left, middle, right = figure.subplots(1, 3)
        names = list(dict.fromkeys(bin_.name for kind, _, _ in self.kinds() for bin_ in self.bins(kind)))
        names.sort(key=lambda name: int(name.rstrip("+").split("–")[0]))
        for hue, (kind, width, _) in zip(COLOURS, self.kinds(), strict=False):
            bins = self.bins(kind)
            places = [names.index(bin_.name) for bin_ in bins]
            label = f"{KINDS[kind]} (head width {width})"
            left.plot(places, [bin_.correlation for bin_ in bins], color=hue, marker="o", label=label)
            _band(left, places, [bin_.intervals["correlation"] for bin_ in bins], hue)
        left.set_xticks(range(len(names)), names, rotation=45, ha="right")
        for hue, how in zip(COLOURS, MAPS, strict=False):
            for style, by in zip(("-", "--"), NEARNESS, strict=True):
                shares = self.tokens.found[how, by, "sentence"]
                known = [(index, 100 * share) for index, share in enumerate(shares) if share is not None]
                middle.plot(*zip(*known, strict=True), style, color=hue, marker="o", label=f"{how}, {by}")
                _band(middle, range(len(shares)), self.tokens.intervals[how, by, "sentence"], hue, 100)
        middle.set_ylim(0, 102)
        right.plot([100 * share for share in self.mixing.median], color=COLOURS[0], marker="o", label="own, median")
        right.plot([100 * share for share in self.mixing.still_main], color=COLOURS[1], marker="o", label="own is main")
        for hue, name in zip(COLOURS, ("median", "still_main"), strict=False):
            _band(right, range(len(self.layers)), self.mixing.intervals[name], hue, 100)
        right.set_ylim(0, 102)
        titles = "raw and effective attention by length", "tokens identified in their sentence, %", "contributions, %"
        for axes, title in zip((left, middle, right), titles, strict=True):
            style_axes(axes)
            axes.set_title(title, loc="left", fontsize=10, color=INK)
            if axes is not left:
                axes.set_xticks(range(len(self.layers)), self.layers)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(frameon=False, fontsize=8, labelcolor=INK)
        return figure

    def panels(self) -> list[Panel]:
        """The three as curves."""
        return [Panel("identification", self.to_json())]


def _band(
    axes: "Axes", places: Sequence[int], intervals: Sequence[Interval | None], colour: str, factor: float = 1.0
) -> None:
    """Draw intervals around a curve, where there are any."""
    known = [(position, ends) for position, ends in zip(places, intervals, strict=True) if ends is not None]
    low, high = [factor * ends[0] for _, ends in known], [factor * ends[1] for _, ends in known]
    axes.fill_between([index for index, _ in known], low, high, color=colour, alpha=0.12, linewidth=0)


def _bin_intervals(some: Sequence[Similarity]) -> dict[str, Interval | None]:
    """Return the 95 % intervals of the means over some attentions, by a bootstrap over sentences."""
    numbers = {sentence: index for index, sentence in enumerate(dict.fromkeys(likeness.sentence for likeness in some))}
    sums = np.zeros((len(numbers), 4))
    for likeness in some:
        sums[numbers[likeness.sentence]] += likeness.correlation, likeness.identifiable, likeness.rank, 1
    found = ratio_intervals(sums[:, :3], sums[:, 3:])
    if found is None:
        return dict.fromkeys(("correlation", "identifiable", "rank"))
    limits = {"correlation": (-1.0, 1.0), "identifiable": (0.0, 1.0), "rank": (0.0, np.inf)}
    return {
        name: (max(least, float(low)), min(most, float(high)))
        for (name, (least, most)), (low, high) in zip(limits.items(), found, strict=True)
    }


def _range(interval: Interval | None, factor: float = 1.0, digits: int = 1) -> str:
    """Return an interval, times a factor, as a table shows it."""
    return "–" if interval is None else f"{factor * interval[0]:.{digits}f}–{factor * interval[1]:.{digits}f}"


def _mean(values: Iterable[float]) -> float:
    some = list(values)
    return sum(some) / len(some)


def _bin_data(bin_: Bin) -> dict[str, Any]:
    return {
        "tokens": bin_.name,
        "sentences": bin_.sentences,
        "correlation": bin_.correlation,
        "identifiable": bin_.identifiable,
        "rank": bin_.rank,
        "intervals": bin_.intervals,
    }
