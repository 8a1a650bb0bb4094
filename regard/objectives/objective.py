"""Label-smoothed cross-entropy, fused with the output projection.

The logits of a batch, B×T×V, are by far its largest tensor. Here they are never stored whole: rows are projected chunk
by chunk, the loss and gradients of a chunk are computed at once, and its memory is reused. E is the width of the output
states.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.nn.copied import split_states
from regard.text.specials import PAD

CHUNK_ELEMENTS = 4_000_000
"""Number of logits in a chunk: enough for matrix products at full speed; more would only take memory."""


NEVER = -50.0
"""A token with an output bias below this is never produced: imported models have −100, or −10⁹ for padding."""


class Loss(NamedTuple):
    """The loss of some target tokens."""

    smoothed: Tensor
    """Label-smoothed cross-entropy, summed and multiplied by `scale`; gradients are taken of this."""
    nll: Tensor
    """Summed negative log-likelihood, for perplexity."""
    tokens: int
    """Number of target tokens without padding."""


def cross_entropy(
    states: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, *, smoothing: float = 0.0, scale: float = 1.0
) -> Loss:
    """Compute the cross-entropy of `states @ weight.T + bias` (states …×E, weight V×E, bias V) with targets …

    Padding is ignored. Wider states are those of a model that copies (`regard.nn.copied`): the loss is then −log of the
    mixture's probability. Smoothing applies to generation, since copying cannot give every token a probability.
    """
    rows = torch.nonzero(targets.reshape(-1) != PAD).squeeze(1)  # N
    wanted = targets.reshape(-1)[rows]  # N
    gate = copied = None
    if states.shape[-1] > weight.shape[1]:
        states, more = split_states(states, weight.shape[1])
        gate, copied = more.gate.reshape(-1)[rows], more.log_probability(targets).reshape(-1)[rows]  # N, N
    smoothed, nll = _Fused.apply(  # type: ignore[no-untyped-call]
        states, weight, bias, gate, copied, rows, wanted, smoothing, scale
    )
    return Loss(smoothed, nll, len(rows))


class _Fused(torch.autograd.Function):
    r"""Loss and gradients of a softmax layer in one pass over chunks of rows.

    With z = xWᵀ + b, p = softmax(z) and smoothing ε (Szegedy et al., 2016):
    loss = (1−ε)·(lse(z) − z_y) + ε·(lse(z) − mean(z)), and ∂loss/∂z = p − (1−ε)·onehot(y) − ε/V.
    The last term is the same for all z, so it is added to the gradients of x, W and b as one vector each. The largest
    p is exp(max z − lse(z)), which gives lse(z) without another sum. Tokens that are never produced (b < `NEVER`) are
    excluded from smoothing: mean(z) is over the others, V counts the others, and their last term is zero.

    With a gate g = σ(a) and the log-probability c of copying y, lse(z) − z_y becomes −log P, P = g·p_y + (1−g)·eᶜ. With
    the share of generation r = g·p_y / P, ∂(−log P)/∂z = r·(p − onehot(y)), ∂/∂c = r − 1 and ∂/∂a = g − r.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        gate: Tensor | None,
        copied: Tensor | None,
        rows: Tensor,
        targets: Tensor,
        smoothing: float,
        scale: float,
    ) -> tuple[Tensor, Tensor]:
        with torch.autocast(states.device.type, enabled=False):
            return _forward(ctx, states, weight, bias, gate, copied, rows, targets, smoothing, scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        outer = gradients[0]
        return *(part if part is None else part.mul_(outer) for part in ctx.saved_tensors), None, None, None, None


def _forward(
    ctx: Any,
    states: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    gate: Tensor | None,
    copied: Tensor | None,
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
    mean = _mean_logit(narrow.to(precise), None if bias is None else bias.to(precise))
    exact = torch.float32 if flat.device.type == "mps" else torch.float64  # Apple's GPUs have no double precision
    smoothed = torch.zeros((), dtype=exact, device=flat.device)
    nll = torch.zeros((), dtype=exact, device=flat.device)
    mixture = None if gate is None or copied is None else _Mixture(gate, copied)

    chunk = min(max(1, CHUNK_ELEMENTS // vocabulary), max(1, len(rows)))
    logits = flat.new_empty(chunk, vocabulary)  # reused for all chunks
    chances = torch.empty_like(logits, dtype=precise)
    for start in range(0, len(rows), chunk):
        place, wanted = rows[start : start + chunk], targets[start : start + chunk, None]  # C, C×1
        x = flat[place]  # C×E
        z = _project(x, narrow, bias, logits[: len(x)]).to(precise)  # C×V
        p = torch.softmax(z, 1, out=chances[: len(x)])  # C×V
        true = z.gather(1, wanted).squeeze(1)  # C
        total = z.amax(1) - p.amax(1).log()  # C: lse(z)
        surprise = total - true  # C
        if mixture is not None:
            surprise = mixture.mix(surprise, start)
        spread = total - (x.to(precise) @ mean.centre + mean.offset)  # C: lse(z) − mean(z)
        nll += surprise.sum(dtype=exact)
        smoothed += ((1 - smoothing) * surprise + smoothing * spread).sum(dtype=exact)
        if grad_flat is None:
            continue
        share: Tensor | float = 1.0 if mixture is None else mixture.differentiate(p, smoothing, scale)
        p.scatter_add_(1, wanted, share * p.new_full(wanted.shape, smoothing - 1))
        p = p.to(x.dtype)
        grad_flat[place] = ((p @ narrow).to(precise) - smoothing * mean.centre).mul_(scale).to(flat.dtype)
        if grad_weight is not None:
            _add_product(grad_weight, p, x, scale)
        if grad_bias is not None:
            grad_bias.add_(p.sum(0), alpha=scale)

    if grad_flat is not None:
        even = scale * smoothing / mean.tokens
        mean.subtract(grad_weight, even * flat[rows].sum(0, dtype=precise))
        mean.subtract(grad_bias, torch.tensor(even * len(rows), dtype=precise, device=flat.device))
        ctx.save_for_backward(
            grad_flat.view(states.shape),
            None if grad_weight is None else grad_weight.to(weight.dtype),
            grad_bias if bias is None or grad_bias is None else grad_bias.to(bias.dtype),
            *((None, None) if mixture is None else (mixture.grad_gate, mixture.grad_copied)),
        )
    smoothed = (smoothed * scale).to(precise)
    nll = nll.to(precise)
    ctx.mark_non_differentiable(nll)
    return smoothed, nll


class _Mixture:
    """Generation mixed with copying, chunk by chunk, with the gradients of the gate and of what is copied (N each)."""

    def __init__(self, gate: Tensor, copied: Tensor) -> None:
        self.gate, self.copied = gate, copied
        self.grad_gate, self.grad_copied = torch.zeros_like(gate), torch.zeros_like(copied)

    def mix(self, surprise: Tensor, start: int) -> Tensor:
        """Return −log P of the mixture for the targets from `start` on, from that of generation: C."""
        self.chunk = slice(start, start + len(surprise))
        mixed, self.share, self.opening = _mixed(surprise, self.gate[self.chunk], self.copied[self.chunk])
        return mixed

    def differentiate(self, p: Tensor, smoothing: float, scale: float) -> Tensor:
        """Weigh the probabilities p C×V of a chunk by generation's share, in place; return the share: C×1."""
        p.mul_(((1 - smoothing) * self.share + smoothing)[:, None])
        self.grad_gate[self.chunk] = (1 - smoothing) * scale * (self.opening - self.share)
        self.grad_copied[self.chunk] = (1 - smoothing) * scale * (self.share - 1)
        return self.share[:, None]


def _mixed(surprise: Tensor, gate: Tensor, copied: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mix generation with copying, all C: −log P of the mixture, generation's share of P, and the gate's value.

    Args:
        surprise: −log of the probability of generating each target.
        gate: The logit of the gate.
        copied: The log-probability of copying each target.
    """
    generated = nn.functional.logsigmoid(gate.to(surprise.dtype)) - surprise
    both = torch.logaddexp(generated, nn.functional.logsigmoid(-gate.to(surprise.dtype)) + copied)
    return -both, (generated - both).exp(), gate.to(surprise.dtype).sigmoid()


class _MeanLogit(NamedTuple):
    """mean(z) = x·centre + offset over the tokens that can be produced."""

    centre: Tensor
    """E."""
    offset: Tensor | float
    tokens: int
    """Number of tokens that can be produced."""
    never: Tensor | None
    """Ids of the other tokens, if there are any."""

    def subtract(self, gradient: Tensor | None, part: Tensor) -> None:
        """Subtract `part` from a gradient V×…, if it is wanted, at every token that can be produced."""
        if gradient is None:
            return
        gradient -= part
        if self.never is not None:
            gradient[self.never] += part


def _mean_logit(weight: Tensor, bias: Tensor | None) -> _MeanLogit:
    """Return the mean logit of an output layer with weight V×E and bias V."""
    count, centre = len(weight), weight.mean(0)
    if bias is None:
        return _MeanLogit(centre, 0.0, count, None)
    never = torch.nonzero(bias < NEVER).squeeze(1)
    if not len(never) or len(never) == count:
        return _MeanLogit(centre, bias.mean(), count, None)
    left = count - len(never)
    centre = (centre * count - weight[never].sum(0)) / left
    return _MeanLogit(centre, bias.index_fill(0, never, 0).sum() / left, left, never)


def _project(x: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    """Compute x C×E times weight V×E plus the bias into `out` C×V."""
    if bias is None:
        return torch.mm(x, weight.t(), out=out)
    return torch.addmm(bias.to(x.dtype), x, weight.t(), out=out)


def _add_product(total: Tensor, p: Tensor, x: Tensor, scale: float) -> None:
    """Add scale · pᵀx of p C×V and x C×E to total V×E, in one kernel if all have the same precision."""
    if x.dtype == total.dtype:
        total.addmm_(p.t(), x, alpha=scale)
    else:
        total.add_(p.t() @ x, alpha=scale)


def batch_loss(
    model: nn.Module, states: Tensor, outputs: Tensor, *, smoothing: float = 0.0, scale: float = 1.0
) -> Loss:
    """Return the loss of a model's output states B×T×E with reference outputs B×T."""
    weight, bias = model.output_weight, model.output_bias
    assert isinstance(weight, Tensor)
    assert bias is None or isinstance(bias, Tensor)
    return cross_entropy(states, weight, bias, outputs, smoothing=smoothing, scale=scale)


def coverage_loss(model: nn.Module, states: Tensor, outputs: Tensor) -> Tensor:
    """Return Σ_t Σ_s min(α_ts, Σ_t'<t α_t's) over the outputs B×T of a model that copies.

    See et al. (2017), equation 12. It is 0 if no two steps point at the same source position.
    """
    assert isinstance(model.output_weight, Tensor)
    _, copied = split_states(states, model.output_weight.shape[1])
    weights = copied.log_weights.exp() * (outputs != PAD)[..., None]  # B×T×S
    return torch.minimum(weights, weights.cumsum(1) - weights).sum()


@torch.no_grad()
def row_losses(model: nn.Module, states: Tensor, outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the negative log-likelihood of each row of outputs B×T, and its number of tokens: B and B."""
    asked = outputs != PAD  # B×T
    weight, bias = model.output_weight, model.output_bias
    assert isinstance(weight, Tensor)
    assert bias is None or isinstance(bias, Tensor)
    flat, wanted = states[asked].float(), outputs[asked]  # N×E (or wider, if the model copies), N
    places = asked.nonzero()[:, 0]  # N
    found = torch.zeros(len(outputs), dtype=torch.float64)
    chunk = max(1, CHUNK_ELEMENTS // len(weight))
    for start in range(0, len(flat), chunk):
        some = slice(start, start + chunk)
        generated, more = flat[some], None
        if flat.shape[1] > weight.shape[1]:
            generated, more = split_states(generated, weight.shape[1])
        logits = nn.functional.linear(generated, weight.float(), None if bias is None else bias.float())  # n×V
        losses = nn.functional.cross_entropy(logits, wanted[some], reduction="none")
        if more is not None:
            losses, _, _ = _mixed(losses, more.gate, more.log_probability(wanted[some]))
        found.index_add_(0, places[some].cpu(), losses.double().cpu())
    return found, asked.sum(1).double().cpu()
