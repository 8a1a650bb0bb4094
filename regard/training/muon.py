"""Muon: an optimizer with orthogonalised updates for weight matrices.

The mean M = U S Vᵀ of a matrix's gradients is replaced by U Vᵀ (Jordan et al., "Muon: an optimizer for hidden layers in
neural networks", 2024), which a few iterations of a polynomial approximate without a decomposition. Updates are scaled
to the size of Adam's, so that both use one learning rate (Liu et al., "Muon is scalable for LLM training", 2025); other
parameters, such as embeddings and biases, are updated by AdamW.

torch has a Muon too; it computes in bfloat16, one matrix at a time, which is slow on a CPU. Here matrices of equal
shape are updated together, in 32 bits: on a CPU as many as fit its caches, and cores process such groups in parallel.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

QUINTICS = ((8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))
"""Applied in turn, the polynomials a x + b x³ + c x⁵ map singular values of 0.01 to 1 to within 0.27 of one: each is
optimal on the interval that the one before it leaves (after Amsel et al., "The Polar Express", 2025)."""
MEMORY = 0.95
"""Momentum of the mean gradient."""
LENGTH = 0.2
"""The typical size of an entry of Adam's updates (Liu et al., 2025)."""
PIECE = 2**17
"""Number of entries that a CPU orthogonalises at a time: they and their squares fit the cache of a core."""

Works = Sequence[Callable[[], None]]
Whole = Callable[[Tensor], Tensor]
"""Returns all of a tensor that is divided among processes."""
Part = Callable[[Tensor, Tensor], Tensor]
"""(a whole tensor, a parameter) → the part of it that belongs to this process's part of the parameter."""


def itself(tensor: Tensor) -> Tensor:
    """Return a tensor that is not divided."""
    return tensor


def as_given(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a tensor for a parameter that is not divided."""
    return tensor


class Muon(torch.optim.Optimizer):
    """Muon for matrices, AdamW for groups of other parameters."""

    def __init__(
        self,
        matrices: Sequence[Tensor],
        others: Sequence[Mapping[str, Any]],
        *,
        rate: float,
        betas: tuple[float, float],
        weight_decay: float,
        fused: bool,
        do: Callable[[Works], object],
        whole: Whole = itself,
        part: Part = as_given,
    ) -> None:
        groups = [{"params": list(matrices), "weight_decay": weight_decay}, *map(dict, others)]
        super().__init__(groups, {"lr": rate})
        self.do, self.whole, self.part = do, whole, part
        self.others = None
        if others:
            self.others = torch.optim.AdamW([dict(group) for group in others], lr=rate, betas=betas, fused=fused)
            self.others.state = self.state  # one shared state for all parameters

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        matrices, *others = self.param_groups
        rate, decay = matrices["lr"], matrices["weight_decay"]
        works: list[Callable[[], None]] = []
        if self.others is not None:
            for group, mine in zip(self.others.param_groups, others, strict=True):
                group["lr"] = mine["lr"]
            works.append(self.others.step)
        works += [partial(self._move, piece, rate, decay) for piece in _pieces(matrices["params"])]
        self.do(works)

    @torch.no_grad()
    def _move(self, parameters: list[Tensor], rate: float, weight_decay: float) -> None:
        """Update matrices of one shape."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        for parameter in parameters:
            if "mean" not in self.state[parameter]:
                self.state[parameter]["mean"] = torch.zeros_like(parameter)
        means = [self.state[parameter]["mean"] for parameter in parameters]
        torch._foreach_lerp_(means, gradients, 1 - MEMORY)
        ahead = torch._foreach_lerp(gradients, means, MEMORY)  # Nesterov momentum
        if weight_decay:
            torch._foreach_mul_(parameters, 1 - rate * weight_decay)
        size = LENGTH * max(parameters[0].shape) ** 0.5  # entries of an orthogonal matrix shrink with its size
        found = orthogonal(torch.stack([self.whole(tensor) for tensor in ahead])).unbind()
        updates = [self.part(update, parameter) for update, parameter in zip(found, parameters, strict=True)]
        torch._foreach_add_(parameters, updates, alpha=-rate * size)


def orthogonal(matrices: Tensor) -> Tensor:
    """Return N×R×C matrices with the same singular vectors, and singular values near one."""
    upright = matrices.shape[1] > matrices.shape[2]
    flat = matrices.mT if upright else matrices
    flat = flat / _length(flat)
    square = flat @ flat.mT
    largest = _length(square)  # an upper bound of the squared singular values
    flat, square = flat / largest.sqrt(), square / largest
    for number, (first, third, fifth) in enumerate(QUINTICS):
        square = flat @ flat.mT if number else square
        flat = torch.baddbmm(flat, torch.baddbmm(square, square, square, beta=third, alpha=fifth), flat, beta=first)
    return flat.mT if upright else flat


def _length(matrices: Tensor) -> Tensor:
    """Return the Frobenius norm of each matrix, never zero."""
    lengths: Tensor = torch.linalg.matrix_norm(matrices, keepdim=True)
    return lengths.clamp_min(torch.finfo(matrices.dtype).tiny)


def _pieces(parameters: Sequence[Tensor]) -> list[list[Tensor]]:
    """Group parameters with a gradient by shape; on a CPU, groups are small enough for its caches."""
    shapes: dict[torch.Size, list[Tensor]] = {}
    for parameter in parameters:
        if parameter.grad is not None:
            shapes.setdefault(parameter.shape, []).append(parameter)
    pieces = []
    for alike in shapes.values():
        size = max(1, PIECE // alike[0].numel()) if alike[0].device.type == "cpu" else len(alike)
        pieces += [alike[start : start + size] for start in range(0, len(alike), size)]
    return pieces
