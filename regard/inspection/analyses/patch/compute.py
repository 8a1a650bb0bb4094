"""Which activation carries the difference between two sources: patching (Vig et al., 2020; Meng et al., 2022).

The copying itself is in `copying.py`.
"""

import re
from dataclasses import replace
from math import nan
from typing import cast

import torch

from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.inspection.analyses.patch.copying import Spot, differences
from regard.inspection.analyses.patch.result import MOST_TOLD, PARTS, Part, Patching, Recovery
from regard.inspection.attention_kinds import KINDS, Kind, kind_of
from regard.inspection.states import DECODER_LAYERS, layer_name
from regard.tasks.trace import Trace

ENCODER_LAYERS = re.compile(r"encoder\.(entrance\.embedded|layers\.\d+\.states|states(\.\d+)?)")
"""The taps after the embeddings and after each layer of an encoder of any kind."""

SUMMARY = "encoder.summary"
"""The tap of the whole source as one vector."""

SMALLEST = 0.1
"""Nats by which the sources must differ: a share of less than that would be a share of noise."""


def patch(clean: Trace, corrupted: Trace, *, inside: bool = False, progress: Progress | None = None) -> Patching:
    """Copy every activation alone from a clean trace into the pass of a corrupted one, up to where their targets part.

    With `inside`, also the states between the blocks of each Transformer layer and the hidden units of feed-forward
    blocks.

    The sources must have as many tokens, so that positions correspond; the targets are the answers that are compared.
    """
    position = _first_difference(clean, corrupted)
    answer, instead = clean.target.ids[position], corrupted.target.ids[position]
    rows = [trace.log_probabilities[position] for trace in (clean, corrupted)]
    before = [float(row[answer] - row[instead]) for row in rows]  # of logits and of log-probabilities alike
    if before[0] - before[1] < SMALLEST:
        raise UsageError(
            f'The clean source favours "{clean.target.tokens[position]}" over "{corrupted.target.tokens[position]}" by '
            f"{before[0]:+.2f} nats, the corrupted one by {before[1]:+.2f}: there is no difference to recover. Choose "
            "sources (or targets) that the model tells apart."
        )
    layout, wholes = _layout(clean, corrupted, position, inside=inside), _wholes(clean)
    alone = [(spot,) for _, spots in layout for row in spots for spot in row if spot is not None]
    patches = [*alone, *(spots for _, spots in wholes)]
    found = differences(corrupted, clean.activations, patches, (answer, instead), position, progress=progress)
    shares = (found - before[1]) / (before[0] - before[1])
    recovered = iter(shares.tolist())
    maps = [
        replace(
            heatmap, values=torch.tensor([[nan if spot is None else next(recovered) for spot in row] for row in spots])
        )
        for heatmap, spots in layout
    ]
    return Patching(
        clean.source.tokens,
        corrupted.source.tokens,
        clean.inputs.tokens[: position + 1],
        clean.target.tokens[position],
        corrupted.target.tokens[position],
        (before[0], before[1]),
        maps,
        [(name, share) for (name, _), share in zip(wholes, recovered, strict=True)],
        copies=clean.model.cell.copying,
    )


def _first_difference(clean: Trace, corrupted: Trace) -> int:
    """The first target position where the answers differ, or what is wrong with the pair."""
    if clean.numeric:
        raise UsageError(
            "Patching compares two answers, and an estimate is one number: regard inspect attribute explains it."
        )
    if clean.parts != corrupted.parts or len(clean.source) != len(corrupted.source):
        raise UsageError(
            f"The sources have {len(clean.source)} and {len(corrupted.source)} tokens ({_source_text(clean)} and "
            f"{_source_text(corrupted)}), but their positions must correspond: change words to words of as many tokens."
        )
    if clean.source.ids == corrupted.source.ids:
        raise UsageError("The two sources are the same to this model: change a word in one of them.")
    pairs = enumerate(zip(clean.target.ids, corrupted.target.ids, strict=False))
    position = next((position for position, (token_id, other) in pairs if token_id != other), None)
    if position is None:
        raise UsageError(
            f'Both sources lead to "{_output_text(clean)}": change another word, or name the output '
            "that the corrupted source should lead to (--instead)."
        )
    return position


def _output_text(trace: Trace) -> str:
    """Return the output, without the end symbol."""
    special = dict(zip(trace.target.words, trace.target.special, strict=True))
    return " ".join(text for word, text in enumerate(trace.target.word_texts) if not special[word])


def _source_text(trace: Trace) -> str:
    """Return the tokens of a source as text; long ones are cut."""
    tokens = trace.source.tokens
    return "|".join(tokens[:MOST_TOLD]) + ("|…" if len(tokens) > MOST_TOLD else "")


_Layout = list[tuple[Recovery, list[list[Spot | None]]]]


def _layout(clean: Trace, corrupted: Trace, position: int, *, inside: bool) -> _Layout:
    """Every map still to be filled, with the spot of each cell."""
    pairs = zip(clean.source.tokens, corrupted.source.tokens, strict=True)
    source = [token if token == other else f"{token}/{other}" for token, other in pairs]
    target = (clean.target if clean.reads_only else clean.inputs).tokens[: position + 1]
    nothing = torch.zeros(0)
    found: _Layout = []

    def add(part: Part, kind: Kind, names: list[str], across: list[str], spots: list[list[Spot | None]]) -> None:
        if names and across:
            found.append((Recovery(part, kind, [layer_name(name) for name in names], across, nothing), spots))

    def everywhere(names: list[str], across: list[str]) -> list[list[Spot | None]]:
        return [[Spot(name, at) for at in range(len(across))] for name in names]

    places = clean.picture.side.tokens if clean.picture else []
    whose = {"source": target, "picture": target, "decoder": target, "places": places}
    encoder = [name for name in clean.activations if ENCODER_LAYERS.fullmatch(name)]
    decoder = [name for name in clean.activations if DECODER_LAYERS.fullmatch(name)]
    if inside:
        encoder = [*encoder[:1], *_inside(clean, "encoder", encoder[1:])]
        decoder = _inside(clean, "decoder", decoder)
        for kind, across in (("encoder", source), ("decoder", target)):
            hidden = list(clean.matching(f"{kind}.layers.*.feed_forward.hidden"))
            add("feed_forward", cast(Kind, kind), hidden, across, everywhere(hidden, across))
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


def _inside(clean: Trace, end: str, layers: list[str]) -> list[str]:
    """Add the states between the blocks of Transformer layers to the states after layers, in their order."""
    between = clean.matching(f"{end}.layers.*.after_*attention")
    return [name for name in clean.activations if name in layers or name in between]


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
