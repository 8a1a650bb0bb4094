"""What training minimises: label-smoothed cross-entropy, fused with the output projection.

The logits of a batch, B×T×V, are its largest tensor by far. Here they never exist whole: a chunk of rows is projected,
its loss and its gradients are taken at once, and the memory is used again. E is the width of the output states.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.text.specials import PAD

CHUNK_ELEMENTS = 2_000_000
"""Logits held at a time: large enough for matrix products at full speed, small enough to stay near the cache."""


class Loss(NamedTuple):
    """The loss of some target tokens."""

    smoothed: Tensor
    """Label-smoothed cross-entropy, summed and multiplied by `scale`: what is differentiated."""
    nll: Tensor
    """Negative log-likelihood, summed: what perplexity is made of."""
    tokens: int
    """How many target tokens, padding not counted."""


def cross_entropy(
    states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, *, smoothing: float = 0.0, scale: float = 1.0
) -> Loss:
    """Cross-entropy of `states @ weight.T + bias` (states …×E, weight V×E, bias V) with targets …, padding ignored."""
    rows = torch.nonzero(targets.reshape(-1) != PAD).squeeze(1)  # N
    wanted = targets.reshape(-1)[rows]  # N
    smoothed, nll = _Fused.apply(states, weight, bias, rows, wanted, smoothing, scale)  # type: ignore[no-untyped-call]
    return Loss(smoothed, nll, len(rows))


class _Fused(torch.autograd.Function):
    r"""Loss and gradients of a softmax layer in one pass over chunks of rows.

    With z = xWᵀ + b, p = softmax(z) and smoothing ε (Szegedy et al., 2016):
    loss = (1−ε)·(lse(z) − z_y) + ε·(lse(z) − mean(z)), and ∂loss/∂z = p − (1−ε)·onehot(y) − ε/V.
    The last term is the same for all z, so it is added to the gradients of x, W and b as one vector each; and p is kept
    as exp(z − max z), whose sum divides the narrow x rather than the wide p.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        rows: Tensor,
        targets: Tensor,
        smoothing: float,
        scale: float,
    ) -> tuple[Tensor, Tensor]:
        with torch.autocast(states.device.type, enabled=False):
            return _forward(ctx, states, weight, bias, rows, targets, smoothing, scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        outer = gradients[0]
        return *(part if part is None else part.mul_(outer) for part in ctx.saved_tensors), None, None, None, None


def _forward(
    ctx: Any,
    states: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    rows: Tensor,
    targets: Tensor,
    smoothing: float,
    scale: float,
) -> tuple[Tensor, Tensor]:
    flat = states.reshape(-1, states.shape[-1])  # …×E
    vocabulary = weight.shape[0]
    narrow = weight.to(flat.dtype)  # V×E
    precise = torch.float64 if flat.dtype == torch.float64 else torch.float32
    wants_gradient = any(ctx.needs_input_grad)
    grad_flat = torch.zeros_like(flat) if wants_gradient else None
    moves = ctx.needs_input_grad[1]  # a frozen output layer needs no gradient of its own
    grad_weight = torch.zeros_like(weight, dtype=precise) if wants_gradient and moves else None
    grad_bias = torch.zeros_like(bias, dtype=precise) if wants_gradient and bias is not None else None
    centre = narrow.to(precise).mean(0)  # E: mean(z) = x·centre + mean(b)
    offset = bias.to(precise).mean() if bias is not None else 0.0
    exact = torch.float32 if flat.device.type == "mps" else torch.float64  # Apple's GPU knows no double precision
    smoothed = torch.zeros((), dtype=exact, device=flat.device)
    nll = torch.zeros((), dtype=exact, device=flat.device)

    chunk = max(1, CHUNK_ELEMENTS // vocabulary)
    for start in range(0, len(rows), chunk):
        place, wanted = rows[start : start + chunk], targets[start : start + chunk]  # C
        x = flat[place]  # C×E
        z = x @ narrow.t() if bias is None else torch.addmm(bias.to(x.dtype), x, narrow.t())  # C×V
        z = z.to(precise)
        true = z.gather(1, wanted[:, None]).squeeze(1)  # C
        largest = z.amax(1)  # C
        z.sub_(largest[:, None]).exp_()
        total = z.sum(1)  # C
        surprise = largest + total.log() - true  # C
        mean = x.to(precise) @ centre + offset  # C
        spread = surprise + true - mean  # C: lse(z) − mean(z)
        nll += surprise.sum(dtype=exact)
        smoothed += ((1 - smoothing) * surprise + smoothing * spread).sum(dtype=exact)
        if grad_flat is None:
            continue
        z.scatter_add_(1, wanted[:, None], (total * (smoothing - 1))[:, None])
        share = (scale / total)[:, None]  # C×1
        z = z.to(x.dtype)
        grad_x = (z @ narrow).to(precise) * share - (scale * smoothing) * centre  # C×E
        grad_flat[place] = grad_x.to(flat.dtype)
        if grad_weight is not None:
            _add_product(grad_weight, z, (x.to(precise) * share).to(x.dtype))
        if grad_bias is not None:
            grad_bias += (z.t() @ share.to(z.dtype)).squeeze(1)

    if grad_flat is not None:
        even = scale * smoothing / vocabulary
        if grad_weight is not None:
            grad_weight -= even * flat[rows].sum(0, dtype=precise)
        if grad_bias is not None:
            grad_bias -= even * len(rows)
        ctx.save_for_backward(
            grad_flat.view(states.shape),
            None if grad_weight is None else grad_weight.to(weight.dtype),
            grad_bias if bias is None or grad_bias is None else grad_bias.to(bias.dtype),
        )
    smoothed = (smoothed * scale).to(precise)
    nll = nll.to(precise)
    ctx.mark_non_differentiable(nll)
    return smoothed, nll


def _add_product(total: Tensor, z: Tensor, x: Tensor) -> None:
    """total V×E += zᵀx of z C×V and x C×E, in one kernel where their precision allows it."""
    if x.dtype == total.dtype:
        total.addmm_(z.t(), x)
    else:
        total += z.t() @ x


def batch_loss(
    model: nn.Module, states: Tensor, outputs: Tensor, *, smoothing: float = 0.0, scale: float = 1.0
) -> Loss:
    """The loss of a model's output states B×T×E against the true outputs B×T."""
    weight, bias = model.output_weight, model.output_bias
    assert isinstance(weight, Tensor)
    assert bias is None or isinstance(bias, Tensor)
    return cross_entropy(states, weight, bias, outputs, smoothing=smoothing, scale=scale)
