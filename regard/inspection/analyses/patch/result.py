"""Which activation carries the difference between two sources: patching (Vig et al., 2020; Meng et al., 2022).

The copying itself is in `copying.py`.
"""

from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from regard.foundation.display import columns
from regard.inspection.attention_kinds import KINDS, Kind
from regard.inspection.drawing import CELL, INK, KEY, draw_key, draw_map, label_height, new_figure
from regard.inspection.page import Panel
from regard.inspection.plain_data import rounded_number
from regard.inspection.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ONE_PAIR = (
    "These are exact values of one pair of sources, so they have no interval, and say nothing about other pairs: "
    "--pairs FILE gives means over many, with intervals."
)

COPIED = (
    "This model also copies words of its source. They are no activations and stay those of the corrupted source, so "
    "that even all states together need not recover the difference."
)

MOST_TOLD = 25
"""Tokens of a source that an error shows."""

WIDEST = 12.0
"""Width in inches up to which maps are drawn side by side."""

Part = Literal["states", "attention", "heads", "feed_forward"]

PARTS: dict[Part, str] = {
    "states": "States",
    "attention": "What attention adds",
    "heads": "Heads, at all positions",
    "feed_forward": "Hidden units of feed-forward blocks",
}


@dataclass(frozen=True)
class Recovery:
    """A map of recoveries: what copying each activation alone brings back of the clean answer, 1 being all of it."""

    part: Part
    kind: Kind
    rows: list[str]
    """Layers."""
    columns: list[str]
    """Positions, or heads (counted among those that are left)."""
    values: Tensor
    """Rows × columns; no number where a layer has fewer heads than others."""

    @property
    def name(self) -> str:
        """What it is a map of."""
        if self.part == "states":
            return f"{self.kind} states"
        return f"{self.part}, {KINDS[self.kind]}"


@dataclass(frozen=True, repr=False)
class Patching(Result):
    """The share of a difference that copying an activation from the clean pass into the corrupted one recovers.

        recovery = (patched − corrupted) / (clean − corrupted)

    each the difference of the logits of the clean and the corrupted answer, at the first place where they part.
    """

    clean: list[str]
    """The tokens of the clean source."""
    corrupted: list[str]
    """Those of the corrupted source, as many."""
    read: list[str]
    """The target tokens read before the answers, the same in all passes."""
    answer: str
    """What the clean source leads to."""
    instead: str
    """What the corrupted source leads to."""
    before: tuple[float, float]
    """The logit difference in the clean pass and in the corrupted pass."""
    maps: list[Recovery]
    wholes: list[tuple[str, float]]
    """Recoveries of whole parts at once: every state of the encoder, one kind of attention on all layers, …"""
    copies: bool = False
    """Whether the model copies words of its source (`model.copying`)."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Which activation carries the difference"

    @property
    def strongest(self) -> list[tuple[str, float]]:
        """Single activations by what they recover, most first."""
        found = [
            (f"{heatmap.name}, {row}, {column}", value)
            for heatmap in self.maps
            for row, line in zip(heatmap.rows, heatmap.values, strict=True)
            for column, value in zip(heatmap.columns, line.tolist(), strict=True)
            if not isnan(value)
        ]
        return sorted(found, key=lambda item: -abs(item[1]))

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.clean)} source tokens, {len(self.maps)} maps"

    def to_json(self) -> dict[str, Any]:
        """Plain data: sources, answers and every map."""
        return {
            "clean": self.clean,
            "corrupted": self.corrupted,
            "read": self.read,
            "answer": self.answer,
            "instead": self.instead,
            "cleanDifference": rounded_number(self.before[0]),
            "corruptedDifference": rounded_number(self.before[1]),
            "wholes": [{"name": name, "recovery": rounded_number(value)} for name, value in self.wholes],
            "maps": [
                {
                    "part": heatmap.part,
                    "kind": heatmap.kind,
                    "name": heatmap.name,
                    "rows": heatmap.rows,
                    "columns": heatmap.columns,
                    "values": [
                        [None if isnan(x) else rounded_number(x) for x in row] for row in heatmap.values.tolist()
                    ],
                }
                for heatmap in self.maps
            ],
        }

    def __str__(self) -> str:
        """The question, the whole parts, and the ten single activations that recover most."""
        shown = [[name, f"{value:.2f}"] for name, value in self.wholes]
        best = [[name, f"{value:.2f}"] for name, value in self.strongest[:10]]
        return "\n\n".join(
            (
                self._question(),
                columns([["copied as a whole", "recovers"], *shown], right=(1,)),
                columns([["copied alone", "recovers"], *best], right=(1,)),
                *([COPIED] if self.copies else []),
                ONE_PAIR,
            )
        )

    def _question(self) -> str:
        where = f'After "{" ".join(self.read[1:])}"' if len(self.read) > 1 else "As its first word"
        where = where if self.read else "Asked,"
        return (
            f'{where} the clean source leads to "{self.answer}", the corrupted one to "{self.instead}": '
            f"logit difference {self.before[0]:+.2f} and {self.before[1]:+.2f}."
        )

    def draw(self) -> "Figure":
        """Every map: blue recovers the clean answer, red leads further away."""
        left, cell, title = 1.0, CELL * 1.25, 0.45
        bands: list[list[Recovery]] = []
        for heatmap in self.maps:  # what is of one part stands side by side, as far as a page is wide
            longer_band = [*bands[-1], heatmap] if bands and bands[-1][0].part == heatmap.part else []
            if longer_band and sum(len(neighbour.columns) * cell + left for neighbour in longer_band) <= WIDEST:
                bands[-1] = longer_band
            else:
                bands.append([heatmap])
        names = [max(label_height(heatmap.columns) for heatmap in band) + 0.2 for band in bands]
        talls = [max(len(heatmap.rows) for heatmap in band) * cell for band in bands]
        width = max(sum(len(heatmap.columns) * cell + left for heatmap in band) for band in bands) + 0.8
        height = title + sum(names) + sum(talls) + 0.3 * len(bands) + KEY
        figure = new_figure(width, height, f"{self.answer} or {self.instead}: what is recovered")
        above = title
        for band, name, tall in zip(bands, names, talls, strict=True):
            above += name
            at = left
            for heatmap in band:
                wide = len(heatmap.columns) * cell
                deep = len(heatmap.rows) * cell
                axes = figure.add_axes((at / width, 1 - (above + deep) / height, wide / width, deep / height))
                draw_map(axes, heatmap.values, heatmap.rows, heatmap.columns, signed=True)
                axes.set_xlabel(heatmap.name, fontsize=9, color=INK, loc="left", labelpad=3)
                at += wide + left
            above += tall + 0.3
        draw_key(figure, left + 0.6, "−1: led further away", "+1: all of the difference recovered", signed=True)
        return figure

    def panels(self) -> list[Panel]:
        """The two sources, whole parts, and the maps."""
        note = (
            "One activation of the clean pass is copied into the corrupted pass; a cell is the share of the difference "
            "between the two answers that this brings back: 1 is all of it, 0 nothing, below 0 it leads further away. "
            "Both passes read the same target up to the word where the answers differ. In recurrent layers a copied "
            "state is read by what stands above, not carried on by the layer itself. "
            f"{COPIED + ' ' if self.copies else ''}{ONE_PAIR}"
        )
        return [Panel("patch", self.to_json(), note=note)]
