"""Identifiability in one sentence (Brunner et al., 2020).

Are the weights of a head the only ones that do what they do? How much of each token is still in its hidden state?

Axes: H heads, S source tokens, T target tokens, L layers (the embedding first).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from regard.foundation.display import columns
from regard.inspection.analyses.identify.token_mixing import Mixing
from regard.inspection.attention_kinds import Kind
from regard.inspection.drawing import CELL, INK, KEY, draw_key, draw_map, label_height, new_figure
from regard.inspection.page import Panel, pack
from regard.inspection.plain_data import rounded
from regard.inspection.result import Result
from regard.inspection.states import layer_names
from regard.tasks.trace import Side

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NOTE = (
    "A head's output is its weights times T, which has a row for each token looked at: the token's value, through the "
    "head's slice of the output projection. No more rows of T are independent than the head is wide, so with more "
    "tokens than that, weights can change and the output stays the same. What remains when this idle part is taken "
    "away is the effective attention; it may be negative, and its rows need not sum to one (unless only that part is "
    "taken away which leaves the sum as it is)."
)


@dataclass(frozen=True)
class Head:
    """One head: its weights, and their effective part."""

    raw: Tensor
    """T×S."""
    effective: Tensor
    """T×S: without what the null space of T holds."""
    same_sum: Tensor
    """T×S: without what the null space of [T, 1] holds, so that rows keep their sum."""
    rank: int
    """Independent rows of T: equal to the length if, and only if, the weights are identifiable."""
    correlation: float
    """Pearson's, of raw and effective weights."""


@dataclass(frozen=True)
class Heads:
    """The heads of one attention of the model."""

    name: str
    kind: Kind
    layer: int
    length: int
    """Tokens that can be looked at."""
    width: int
    """Of a head."""
    heads: list[Head]


@dataclass(frozen=True)
class Demonstration:
    """Weights of every head of the model replaced at once by others, and what became of the output."""

    what: Literal["effective", "elsewhere", "control"]
    """Their effective part; other weights that still sum to one and are not negative; as large a change by chance."""
    moved: float
    """How much weight has moved, a row's weight being one (half the sum of differences), on average."""
    other_strongest: float
    """The share of rows whose largest weight is now on another token."""
    change: float
    """The greatest change of the log-probability of any token of the vocabulary."""


@dataclass(frozen=True, repr=False)
class Identifiability(Result):
    """Which weights and tokens of one sentence are identifiable."""

    source: Side
    target: Side
    inputs: Side
    places: Side
    """The positions of a picture that is read together with the source; empty without one."""
    attention: list[Heads]
    demonstrations: list[Demonstration]
    read: Side
    """The side whose tokens are followed through the layers: the source, or the text of a language model."""
    mixing: Mixing | None
    """None if the source is a picture, whose positions are not tokens."""
    projections: int | None
    """By which contributions were estimated; None for the exact Jacobian."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Is attention identifiable, are tokens?"

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.source)} source and {len(self.target)} target tokens, {len(self.attention)} attentions"

    def to_json(self) -> dict[str, Any]:
        """Plain data: all that was found."""
        return {
            "source": self.source.tokens,
            "target": self.target.tokens,
            "inputs": self.inputs.tokens,
            "attention": [self._about(attention, _in_full) for attention in self.attention],
            "demonstrations": [vars(demonstration) for demonstration in self.demonstrations],
            "projections": self.projections,
            "layers": self._layers(),
        }

    def _layers(self) -> list[dict[str, Any]]:
        """The contributions to each layer's states, and what they come to."""
        if self.mixing is None:
            return []
        return [
            {
                "own_median": float(own.median()),
                "still_main": float(main.double().mean()),
                "standard_error": float(error.max()),
                "mean_standard_error": float(error.square().mean().sqrt()),
                "errors": rounded(error),
                "contributions": rounded(contributions),
            }
            for own, main, error, contributions in zip(
                *self._tokens(self.mixing), self.mixing.contributions, strict=True
            )
        ]

    def _about(self, attention: Heads, weights: Callable[[Head], dict[str, Any]]) -> dict[str, Any]:
        """An attention and its heads, whose weights are written as the reader wants them."""
        facts = {
            "name": attention.name,
            "kind": attention.kind,
            "layer": attention.layer,
            "length": attention.length,
            "width": attention.width,
        }
        heads = [{"rank": head.rank, "correlation": head.correlation, **weights(head)} for head in attention.heads]
        return {**facts, "heads": heads}

    def _tokens(self, mixing: Mixing) -> tuple[Tensor, Tensor, Tensor]:
        """Own share, whether it is the greatest, and standard errors: of tokens that are not special, L×…"""
        kept = [index for index, special in enumerate(self.read.special) if not special] or [0]
        return mixing.own[:, kept], mixing.still_main[:, kept], mixing.error

    def __str__(self) -> str:
        """Ranks and correlations of all heads, the demonstrations, and own contributions by layer."""
        rows = [["attention", "tokens", "head width", "rank of each head", "correlation of raw and effective"]]
        for attention in self.attention:
            ranks = " ".join(str(head.rank) for head in attention.heads)
            alike = " ".join(f"{head.correlation:.2f}" for head in attention.heads)
            rows.append([attention.name, str(attention.length), str(attention.width), ranks, alike])
        parts = [columns(rows, right=(1, 2))] if self.attention else ["This model has no attention."]
        if self.demonstrations:
            table = [["all heads replaced by", "weight moved", "rows with another maximum", "greatest change of log p"]]
            for shown in self.demonstrations:
                moved, other = f"{shown.moved:.1%}", f"{shown.other_strongest:.1%}"
                table.append([WHAT[shown.what], moved, other, f"{shown.change:.1e}"])
            parts.append(columns(table, right=(1, 2, 3)))
        if self.mixing is None:
            return "\n\n".join(parts)
        how = "the exact Jacobian" if self.projections is None else f"{self.projections} random projections"
        table = [["layer", "own contribution (median)", "tokens that still contribute most", "largest standard error"]]
        names = layer_names(len(self.mixing.own))
        for name, own, main, error in zip(names, *self._tokens(self.mixing), strict=True):
            share, spread = float(main.double().mean()), float(error.max())
            table.append([name, f"{float(own.median()):.1%}", f"{share:.1%}", f"{spread:.2%}"])
        parts.append(
            f"Contributions of input tokens to their own states, by {how}:\n\n{columns(table, right=(1, 2, 3))}"
        )
        return "\n\n".join(parts)

    def draw(self) -> "Figure":
        """The head with the lowest correlation: raw, effective, difference; and the contributions in the last layer."""
        followed: list[tuple[str, Tensor, Side, Side, bool]] = []
        if self.mixing is not None:
            own = self.mixing.contributions[-1]
            followed = [("contributions to states of the last layer", own, self.read, self.read, False)]
        least = min(
            ((attention, head) for attention in self.attention for head in attention.heads),
            key=lambda pair: pair[1].correlation,
            default=None,
        )
        if least is None:
            return _row(self.title, followed)
        attention, head = least
        rows, across = self._sides(attention.kind)
        name = f"{attention.name}, head {attention.heads.index(head)}"
        known = f"{attention.length} tokens, width {attention.width}, rank {head.rank}"
        return _row(  # raw and effective in the same colours: what looks alike is alike
            f"{self.title} {name}: {known}",
            [
                ("raw", head.raw, rows, across, True),
                (f"effective (correlation {head.correlation:.2f})", head.effective, rows, across, True),
                ("difference", head.raw - head.effective, rows, across, True),
                *followed,
            ],
        )

    def _sides(self, kind: Kind) -> tuple[Side, Side]:
        """Return the sides along the rows and the columns of a map."""
        return {
            "source": (self.target, self.source),
            "between": (self.source, self.source),
            "picture": (self.source, self.places),
            "encoder": (self.source, self.source),
            "places": (self.places, self.places),
            "decoder": (self.inputs, self.inputs),
        }[kind]

    def panels(self) -> list[Panel]:
        """Maps with raw, effective and difference at a switch; the demonstrations; contributions by layer."""
        sides = {"source": self.source, "target": self.target, "inputs": self.inputs, "places": self.places}
        found = []
        if self.attention:
            data = {
                **{name: side.tokens for name, side in sides.items()},
                "demonstrations": [vars(demonstration) for demonstration in self.demonstrations],
                "attention": [self._about(attention, _pack_head) for attention in self.attention],
            }
            found.append(Panel("identify", data, "Raw and effective attention", NOTE))
        if self.mixing is None:
            return found
        own, main, error = self._tokens(self.mixing)
        how = "the exact Jacobian" if self.projections is None else f"{self.projections} random projections"
        note = (
            "A row shows how much each input token contributes to the hidden state at a place: the size of the state's "
            f"derivative with respect to the token's input vector, by {how}; rows sum to one."
        )
        data = {
            "tokens": self.read.tokens,
            "contributions": pack(self.mixing.contributions),
            "own": own.median(1).values.tolist(),
            "main": main.double().mean(1).tolist(),
            "error": error.amax((1, 2)).tolist(),
            "meanError": error.square().mean((1, 2)).sqrt().tolist(),
        }
        return [*found, Panel("mixing", data, "What is left of each token", note)]


WHAT = {
    "effective": "their effective part",
    "elsewhere": "other weights that sum to one",
    "control": "a change as large by chance",
}
"""Demonstrations in words."""


def _in_full(head: Head) -> dict[str, Any]:
    maps = {"raw": head.raw, "effective": head.effective, "same_sum": head.same_sum}
    return {name: rounded(weights) for name, weights in maps.items()}


def _pack_head(head: Head) -> dict[str, Any]:
    """For the page: what equals the raw weights is left out."""
    return {
        "raw": pack(head.raw),
        "effective": None if head.effective is head.raw else pack(head.effective),
        "sameSum": None if head.same_sum is head.raw else pack(head.same_sum),
    }


def _row(title: str, maps: list[tuple[str, Tensor, Side, Side, bool]]) -> "Figure":
    """Maps side by side, each as wide as its tokens."""
    left, gap = 0.8, 0.4
    names = max(label_height(across.tokens) for _, _, _, across, _ in maps)
    top = names + 0.75
    widths = [len(across) * CELL for _, _, _, across, _ in maps]
    tall = max(len(down) for _, _, down, _, _ in maps) * CELL
    width, height = sum(widths) + (left + gap) * len(maps), tall + top + KEY + 0.1
    figure = new_figure(width, height, title)
    start, explained = left, set[bool]()
    for (name, values, down, across, signed), wide in zip(maps, widths, strict=True):
        high = len(down) * CELL
        axes: Axes = figure.add_axes((start / width, 1 - (top + high) / height, wide / width, high / height))
        draw_map(axes, values, down.tokens, across.tokens, signed=signed)
        figure.text(start / width, 1 - 0.55 / height, name, fontsize=9, color=INK)
        if signed not in explained:
            draw_key(figure, start, "−1" if signed else "0", "1: all of a row", signed=signed)
        explained.add(signed)
        start += wide + left + gap
    return figure
