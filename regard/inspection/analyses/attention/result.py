"""The result of `attention`: every head of every layer, and the alignment picture of Bahdanau et al. (2015).

Axes: S source tokens, T target tokens, H heads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.foundation.display import columns
from regard.foundation.errors import UsageError
from regard.inspection.analyses.attention.looks import Look, Looks
from regard.inspection.drawing import CELL, KEY, draw_key, draw_map, label_height, new_figure
from regard.inspection.page import Panel, pack
from regard.inspection.plain_data import rounded, side_data
from regard.inspection.result import Result
from regard.tasks.trace import Side, side_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from regard.inspection.attention_kinds import KINDS, MERGING, Kind


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
class Map:
    """One map with its names: each row looks at the columns."""

    title: str
    rows: list[str]
    columns: list[str]
    values: Tensor
    """rows×columns."""


@dataclass(frozen=True, repr=False)
class Attention(Result):
    """All the attention of one trace, and which map of it tables and pictures show."""

    source: Side
    target: Side
    inputs: Side
    heads: list[Heads]
    """The encoder's first, then the decoder's layer by layer."""
    kind: Kind = "source"
    layer: int | None = None
    """None for the mean of all."""
    head: int | None = None
    words: bool = False
    """Whether tokens are merged into words."""
    look: Look | None = None
    """The picture, where the source is one, or the spectrogram of a sound: its tokens are places."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Where the model looks"

    @cached_property
    def shown(self) -> Map:
        """The map that tables and pictures show."""
        found = [
            layer_heads
            for layer_heads in self.heads
            if layer_heads.kind == self.kind and self.layer in (None, layer_heads.layer)
        ]
        parts = [
            layer_heads.weights if self.head is None else layer_heads.weights[self.head : self.head + 1]
            for layer_heads in found
        ]
        values = torch.cat(parts).mean(0)
        rows, columns = self.sides(self.kind)
        if not self.words:
            return Map(self._shown_title(), rows.tokens, columns.tokens, values)
        merged = rows.averaged(columns.summed(values))
        return Map(self._shown_title(), rows.word_texts, columns.word_texts, merged)

    @property
    def mean(self) -> Tensor:
        """Attention to the source, averaged over layers and heads: T×S."""
        to_source = [layer_heads.weights for layer_heads in self.heads if layer_heads.kind == "source"]
        if not to_source:
            raise UsageError("This model does not look at its source: its join is a fixed vector.")
        return torch.cat(to_source).mean(0)

    def _shown_title(self) -> str:
        where = "all layers" if self.layer is None else f"layer {self.layer}"
        which = "mean of all heads" if self.head is None else f"head {self.head}"
        several = sum(layer_heads.kind == self.kind for layer_heads in self.heads) > 1
        only = (
            not several
            and sum(len(layer_heads.weights) for layer_heads in self.heads if layer_heads.kind == self.kind) == 1
        )
        parts = [KINDS[self.kind].capitalize(), *([where] if several else []), *([] if only else [which])]
        return ", ".join(parts)

    def sides(self, kind: Kind) -> tuple[Side, Side]:
        """Return the sides along the rows and the columns of a kind of map."""
        return {
            "source": (self.target, self.source),
            "picture": (self.target, self.places),
            "between": (self.source, self.source),
            "encoder": (self.source, self.source),
            "places": (self.places, self.places),
            "decoder": (self.inputs, self.inputs),
        }[kind]

    @property
    def size(self) -> str:
        """How large it is."""
        heads = sum(len(layer_heads.weights) for layer_heads in self.heads)
        return f"{heads} heads, {len(self.target)} target × {len(self.source)} source tokens"

    def to_json(self) -> dict[str, Any]:
        """Plain data: tokens, words, the map that is shown, the weights of every head, the mean of each layer."""
        return {
            **self._about(),
            **({"looked": self.look.to_json()} if self.look else {}),
            "shown": {
                "title": self.shown.title,
                "rows": self.shown.rows,
                "columns": self.shown.columns,
                "weights": rounded(self.shown.values),
            },
            "attention": [
                {
                    "name": layer_heads.name,
                    "kind": layer_heads.kind,
                    "layer": layer_heads.layer,
                    "weights": rounded(layer_heads.weights),
                    "mean": rounded(layer_heads.weights.mean(0)),
                }
                for layer_heads in self.heads
            ],
        }

    def __str__(self) -> str:
        """For each row of the map that is shown, the columns with the largest weights."""
        rows = [["target" if self.kind == "source" else "token", "looked at", ""]]
        for token, weights in zip(self.shown.rows, self.shown.values, strict=True):
            best = weights.topk(min(3, len(weights)))
            pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
            rows.append([token, *(f"{self.shown.columns[index]} {weight:.2f}" for index, weight in pairs if weight)])
        return f"{self.shown.title}:\n\n{columns(rows)}"

    def draw(self) -> "Figure":
        """The map that is shown: by default attention to the source, averaged over layers and heads."""
        if self.look and self.kind == ("picture" if self.look.dialogue else "source"):
            return self.look.draw(self.layer, self.head, self.shown.title)
        return draw_alignments([self], self.shown.title)

    def panels(self) -> list[Panel]:
        """A large map or lines, and the grid of all heads; of a picture, first where in it each word looked."""
        note = (
            "Each row is a token that was written (or, inside a side, read): it shares a weight of one among the "
            f"tokens it looks at. {MERGING} Layers and heads are counted from 0, as in the names of the model."
        )
        heads = [
            {
                "name": layer_heads.name,
                "kind": layer_heads.kind,
                "layer": layer_heads.layer,
                "weights": pack(layer_heads.weights),
            }
            for layer_heads in self.heads
        ]
        maps = Panel("attention", {**self._about(), "attention": heads}, note=note)
        if self.look is None:
            return [maps]
        heard = self.look.frames is not None
        named = (
            "A stretch of sound is named by the second at which it begins."
            if heard
            else ("A place of the picture is named by its row and column.")
        )
        title = "Stretch by stretch" if heard else "Place by place"
        return [*Looks([self.look]).panels(), replace(maps, title=title, note=f"{named} {note}")]

    def _about(self) -> dict[str, Any]:
        start = {"kind": self.kind, "layer": self.layer, "head": self.head, "words": self.words}
        sides = {"source": side_data(self.source), "target": side_data(self.target), "inputs": side_data(self.inputs)}
        return {"start": start, **sides, **({"places": side_data(self.places)} if self.look else {})}

    @property
    def places(self) -> Side:
        """The positions of a picture that is read together with a text."""
        return side_of(self.look.grid) if self.look else Side([], [], [], [])


def draw_alignments(found: Sequence[Attention], title: str | None = None) -> "Figure":
    """The maps of some traces, one below the other: for attention to the source, target tokens down."""
    heights = [len(heatmap.shown.rows) * CELL for heatmap in found]
    labels = max(label_height(heatmap.shown.columns) for heatmap in found)
    left, right, gap, top = 0.7, 0.35, labels + 0.2, labels + (0.4 if title else 0.1)
    width = max(len(heatmap.shown.columns) for heatmap in found) * CELL + left + right
    height = sum(heights) + gap * (len(found) - 1) + top + KEY
    figure = new_figure(width, height, title)
    above = top
    for heatmap, tall in zip(found, heights, strict=True):
        wide = len(heatmap.shown.columns) * CELL
        axes = figure.add_axes((left / width, 1 - (above + tall) / height, wide / width, tall / height))
        draw_map(axes, heatmap.shown.values, heatmap.shown.rows, heatmap.shown.columns)
        above += tall + gap
    draw_key(figure, left, "0", "1: all the weight of a row")
    return figure
