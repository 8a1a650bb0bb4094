"""What pruning found: which heads stayed, when the others closed, and what each number of heads was worth."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from regard.foundation.display import columns
from regard.inspection.drawing import COLOURS, INK, LINE, PAPER, QUIET, new_figure, reserve_title, style_axes
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.metrics.intervals import Interval
from regard.metrics.scoring import NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kept = Mapping[str, Sequence[int]]
"""The heads that stay of each attention, by its name."""


MEASURED = {**NAMES, "perplexity": "perplexity", "loss": "loss"}
"""The scores of runs, and how each is written."""


@dataclass(frozen=True)
class Row:
    """What the model was worth at a step with its closed heads gone."""

    step: int
    price: float
    """λ."""
    heads: int
    """How many gates were open."""
    loss: float
    """On all validation examples."""
    score: float
    """By `Pruning.metric`, on the validation sample; of a model that writes, greedily."""
    kept: Kept
    loss_95: Interval | None = None
    """The 95 % interval of the loss, by a bootstrap over validation examples."""
    rise: float = 0.0
    """How much the loss is above that of the unpruned run."""
    rise_95: Interval | None = None
    """Its 95 % interval, the same examples being resampled for both."""


@dataclass(frozen=True)
class Gate:
    """A head at the end."""

    attention: str
    head: int
    log_alpha: float
    """Above 0 the gate is rather open."""
    kept: bool
    closed: int | None
    """The step from which its gate stayed closed; nothing if it was open until the end and yet had to go."""


@dataclass(frozen=True, repr=False)
class Pruning(Result):
    """The course of a pruning."""

    run: str
    directory: str
    """Where the pruned run is."""
    which: str
    metric: str | None
    """The score of the rows."""
    gates: list[Gate]
    rows: list[Row]
    """As the gates closed, the unpruned run first; before what is left has settled."""
    kept: Kept
    steps: int
    settling: int
    """Training steps after the gates, with the closed heads removed."""
    validation_before: Mapping[str, Any] | None
    test_before: Mapping[str, Any] | None
    validation_after: Mapping[str, Any] | None = None
    test_after: Mapping[str, Any] | None = None
    settled: tuple[float, Interval | None] | None = None
    """How much the validation loss of the pruned run, settled, is above that of the run before; its 95 % interval."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        left = sum(map(len, self.kept.values()))
        return f"{left} of {len(self.gates)} heads kept"

    @property
    def measure(self) -> str:
        """The score of the rows, as it is written."""
        return MEASURED.get(self.metric or "loss", self.metric or "loss")

    @property
    def scores(self) -> list[tuple[str, float, float]]:
        """What was measured of the run before and of the pruned one after, with the run's own search."""
        found = []
        pairs = (
            ("test", self.test_before, self.test_after),
            ("validation", self.validation_before, self.validation_after),
        )
        for name, before, after in pairs:
            for metric, shown in MEASURED.items():
                if before and after and before.get(metric) is not None and after.get(metric) is not None:
                    found.append((f"{name} {shown}", float(before[metric]), float(after[metric])))
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain data: the gates, the rows and the scores before and after."""
        return {**asdict(self), "metric_name": self.measure, "scores": [list(score) for score in self.scores]}

    def __str__(self) -> str:
        """The rows, the heads that stayed, and the scores."""
        rows = [["step", "λ", "heads", "loss", "95 %", "loss +", "95 %", self.measure]]
        rows += [
            [
                f"{row.step:,}",
                f"{row.price:.3g}",
                str(row.heads),
                f"{row.loss:.3f}",
                _range(row.loss_95),
                f"{row.rise:+.3f}",
                _range(row.rise_95),
                f"{row.score:.1f}",
            ]
            for row in self.rows
        ]
        kept = [[name, " ".join(map(str, heads)) or "none"] for name, heads in self.kept.items()]
        parts = [
            f"{self.title} ({self.which}), in {self.directory}",
            columns(rows, right=range(8)),
            columns([["attention", "heads kept"], *kept]),
        ]
        if self.scores:
            scores = [[name, f"{before:.2f}", f"{after:.2f}"] for name, before, after in self.scores]
            parts.append(columns([["", "before", "after"], *scores], right=(1, 2)))
        if self.settled is not None:
            rise, interval = self.settled
            parts.append(f"Settled, the validation loss is {rise:+.3f} above that before (95 %: {_range(interval)}).")
        return "\n\n".join(parts)

    def draw(self) -> "Figure":
        """The score over the heads kept, and which heads they are."""
        names = list(self.kept)
        figure = new_figure(10.5, 4.2, self.title, layout="constrained")
        reserve_title(figure)
        left, right = figure.subplots(1, 2, width_ratios=[1.5, 1])
        self._draw_rows(left)
        most = max(gate.head for gate in self.gates) + 1
        for gate in self.gates:
            y = names.index(gate.attention)
            face = COLOURS[0] if gate.kept else PAPER
            right.add_patch(_box(gate.head, y, face))
            text = "kept" if gate.kept else "closed" if gate.closed is None else f"{gate.closed:,}"
            right.text(gate.head, y, text, ha="center", va="center", fontsize=8, color=PAPER if gate.kept else QUIET)
        right.set_xlim(-0.6, most - 0.4)
        right.set_ylim(len(names) - 0.4, -0.6)
        right.set_xticks(range(most), [f"head {head}" for head in range(most)])
        right.set_yticks(range(len(names)), names)
        right.tick_params(length=0, labelsize=8, labelcolor=INK)
        right.spines[:].set_visible(False)
        right.set_title("kept, or the step at which it closed", loc="left", fontsize=9, color=INK)
        return figure

    def _draw_rows(self, axes: "Axes") -> None:
        heads, scores = [row.heads for row in self.rows], [row.score for row in self.rows]
        axes.plot(heads, scores, color=COLOURS[0], linewidth=1.8, marker="o", markersize=4)
        axes.invert_xaxis()
        axes.set_xlabel("heads open", fontsize=9, color=INK)
        title = f"validation {self.measure} with the closed heads gone"
        axes.set_title(title, loc="left", fontsize=9, color=INK)
        axes.set_ylim(bottom=min(0.0, *scores), top=max(scores) * 1.12 or 1.0)
        style_axes(axes)

    def panels(self) -> list[Panel]:
        """The curve, the grid of heads and the table."""
        note = (
            f"Gates on {len(self.gates)} heads of {self.run} learned for {self.steps:,} steps at which price each can "
            f"be done without; the closed ones were then removed and the rest settled for {self.settling:,} steps. The "
            "curve is measured on validation data while the gates close, before anything settles."
        )
        return [Panel("pruning", self.to_json(), note=note)]


def _range(interval: Interval | None) -> str:
    """Return an interval of a loss."""
    return "–" if interval is None else f"{interval[0]:.3f}–{interval[1]:.3f}"


def _box(x: int, y: int, face: str) -> Any:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(
        (x - 0.4, y - 0.36), 0.8, 0.72, boxstyle="round,pad=0,rounding_size=0.08", facecolor=face, edgecolor=LINE
    )
