"""What probing found: curves by layer with everything that they have to be compared to."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.foundation.display import columns
from regard.inspection.analyses.probe.codelength import CodeLength
from regard.inspection.drawing import COLOURS, INK, QUIET, new_figure, reserve_title, style_axes
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.inspection.states import End, Pool
from regard.metrics.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_FIGURES = {"trained": "accuracy", "untrained": "untrained", "control task": "control"}
_CODES = {"trained": "bits", "untrained": "untrained_bits", "control task": "control_bits"}
"""What a curve of the picture shows."""


def _range(interval: Interval | None, factor: float = 1.0, digits: int = 1) -> str:
    """Return an interval, times a factor, as a table shows it."""
    return "–" if interval is None else f"{factor * interval[0]:.{digits}f}–{factor * interval[1]:.{digits}f}"


@dataclass(frozen=True)
class Curves:
    """What one kind of probe found, layer by layer."""

    accuracy: list[float]
    control: list[float]
    """Accuracy on the control task: a random label for each word type."""
    untrained: list[float]
    """Accuracy on the states of an untrained model of the same shape."""
    intervals: dict[str, list[Interval | None]]
    """95 % intervals of `accuracy`, `control`, `selectivity` and `untrained`, by a bootstrap over test sentences."""
    code: CodeLength
    control_code: CodeLength
    untrained_code: CodeLength

    @property
    def selectivity(self) -> list[float]:
        """Accuracy minus control accuracy: what is not merely the probe's memory of words."""
        return [real - control for real, control in zip(self.accuracy, self.control, strict=True)]

    @property
    def code_intervals(self) -> dict[str, list[Interval | None]]:
        """95 % intervals of the code lengths, by a bootstrap over training sentences."""
        return {
            "bits": self.code.intervals,
            "data_bits": self.code.data_intervals,
            "compression": self.code.compression_intervals,
            "control_bits": self.control_code.intervals,
            "untrained_bits": self.untrained_code.intervals,
        }

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "accuracy": self.accuracy,
            "control": self.control,
            "selectivity": self.selectivity,
            "untrained": self.untrained,
            "intervals": self.intervals | self.code_intervals,
            "bits": self.code.bits,
            "data_bits": self.code.data,
            "probe_bits": [whole - data for whole, data in zip(self.code.bits, self.code.data, strict=True)],
            "compression": self.code.compression,
            "control_bits": self.control_code.bits,
            "untrained_bits": self.untrained_code.bits,
        }


@dataclass(frozen=True, repr=False)
class Probing(Result):
    """What the layers of one side know about one property."""

    wanted: str
    side: End
    pool: Pool
    layers: list[str]
    sentences: dict[str, int]
    """In the training, stopping and test part."""
    words: dict[str, int]
    too_long: int
    """Sentences left out for their length."""
    repeated: int
    """Sentences that were left out because they are repeated, token by token: each is in one part, once."""
    labels: list[str]
    """The most frequent first."""
    majority: float
    """Accuracy of always saying the most frequent label."""
    per_word: float
    """Accuracy of saying each word's most frequent label, and the most frequent of all for new words."""
    uniform: float
    """Bits of the training labels when all labels are equally likely."""
    curves: dict[str, Curves]
    """By the kind of probe."""
    by_label: dict[str, tuple[int, list[float], list[Interval | None]]]
    """Test words of each label, the share of them that the MLP finds, layer by layer, and the 95 % intervals."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"What each layer of the {self.side} knows: {self.wanted}"

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.layers)} layers, {len(self.labels)} labels"

    def to_json(self) -> dict[str, Any]:
        """Plain data: all that was found."""
        return {
            "property": self.wanted,
            "side": self.side,
            "word": self.pool,
            "layers": self.layers,
            "sentences": self.sentences,
            "words": self.words,
            "too_long": self.too_long,
            "repeated": self.repeated,
            "labels": self.labels,
            "baselines": {"majority": self.majority, "word": self.per_word, "uniform_bits": self.uniform},
            "probes": {kind: curves.to_json() for kind, curves in self.curves.items()},
            "by_label": [
                {"label": label, "words": count, "found": found, "intervals": intervals}
                for label, (count, found, intervals) in self.by_label.items()
            ],
        }

    def __str__(self) -> str:
        """A row for each layer, linear and MLP side by side, the baselines above."""
        head = ["", "accuracy", "", "control", "", "selectivity", "", "untrained", "", "kbit", "", "compression", ""]
        head += ["95 % of accuracy", "", "95 % of kbit", "", "95 % of compression", ""]
        rows = [head, ["layer", *["linear", "mlp"] * 9]]
        for index, name in enumerate(self.layers):
            row = [name]
            for figures in ("accuracy", "control", "selectivity", "untrained"):
                row += [f"{100 * getattr(curves, figures)[index]:.1f}" for curves in self.curves.values()]
            row += [f"{curves.code.bits[index] / 1000:.1f}" for curves in self.curves.values()]
            row += [f"{curves.code.compression[index]:.2f}" for curves in self.curves.values()]
            row += [_range(curves.intervals["accuracy"][index], 100) for curves in self.curves.values()]
            row += [_range(curves.code.intervals[index], 0.001) for curves in self.curves.values()]
            row += [_range(curves.code.compression_intervals[index], digits=2) for curves in self.curves.values()]
            rows.append(row)
        return "\n".join(
            [
                f"{self.wanted}: {len(self.labels)} labels, {self.words['train']:,} words to learn from, "
                f"{self.words['test']:,} to be measured on. {self.overlap}".rstrip(),
                f"Without a model: {100 * self.majority:.1f} by the most frequent label, {100 * self.per_word:.1f} by "
                f"each word's most frequent label; uniform code {self.uniform / 1000:.1f} kbit.",
                "",
                columns(rows, right=range(1, 19)),
            ]
        )

    @property
    def overlap(self) -> str:
        """A note about repeated sentences; empty if there are none."""
        if not self.repeated:
            return ""
        return f"{self.repeated:,} repeated sentences were left out: none was learned from and measured on."

    def draw(self) -> "Figure":
        """Accuracy and code length by layer, for both probes."""
        figure = new_figure(11, 4.6, self.title, layout="constrained")
        reserve_title(figure)
        left, right = figure.subplots(1, 2)
        places = range(len(self.layers))
        for style, (kind, curves) in zip(("--", "-"), self.curves.items(), strict=True):
            for hue, (name, values) in zip(COLOURS, self._shares(curves).items(), strict=False):
                left.plot(places, [100 * v for v in values], style, color=hue, marker="o", label=f"{name}, {kind}")
                ends = curves.intervals[_FIGURES[name]]
                low = [100 * (v if end is None else end[0]) for v, end in zip(values, ends, strict=True)]
                high = [100 * (v if end is None else end[1]) for v, end in zip(values, ends, strict=True)]
                left.fill_between(places, low, high, color=hue, alpha=0.12, linewidth=0)
            for hue, (name, bits) in zip(COLOURS, self._codes(curves).items(), strict=False):
                right.plot(places, [b / 1000 for b in bits], style, color=hue, marker="o", label=f"{name}, {kind}")
                spans = curves.code_intervals[_CODES[name]]
                low = [(b if end is None else end[0]) / 1000 for b, end in zip(bits, spans, strict=True)]
                high = [(b if end is None else end[1]) / 1000 for b, end in zip(bits, spans, strict=True)]
                right.fill_between(places, low, high, color=hue, alpha=0.12, linewidth=0)
        for value, name, style in ((self.per_word, "most frequent per word", ":"), (self.majority, "majority", "-.")):
            left.axhline(100 * value, color=QUIET, linestyle=style, linewidth=1.2, label=name)
        right.axhline(self.uniform / 1000, color=QUIET, linestyle=":", linewidth=1.2, label="uniform code")
        for axes, title in ((left, "accuracy, %"), (right, "online code length, kbit")):
            style_axes(axes)
            axes.set_title(title, loc="left", fontsize=10, color=INK)
            axes.set_xticks(places, self.layers)
            axes.set_ylim(bottom=0)
            axes.legend(
                frameon=False, fontsize=8, labelcolor=INK, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.1)
            )
        left.set_ylim(0, 100)
        return figure

    @staticmethod
    def _shares(curves: Curves) -> dict[str, list[float]]:
        return {"trained": curves.accuracy, "untrained": curves.untrained, "control task": curves.control}

    @staticmethod
    def _codes(curves: Curves) -> dict[str, list[float]]:
        return {
            "trained": curves.code.bits,
            "untrained": curves.untrained_code.bits,
            "control task": curves.control_code.bits,
        }

    def panels(self) -> list[Panel]:
        """Curves by layer, a table, and every label."""
        rule = {"mean": "the mean of its tokens' states", "last": "the state of its last token"}[self.pool]
        note = (
            f"A word is {rule}; probes never change the model. Compare before believing: the untrained model has the "
            "same shape and random weights; the control task gives every word type a random label, so a probe can only "
            "have memorised it; the code length also counts how many words it took to learn."
        )
        return [Panel("probe", self.to_json(), note=f"{note} {self.overlap}".rstrip())]
