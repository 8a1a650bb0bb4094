"""Collects the attention of a trace: every head of every layer.

Axes: S source tokens, T target tokens, H heads.
"""

from regard.foundation.errors import UsageError
from regard.inspection.analyses.attention.looks import Look
from regard.inspection.analyses.attention.result import Attention, Heads
from regard.inspection.attention_kinds import KINDS, Kind, kind_of, layer_of
from regard.inspection.requirements import NO_ATTENTION, NO_ATTENTION_INSIDE, NO_JOIN
from regard.inspection.states import end_of_text
from regard.tasks.trace import Trace


def attention(
    trace: Trace, kind: Kind | None = None, layer: int | None = None, head: int | None = None, *, words: bool = False
) -> Attention:
    """All the attention of a trace: to the source, inside the source and inside the target.

    `kind`, `layer` and `head` (counted from 0; by default the mean) choose the map that tables and pictures show and
    that the page opens with; `words` merges its tokens into words.
    """
    found: list[Heads] = []
    for name, weights in trace.matching("*.weights").items():
        path = name.removesuffix(".weights")
        number = layer_of(path)
        found.append(Heads(path, kind_of(path), number, weights if weights.dim() == 3 else weights[None]))
    if not found:
        without = NO_ATTENTION if end_of_text(trace.model) else NO_ATTENTION_INSIDE
        raise UsageError(without if trace.reads_only else NO_JOIN)
    kinds = [kind for kind in KINDS if any(heads.kind == kind for heads in found)]
    kind = kind or kinds[0]
    layer = _check(kind, kinds, layer, head, found, trace)
    look = Look.of(trace) if trace.picture else Look.of_sound(trace)
    return Attention(trace.source, trace.target, trace.inputs, found, kind, layer, head, words, look)


def _check(
    kind: Kind, kinds: list[Kind], layer: int | None, head: int | None, found: list[Heads], trace: Trace
) -> int | None:
    """The layer that is meant, or what is wrong with the choice."""
    if kind not in kinds:
        if kind not in KINDS:
            raise UsageError(f'There is no attention of the kind "{kind}": use one of {", ".join(KINDS)}.')
        why = _why(kind, trace)
        has = " and ".join(f"{kind} ({KINDS[kind]})" for kind in kinds)
        raise UsageError(f"This model does not look {KINDS[kind]}: {why}. It has attention of the kind {has}.")
    layers = {heads.layer: len(heads.weights) for heads in found if heads.kind == kind}
    if layer is not None and layer not in layers:
        raise UsageError(f"There is no layer {layer} that looks {KINDS[kind]}: layers are {_range(len(layers))}.")
    if head is None:
        return layer
    if layer is None and len(layers) > 1:
        raise UsageError(
            f"Head {head} of which layer? Heads of different layers have nothing but their number in common: give a "
            f"layer, {_range(len(layers))}."
        )
    heads = layers[min(layers) if layer is None else layer]
    if not 0 <= head < heads:
        raise UsageError(f"There is no head {head} there: heads are {_range(heads)}.")
    return min(layers) if layer is None else layer


SIDES_LACKING: dict[Kind, str] = {
    "picture": "it does not read an image together with a text",
    "places": "it does not read an image together with a text, or not by patches (model.picture.form=patches)",
    "between": "it does not read two texts apart and attend from one to the other (task.pairs=attended)",
}
"""Why a model lacks kinds of attention that few models have."""


def _why(kind: Kind, trace: Trace) -> str:
    """Why a model has no attention of a kind."""
    if kind in SIDES_LACKING:
        return SIDES_LACKING[kind]
    if kind == "source" and trace.reads_only:
        return "its states are not pooled by attention (task.pool=attention)"
    if kind == "source":
        return "its join is a fixed vector" if len(trace.source) else "it is a language model, and has no source"
    if kind == "encoder" and not len(trace.source):
        return "it is a language model, and has no source"
    return "it has no decoder" if kind == "decoder" and trace.reads_only else f"its {kind} has no self-attention"


def _range(count: int) -> str:
    return "0" if count == 1 else f"0 to {count - 1}"
