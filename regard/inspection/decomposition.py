"""An attention block with its residual as a sum over what it read (ALTI; Ferrando et al., 2022).

Once the attention weights and the size by which a norm divides are taken as they were, a block is linear:

    y_i = Σ_j F_i(x_j) + b,    c_ij ∝ max(0, ‖y_i‖₁ − ‖y_i − F_i(x_j)‖₁),    Σ_j c_ij = 1.

Axes: T positions that read, N positions that are read, H heads, K head width, D width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from regard.nn.attention import Attention

ROWS = 2**25
"""Numbers held at once: parts of every reader, of everything read, at the model's width."""


@dataclass(frozen=True)
class Block:
    """One block: x + Attention(norm x), or norm(x + Attention(x)), of the real model on one sentence."""

    attention: Attention
    weights: Tensor
    """H×T×N."""
    read: Tensor
    """N×D: what keys and values were made of, without what a norm adds to it."""
    added: Tensor
    """D: what a norm adds to each of them."""
    residual: Tensor
    """T×D: what the block was given, and adds its finding to."""
    own: bool
    """Whether position i of what is read is the residual of position i; else the residual is one more, the last."""
    norm: nn.Module | None = None
    """The norm after the sum, if the model has one there."""

    @classmethod
    def of_self(cls, attention: Attention, weights: Tensor, states: Tensor, norm: nn.Module, *, pre: bool) -> "Block":
        """The block of a side that reads itself, given its states T×D."""
        if not pre:
            nothing = states.new_zeros(states.shape[-1])
            return cls(attention, weights, states, nothing, states, own=True, norm=norm)
        added = _bias(norm, states)
        return cls(attention, weights, norm(states) - added, added, states, own=True)

    @classmethod
    def of_source(
        cls, attention: Attention, weights: Tensor, memory: Tensor, states: Tensor, norm: nn.Module, *, pre: bool
    ) -> "Block":
        """The block of a decoder with states T×D that reads the encoder's N×D."""
        nothing = memory.new_zeros(memory.shape[-1])
        return cls(attention, weights, memory, nothing, states, own=False, norm=None if pre else norm)

    def output(self, found: Tensor) -> Tensor:
        """y: T×D, as the model computes it from what its attention found (T×D)."""
        summed = self.residual + found
        result: Tensor = summed if self.norm is None else self.norm(summed)
        return result

    def parts(self, rows: slice = slice(None)) -> tuple[Tensor, Tensor]:
        """F of some readers, rows×N×D (with a last column for the residual, unless `own`), and b, rows×D."""
        heads = self.attention.heads
        value = self.attention.value or self.attention.key
        out = self.attention.out
        plain = self.read if value is None else self.read @ value.weight.T  # N×D
        shift = self.added if value is None else value.weight @ self.added + value.bias  # D
        to_output = torch.eye(plain.shape[1]).to(plain) if out is None else out.weight  # D×D
        width = plain.shape[1] // heads if heads else self.attention.head_width
        through = to_output.view(-1, heads, width) if heads else to_output.new_zeros(len(to_output), 0, width)  # D×H×K
        carried = torch.einsum("nhk,dhk->hnd", plain.view(len(plain), heads, width), through)  # H×N×D
        weights = self.weights[:, rows]  # H×rows×N
        parts = torch.einsum("htn,hnd->tnd", weights, carried)  # rows×N×D
        lifted = torch.einsum("hk,dhk->hd", shift.view(heads, width), through)  # H×D
        bias = weights.sum(-1).T @ lifted  # rows×D
        if out is not None:
            bias = bias + out.bias
        residual = self.residual[rows]
        if self.own:
            places = torch.arange(len(self.residual))[rows]
            parts[torch.arange(len(places)), places] += residual
        else:
            parts = torch.cat([parts, residual[:, None]], dim=1)  # rows×(N+1)×D
        if self.norm is None:
            return parts, bias
        total = parts.sum(1) + bias  # rows×D
        parts = _scale_parts(self.norm, parts, total[:, None])
        return parts, _scale_parts(self.norm, bias, total) + _bias(self.norm, total)

    def contributions(self, found: Tensor) -> Tensor:
        """c: T×N (with a last column for the residual, unless `own`); each row sums to one, nothing is negative."""
        output = self.output(found)
        rows = max(1, ROWS // (self.weights.shape[-1] * output.shape[-1]))
        shares = []
        for start in range(0, len(output), rows):
            chosen = slice(start, start + rows)
            shares.append(nearness(self.parts(chosen)[0], output[chosen]))
        return torch.cat(shares)


def nearness(parts: Tensor, whole: Tensor) -> Tensor:
    """How much nearer each of the parts T×N×D brings one to the whole T×D, as shares T×N.

    Where no part does, their sizes are shared instead.
    """
    nearer = whole.abs().sum(-1)[:, None] - (whole[:, None] - parts).abs().sum(-1)  # T×N
    nearer = nearer.clamp(min=0)
    sizes = parts.abs().sum(-1)
    nearer = torch.where(nearer.sum(-1, keepdim=True) > 0, nearer, sizes)
    return nearer / nearer.sum(-1, keepdim=True).clamp(min=torch.finfo(nearer.dtype).tiny)


def _bias(norm: nn.Module, states: Tensor) -> Tensor:
    """What a norm adds, whatever it is given: D."""
    bias = norm.bias if isinstance(norm, nn.LayerNorm) else None
    return states.new_zeros(states.shape[-1]) if bias is None else bias


def _scale_parts(norm: nn.Module, parts: Tensor, whole: Tensor) -> Tensor:
    """The linear half of a norm on parts …×D of a whole …×D, by whose size it divides."""
    if isinstance(norm, nn.LayerNorm):
        parts = parts - parts.mean(-1, keepdim=True)
        size = (whole.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()
        return parts / size * norm.weight
    if isinstance(norm, nn.RMSNorm):
        eps = torch.finfo(whole.dtype).eps if norm.eps is None else norm.eps
        return parts / (whole.square().mean(-1, keepdim=True) + eps).sqrt() * norm.weight
    raise TypeError(f"no linear half is known of {type(norm).__name__}")
