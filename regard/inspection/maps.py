"""Where a model looks: every head of every layer, and the alignment picture of Bahdanau et al. (2015).

Axes: S source tokens, T target tokens, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from regard.errors import UsageError
from regard.evaluation.display import columns
from regard.inspection.drawing import CELL, blank, draw_map
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.trace import Side, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Kind = Literal["source", "encoder", "decoder"]
KINDS: dict[Kind, str] = {"source": "to the source", "encoder": "inside the source", "decoder": "inside the target"}
"""Which sides an attention joins."""


@dataclass(frozen=True)
class Heads:
    """The heads of one attention of the model; each row of each map sums to one."""

    name: str
    """Its path in the model, such as `encoder.layers.0.attention`."""
    kind: Kind
    layer: int
    """Counted from 0; 0 for the only one of a recurrent decoder."""
    weights: Tensor
    """H×rows×columns: H×T×S to the source, H×S×S inside it, H×T×T inside the target."""


@dataclass(frozen=True)
class Attention(Result):
    """All the attention of one trace."""

    source: Side
    target: Side
    inputs: Side
    heads: list[Heads]
    """The encoder's first, then the decoder's layer by layer."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Where the model looks"

    @property
    def mean(self) -> Tensor:
        """Attention to the source, averaged over layers and heads: T×S."""
        to_source = [one.weights for one in self.heads if one.kind == "source"]
        if not to_source:
            raise UsageError("This model does not look at its source: its join is a fixed vector.")
        return torch.cat(to_source).mean(0)

    def sides(self, kind: Kind) -> tuple[Side, Side]:
        """Whose tokens stand along the rows and the columns of a kind of map."""
        return {
            "source": (self.target, self.source),
            "encoder": (self.source, self.source),
            "decoder": (self.inputs, self.inputs),
        }[kind]

    def to_json(self) -> dict[str, Any]:
        """Plain data: tokens, words, and the weights of every head."""
        return {
            "source": _side(self.source),
            "target": _side(self.target),
            "inputs": _side(self.inputs),
            "attention": [
                {"name": one.name, "kind": one.kind, "layer": one.layer, "weights": _rounded(one.weights)}
                for one in self.heads
            ],
        }

    def __str__(self) -> str:
        """For each target token the source tokens it looked at most (mean of layers and heads)."""
        rows = [["target", "looked at", ""]]
        for token, weights in zip(self.target.tokens, self.mean, strict=True):
            best = weights.topk(min(3, len(weights)))
            pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            rows.append([token, "   ".join(f"{self.source.tokens[place]} {weight:.2f}" for place, weight in pairs)])
        return columns(rows)

    def draw(self) -> "Figure":
        """Attention to the source, averaged over layers and heads."""
        return draw_alignments([self])

    def panels(self) -> list[Panel]:
        """Lines, maps and the grid of all heads, over one choice of layer and head."""
        note = (
            "Each row is a token that was written (or, inside a side, read): it shares a weight of one among the "
            "tokens it looks at. A word is given the sum of what its tokens are given, and gives the mean of what "
            "they give."
        )
        return [Panel("attention", self.to_json(), note=note)]


def attention(trace: Trace) -> Attention:
    """All the attention of a trace: to the source, inside the source and inside the target."""
    found = []
    for name, weights in trace.matching("*.weights").items():
        path = name.removesuffix(".weights")
        side, *rest = path.split(".")
        layer = next((int(part) for part in rest if part.isdigit()), 0)
        kind: Kind = "source" if path.endswith("source_attention") else "encoder" if side == "encoder" else "decoder"
        found.append(Heads(path, kind, layer, weights))
    if not found:
        raise UsageError("This model has no attention: it reads with other means, and its join is a fixed vector.")
    return Attention(trace.source, trace.target, trace.inputs, found)


def draw_alignments(found: Sequence[Attention], title: str | None = None) -> "Figure":
    """Attention to the source of some traces, one below the other: source tokens across, target tokens down."""
    heights = [len(one.target) * CELL for one in found]
    left, right, gap, top = 0.7, 0.35, 0.6, 0.85 if title else 0.6
    width = max(len(one.source) for one in found) * CELL + left + right
    height = sum(heights) + gap * (len(found) - 1) + top + 0.3
    figure = blank(width, height, title)
    above = top
    for one, tall in zip(found, heights, strict=True):
        wide = len(one.source) * CELL
        axes = figure.add_axes((left / width, 1 - (above + tall) / height, wide / width, tall / height))
        draw_map(axes, one.mean, one.target.tokens, one.source.tokens)
        above += tall + gap
    return figure


def _side(side: Side) -> dict[str, Any]:
    return {"tokens": side.tokens, "words": side.words, "wordTexts": side.word_texts, "special": side.special}


def _rounded(weights: Tensor) -> list[Any]:
    """Four digits are more than an eye can see, and half the bytes."""
    rounded: list[Any] = (weights.double() * 1e4).round().div(1e4).tolist()
    return rounded
