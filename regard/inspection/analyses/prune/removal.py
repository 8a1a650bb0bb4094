"""Removes heads from a model's weights: the smaller model computes what the whole one did with these heads at zero."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch

from regard.config import model as config
from regard.foundation.errors import UsageError
from regard.foundation.weights import put_weights, weights_of
from regard.inspection.interventions import attentions
from regard.models import Model
from regard.models.encoder_model import EncoderModel

Kept = Mapping[str, Sequence[int]]
"""The heads to be left of an attention, by its name; an attention that is not named keeps all."""

M = TypeVar("M", bound=Model | EncoderModel)


def without_heads(model: M, kept: Kept, build: Callable[[config.Model], M]) -> M:
    """A new model that has only these heads of the old one's; an attention with none left gives its bias alone.

    `build` makes a model like the old one of another cell.
    """
    found = attentions(model)
    for name, heads in kept.items():
        if name not in found:
            raise UsageError(f"This model has no attention called {name}: it has {', '.join(found) or 'none'}.")
        if found[name].out is None:
            raise UsageError(NO_PROJECTIONS)
        if list(heads) != sorted(set(heads)) or any(not 0 <= head < found[name].heads for head in heads):
            raise UsageError(f"{name} has heads 0 to {found[name].heads - 1}: {list(heads)} are not among them.")
    weights = weights_of(model)
    for name, heads in kept.items():
        left = found[name].weights_of_heads(heads)
        weights |= {f"{name}.{part}": tensor for part, tensor in left.items() if f"{name}.{part}" in weights}
    random = torch.get_rng_state()  # the weights that a new model draws are written over at once
    smaller = build(cell_without_heads(model.cell, kept))
    torch.set_rng_state(random)
    put_weights(smaller, weights)
    smaller.to(model.device).train(model.training)
    return smaller


NO_PROJECTIONS = (
    "The heads of this model cannot be taken apart: its attention has no projections (model.attention.project is off)."
)


def cell_without_heads(cell: config.Model, kept: Kept) -> config.Model:
    """The cell of a model of which only these heads are kept; heads are numbered as they stand in it now."""
    pruned = dict(cell.pruned or {})
    for name, heads in kept.items():
        before = pruned.get(name, list(range(cell.attention.heads or 1)))
        pruned[name] = [before[head] for head in heads]
    whole = list(range(cell.attention.heads or 1))
    return cell.model_copy(update={"pruned": {name: left for name, left in pruned.items() if left != whole} or None})
