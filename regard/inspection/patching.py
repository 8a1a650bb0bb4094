"""Which activation carries the difference between two sources: patching (Vig et al., 2020; Meng et al., 2022).

The copying itself is in `copying.py`.
"""

import re
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from regard.foundation.display import columns
from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.inspection.copying import Spot, differences
from regard.inspection.drawing import CELL, INK, KEY, blank, draw_key, draw_map, name_height
from regard.inspection.layer_lens import LAYERS
from regard.inspection.maps import KINDS, Kind, kind_of
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.tasks.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENCODER_LAYERS = re.compile(r"encoder\.(entrance\.embedded|layers\.\d+\.states|states(\.\d+)?)")
"""The taps behind the embeddings and each encoder layer, of any encoder."""

SUMMARY = "encoder.summary"
"""The tap of the whole source as one vector."""

SMALLEST = 0.1
"""Nats by which the sources must differ: a share of less than that would be a share of noise."""

ONE_PAIR = (
    "These are exact values of one pair of sources, so they have no interval, and say nothing about other pairs: "
    "--pairs FILE gives means over many, with intervals."
)

MOST_TOLD = 25
"""Tokens of a source that an error shows."""

WIDEST = 12.0
"""Inches across that maps of a picture may stand side by side."""

Part = Literal["states", "attention", "heads"]
PARTS: dict[Part, str] = {
    "states": "States",
    "attention": "What attention adds",
    "heads": "Heads, at all positions",
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


@dataclass(frozen=True)
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

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Which activation carries the difference"

    @property
    def strongest(self) -> list[tuple[str, float]]:
        """Single activations by what they recover, most first."""
        found = [
            (f"{one.name}, {row}, {column}", value)
            for one in self.maps
            for row, line in zip(one.rows, one.values, strict=True)
            for column, value in zip(one.columns, line.tolist(), strict=True)
            if not isnan(value)
        ]
        return sorted(found, key=lambda item: -abs(item[1]))

    def to_json(self) -> dict[str, Any]:
        """Plain data: sources, answers and every map."""
        return {
            "clean": self.clean,
            "corrupted": self.corrupted,
            "read": self.read,
            "answer": self.answer,
            "instead": self.instead,
            "cleanDifference": round(self.before[0], 4),
            "corruptedDifference": round(self.before[1], 4),
            "wholes": [{"name": name, "recovery": round(value, 4)} for name, value in self.wholes],
            "maps": [
                {
                    "part": one.part,
                    "kind": one.kind,
                    "name": one.name,
                    "rows": one.rows,
                    "columns": one.columns,
                    "values": [[None if isnan(x) else round(x, 4) for x in row] for row in one.values.tolist()],
                }
                for one in self.maps
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
                ONE_PAIR,
            )
        )

    def _question(self) -> str:
        where = f'Behind "{" ".join(self.read[1:])}"' if len(self.read) > 1 else "As its first word"
        where = where if self.read else "Asked,"
        return (
            f'{where} the clean source leads to "{self.answer}", the corrupted one to "{self.instead}": '
            f"logit difference {self.before[0]:+.2f} and {self.before[1]:+.2f}."
        )

    def draw(self) -> "Figure":
        """Every map: blue recovers the clean answer, red leads further away."""
        left, cell, title = 1.0, CELL * 1.25, 0.45
        bands: list[list[Recovery]] = []
        for one in self.maps:  # what is of one part stands side by side, as far as a page is wide
            beside = [*bands[-1], one] if bands and bands[-1][0].part == one.part else []
            if beside and sum(len(each.columns) * cell + left for each in beside) <= WIDEST:
                bands[-1] = beside
            else:
                bands.append([one])
        names = [max(name_height(one.columns) for one in band) + 0.2 for band in bands]
        talls = [max(len(one.rows) for one in band) * cell for band in bands]
        width = max(sum(len(one.columns) * cell + left for one in band) for band in bands) + 0.8
        height = title + sum(names) + sum(talls) + 0.3 * len(bands) + KEY
        figure = blank(width, height, f"{self.answer} or {self.instead}: what is recovered")
        above = title
        for band, name, tall in zip(bands, names, talls, strict=True):
            above += name
            at = left
            for one in band:
                wide = len(one.columns) * cell
                deep = len(one.rows) * cell
                axes = figure.add_axes((at / width, 1 - (above + deep) / height, wide / width, deep / height))
                draw_map(axes, one.values, one.rows, one.columns, signed=True)
                axes.set_xlabel(one.name, fontsize=9, color=INK, loc="left", labelpad=3)
                at += wide + left
            above += tall + 0.3
        draw_key(figure, left + 0.6, "−1: led further away", "+1: all of the difference recovered", signed=True)
        return figure

    def panels(self) -> list[Panel]:
        """The two sources, whole parts, and the maps."""
        note = (
            "One activation of the clean pass is copied into the corrupted pass; a cell is the share of the difference "
            "between the two answers that this brings back: 1 is all of it, 0 nothing, below 0 it leads further away. "
            "Both passes read the same target up to the word where the answers part. In recurrent layers a copied "
            "state is read by what stands above, not carried on by the layer itself. "
            f"{ONE_PAIR}"
        )
        return [Panel("patch", self.to_json(), note=note)]


def patch(clean: Trace, corrupted: Trace, *, progress: Progress | None = None) -> Patching:
    """Copy every activation alone from a clean trace into the pass of a corrupted one, up to where their targets part.

    The sources must have as many tokens, so that positions correspond; the targets are the answers that are compared.
    """
    place = _parting(clean, corrupted)
    answer, instead = clean.target.ids[place], corrupted.target.ids[place]
    rows = [one.log_probabilities[place] for one in (clean, corrupted)]
    before = [float(row[answer] - row[instead]) for row in rows]  # of logits and of log-probabilities alike
    if before[0] - before[1] < SMALLEST:
        raise UsageError(
            f'The clean source favours "{clean.target.tokens[place]}" over "{corrupted.target.tokens[place]}" by '
            f"{before[0]:+.2f} nats, the corrupted one by {before[1]:+.2f}: there is no difference to recover. Choose "
            "sources (or targets) that the model tells apart."
        )
    layout, wholes = _layout(clean, corrupted, place), _wholes(clean)
    alone = [(spot,) for _, spots in layout for row in spots for spot in row if spot is not None]
    patches = [*alone, *(spots for _, spots in wholes)]
    found = differences(corrupted, clean.activations, patches, (answer, instead), place, progress=progress)
    shares = (found - before[1]) / (before[0] - before[1])
    each = iter(shares.tolist())
    maps = [
        replace(one, values=torch.tensor([[nan if spot is None else next(each) for spot in row] for row in spots]))
        for one, spots in layout
    ]
    return Patching(
        clean.source.tokens,
        corrupted.source.tokens,
        clean.inputs.tokens[: place + 1],
        clean.target.tokens[place],
        corrupted.target.tokens[place],
        (before[0], before[1]),
        maps,
        [(name, share) for (name, _), share in zip(wholes, each, strict=True)],
    )


def _parting(clean: Trace, corrupted: Trace) -> int:
    """The first target position where the answers differ, or what is wrong with the pair."""
    if clean.numeric:
        raise UsageError(
            "Patching compares two answers, and an estimate is one number: regard inspect attribute asks why."
        )
    if clean.parts != corrupted.parts or len(clean.source) != len(corrupted.source):
        raise UsageError(
            f"The sources have {len(clean.source)} and {len(corrupted.source)} tokens ({_begun(clean)} and "
            f"{_begun(corrupted)}), but each position must correspond to one: change words to words of as many tokens."
        )
    if clean.source.ids == corrupted.source.ids:
        raise UsageError("The two sources are the same to this model: change a word in one of them.")
    pairs = enumerate(zip(clean.target.ids, corrupted.target.ids, strict=False))
    place = next((place for place, (one, other) in pairs if one != other), None)
    if place is None:
        raise UsageError(
            f'Both sources lead to "{_said(clean)}": change another word, or name the output '
            "that the corrupted source should lead to (--instead)."
        )
    return place


def _said(trace: Trace) -> str:
    """What was said, without the end symbol."""
    special = dict(zip(trace.target.words, trace.target.special, strict=True))
    return " ".join(text for word, text in enumerate(trace.target.word_texts) if not special[word])


def _begun(trace: Trace) -> str:
    """The tokens of a source, so many that they can be read."""
    tokens = trace.source.tokens
    return "|".join(tokens[:MOST_TOLD]) + ("|…" if len(tokens) > MOST_TOLD else "")


_Layout = list[tuple[Recovery, list[list[Spot | None]]]]


def _layout(clean: Trace, corrupted: Trace, place: int) -> _Layout:
    """Every map still to be filled, with the spot of each cell."""
    pairs = zip(clean.source.tokens, corrupted.source.tokens, strict=True)
    source = [one if one == other else f"{one}/{other}" for one, other in pairs]
    target = (clean.target if clean.reads_only else clean.inputs).tokens[: place + 1]
    nothing = torch.zeros(0)
    found: _Layout = []

    def add(part: Part, kind: Kind, names: list[str], across: list[str], spots: list[list[Spot | None]]) -> None:
        if names and across:
            found.append((Recovery(part, kind, [_layer_name(name) for name in names], across, nothing), spots))

    def everywhere(names: list[str], across: list[str]) -> list[list[Spot | None]]:
        return [[Spot(name, at) for at in range(len(across))] for name in names]

    places = clean.picture.side.tokens if clean.picture else []
    whose = {"source": target, "picture": target, "decoder": target, "places": places}
    encoder = [name for name in clean.activations if ENCODER_LAYERS.fullmatch(name)]
    decoder = [name for name in clean.activations if LAYERS.fullmatch(name)]
    add("states", "encoder", encoder, source, everywhere(encoder, source))
    add("states", "decoder", decoder, target, everywhere(decoder, target))
    for kind, names in _attentions(clean).items():
        across = whose.get(kind, source)
        add("attention", kind, names, across, everywhere([f"{name}.output" for name in names], across))
        found_by = {f"{name}.head_outputs": len(clean.activations[f"{name}.head_outputs"]) for name in names}
        most = max(found_by.values())
        if sum(found_by.values()) > 1:
            spots = [[Spot(tap, head=n) if n < count else None for n in range(most)] for tap, count in found_by.items()]
            add("heads", kind, names, [f"head {n}" for n in range(most)], spots)
    return sorted(found, key=lambda item: list(PARTS).index(item[0].part))


def _wholes(clean: Trace) -> list[tuple[str, tuple[Spot, ...]]]:
    """Parts that are copied at once, at all positions."""
    layers = [name for name in clean.activations if ENCODER_LAYERS.fullmatch(name)]
    found: list[tuple[str, tuple[Spot, ...]]] = [
        ("the source's states, all layers", tuple(Spot(name) for name in layers)),
    ]
    if not clean.parts:  # of texts that are read apart, there is a vector each
        found.append(("the source as one vector", (Spot(SUMMARY),)))
        found.append(("both: all that the encoder leaves", (Spot(layers[-1]), Spot(SUMMARY))))
    for kind, names in _attentions(clean).items():
        found.append((f"all attention {KINDS[kind]}", tuple(Spot(f"{name}.output") for name in names)))
    return found


def _attentions(clean: Trace) -> dict[Kind, list[str]]:
    """The names of all attentions by what they join."""
    found: dict[Kind, list[str]] = {}
    for name in clean.matching("*.head_outputs"):
        path = name.removesuffix(".head_outputs")
        found.setdefault(kind_of(path), []).append(path)
    return found


def _layer_name(name: str) -> str:
    """What a tap's layer is called on maps."""
    if name.endswith("embedded"):
        return "embedding"
    return f"layer {next((part for part in name.split('.') if part.isdigit()), 0)}"
