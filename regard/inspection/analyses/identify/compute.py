"""Identifiability in one sentence (Brunner et al., 2020).

Are the weights of a head the only ones that do what they do? How much of each token is still in its hidden state?

Axes: H heads, S source tokens, T target tokens, L layers (the embedding first).
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

import torch
from torch import Tensor

from regard.foundation.progress import Progress
from regard.inspection.analyses.identify.effective import Mixed, Slices, correlation, other_weights, project
from regard.inspection.analyses.identify.result import Demonstration, Head, Heads, Identifiability
from regard.inspection.analyses.identify.token_mixing import Mixing, affordable, measure_mixing
from regard.inspection.attention_kinds import kind_of, layer_of
from regard.inspection.interventions import attentions
from regard.inspection.states import end_of_text
from regard.models import Model
from regard.models.encoder_model import EncoderModel
from regard.nn.taps import Write
from regard.tasks.trace import Side, Trace, spans


def identify(trace: Trace, *, exact: bool = False, progress: Progress | None = None) -> Identifiability:
    """Raw and effective attention of every head, replaced to see that nothing changes; contributions of tokens."""
    found: list[Heads] = []
    effective: dict[str, Tensor] = {}
    others: dict[str, Tensor] = {}
    asked = attentions(trace.model)
    for number, (name, module) in enumerate(asked.items()):
        if progress:
            progress("looking at attention", number, len(asked) + 2)
        weights, values = trace.activations.get(f"{name}.weights"), trace.activations.get(f"{name}.values")
        if weights is None or values is None:
            continue
        kind = kind_of(name)
        causal = kind == "decoder"
        heads, moved = [], []
        for raw, what in zip(weights, Slices.of(module, values.shape[2]).mix(values), strict=True):
            if trace.parts:
                head, other = _text_by_text(raw, what, spans(name, trace.parts))
                heads.append(head)
                moved.append(other)
                continue
            part, rank = project(raw, what, causal=causal)
            same_sum, _ = project(raw, what, causal=causal, sums=True)
            heads.append(Head(raw, part, same_sum, rank, correlation(raw, part, causal=causal)))
            moved.append(other_weights(raw, what, causal=causal))
        layer = layer_of(name)
        found.append(Heads(name, kind, layer, values.shape[1], values.shape[2], heads))
        effective[name] = torch.stack([head.effective for head in heads])
        others[name] = torch.stack(moved)
    seen = end_of_text(trace.model)
    read = trace.inputs if seen == "decoder" else trace.source
    projections = None if exact else affordable(len(read))
    if progress:
        progress("looking at attention", len(asked), len(asked) + 2)
    blended = None if seen is None else _measure_mixing(trace.model, read, trace.parts, projections)
    shown = demonstrate(trace, effective, others)
    picture = trace.picture if trace.reads_only else None
    places = picture.side if picture else Side([], [], [], [])
    return Identifiability(trace.source, trace.target, trace.inputs, places, found, shown, read, blended, projections)


def demonstrate(trace: Trace, effective: dict[str, Tensor], others: dict[str, Tensor]) -> list[Demonstration]:
    """Replace the weights of all heads at once by others with the same output; returns nothing without a null space."""
    raw = {name: trace.activations[f"{name}.weights"] for name in effective}
    if all(torch.equal(effective[name], raw[name]) for name in raw):
        return []
    generator = torch.Generator().manual_seed(0)
    chance = {}
    for name, old in raw.items():  # the same change of every row, moved to other tokens that it may look at
        causal = kind_of(name) == "decoder"
        drawn = torch.rand(old.shape, generator=generator)
        drawn = drawn.masked_fill(~torch.ones_like(old, dtype=torch.bool).tril(), 2.0) if causal else drawn
        chance[name] = old + (effective[name] - old).gather(-1, drawn.argsort(-1))
    wanted: list[tuple[Literal["effective", "elsewhere", "control"], dict[str, Tensor]]] = [
        ("effective", effective),
        ("elsewhere", others),
        ("control", chance),
    ]
    shown = []
    for what, weights in wanted:
        again = trace.again({f"{name}.weights": _hold_weights(new, name, trace.parts) for name, new in weights.items()})
        change = float((again.log_probabilities - trace.log_probabilities).abs().max())
        rows = [(weights[name], raw[name]) for name in raw]
        moved = torch.cat([(new - old).abs().sum(-1).flatten() / 2 for new, old in rows])
        other = torch.cat([(new.argmax(-1) != old.argmax(-1)).flatten() for new, old in rows])
        shown.append(Demonstration(what, float(moved.mean()), float(other.double().mean()), change))
    return shown


def _measure_mixing(model: Model | EncoderModel, read: Side, parts: Sequence[int], projections: int | None) -> Mixing:
    """The contributions of the tokens of a side; texts that are read apart contribute nothing to each other."""
    ends = list(accumulate(parts or (len(read),)))
    texts = [read.ids[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    found = [measure_mixing(model, ids, projections=projections) for ids in texts]
    shares, errors = (
        torch.stack([_diagonal(blocks) for blocks in zip(*per_text, strict=True)])
        for per_text in (
            [text_mixing.contributions for text_mixing in found],
            [text_mixing.error for text_mixing in found],
        )
    )
    return Mixing(shares, errors)


def _text_by_text(raw: Tensor, what: Mixed, blocks: Sequence[tuple[slice, slice]]) -> tuple[Head, Tensor]:
    """A head over texts that are encoded separately: each text has its own null space."""
    part, same_sum, other, rank = raw.clone(), raw.clone(), raw.clone(), 0
    for block in blocks:
        here, seen = raw[block], Mixed(what.rows[block[1]], what.width)
        part[block], found = project(here, seen, causal=False)
        same_sum[block], _ = project(here, seen, causal=False, sums=True)
        other[block] = other_weights(here, seen, causal=False)
        rank += found
    return Head(raw, part, same_sum, rank, correlation(raw, part, causal=False)), other


def _diagonal(blocks: Sequence[Tensor]) -> Tensor:
    """Return a block-diagonal matrix."""
    whole: Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    return whole


def _hold_weights(weights: Tensor, name: str, parts: Sequence[int]) -> Write:
    """Weights H×T×S in place of the model's own, all at once or step by step, or text by text."""
    given = 0
    left = iter(spans(name, parts))

    def write(was: Tensor) -> Tensor:  # B×H×n×S
        nonlocal given
        if parts:
            down, across = next(left)
            return weights[:, down, across].to(was).expand_as(was)
        rows = weights[:, given : given + was.shape[2]].to(was)
        given += was.shape[2]
        return rows.expand_as(was)

    return write
