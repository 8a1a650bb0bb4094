"""Interventions: what `Trace.again(…)` and `taps.watch(…, write=…)` take to change one thing inside the real model.

    from regard.inspection import interventions
    trace.again(interventions.scale_head("encoder.layers.0.attention", head=2, by=0.0))

Axes: B batch, H heads, T queries, S keys, K head width.
"""

from collections.abc import Mapping, Sequence

from torch import Tensor, nn

from regard.foundation.errors import UsageError
from regard.nn.attention import Attention
from regard.nn.taps import Write


def attentions(model: nn.Module) -> dict[str, Attention]:
    """Every attention of a model by its name, the encoder's first: `encoder.layers.0.attention`, …"""
    found = {name: module for name, module in model.named_modules() if isinstance(module, Attention)}
    return dict(sorted(found.items(), key=lambda item: not item[0].startswith("encoder")))


def scale_head(attention: str, head: int, by: float) -> dict[str, Write]:
    """What a head found is multiplied by a number; 0 switches the head off."""
    return scale_heads({(attention, head): by})


def scale_heads(factors: Mapping[tuple[str, int], float]) -> dict[str, Write]:
    """Several heads, each multiplied by its number."""
    by_attention: dict[str, dict[int, float]] = {}
    for (attention, head), factor in factors.items():
        by_attention.setdefault(attention, {})[head] = factor
    return {f"{attention}.head_outputs": _scaling(attention, of) for attention, of in by_attention.items()}


def _scaling(attention: str, factors: Mapping[int, float]) -> Write:
    def write(found: Tensor) -> Tensor:  # B×H×T×K
        heads = found.shape[1]
        unknown = sorted(head for head in factors if not 0 <= head < heads)
        if unknown:
            raise UsageError(f"{attention} has no head {unknown[0]}: use 0 to {heads - 1}.")
        scales = found.new_ones(heads)
        for head, factor in factors.items():
            scales[head] = factor
        return found * scales[:, None, None]

    return write


def replace(name: str, value: Tensor, positions: Sequence[int] | None = None) -> dict[str, Write]:
    """An activation becomes a given value (with or without its batch axis), everywhere or at some positions only.

    Positions count along the axis before the last: tokens, for states T×D and for head outputs H×T×K alike.
    """

    def write(was: Tensor) -> Tensor:
        if value.shape[-2:] != was.shape[-2:]:
            raise UsageError(
                f"{name} is {was.shape[-2]} by {was.shape[-1]} here, but the value for it is {value.shape[-2]} by "
                f"{value.shape[-1]}: take it from a text with as many tokens."
            )
        if positions is not None and not all(-was.shape[-2] <= position < was.shape[-2] for position in positions):
            raise UsageError(f"{name} has positions 0 to {was.shape[-2] - 1}: choose among those.")
        new = value.to(was).expand_as(was)
        if positions is None:
            return new
        mixed = was.clone()
        mixed[..., list(positions), :] = new[..., list(positions), :]
        return mixed

    return {name: write}


def freeze_attention(attention: str, weights: Tensor, head: int | None = None) -> dict[str, Write]:
    """The weights of an attention (H×T×S), or of one head of it (T×S), are held fast whatever the model reads."""

    def write(was: Tensor) -> Tensor:  # B×H×T×S
        if head is None:
            return weights.to(was).expand_as(was)
        mixed = was.clone()
        mixed[:, head] = weights.to(was)
        return mixed

    return {f"{attention}.weights": write}
