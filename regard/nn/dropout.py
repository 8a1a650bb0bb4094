"""Dropout at the price of a multiplication.

Drawing a random number for every element is a seventh of the time in which a small model trains on a CPU; here four
elements share one draw of 64 bits. Threads that learn side by side each draw from a generator of their own, so that
what one draws does not depend on how fast the other is.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 2**16
"""Of the probability: sixteen random bits an element."""

_thread = threading.local()


class Dropout(nn.Module):
    """y = x ⊙ m / (1 − p) with each m zero with probability p, in training only (Srivastava et al., 2014)."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    @property
    def active(self) -> bool:
        """Whether anything is dropped now."""
        return self.training and self.probability > 0

    def forward(self, states: Tensor) -> Tensor:
        """The states, some of them zero."""
        if not self.active:
            return states
        if states.device.type != "cpu":
            return F.dropout(states, self.probability)
        return states * kept(states.shape, self.probability).to(states.dtype)

    def extra_repr(self) -> str:
        """The probability, for people who print a model."""
        return f"{self.probability}"


def kept(shape: torch.Size, probability: float) -> Tensor:
    """Zeros with a probability (to one part in 65,536), otherwise what makes up for them, on the CPU."""
    count = shape.numel()
    draws = torch.empty((count + 3) // 4, dtype=torch.int64)
    draws.random_(-(2**63), None, generator=getattr(_thread, "generator", None))
    levels = draws.view(torch.int16)[:count].view(shape).float()  # −32,768 to 32,767, all alike
    zeros = round(probability * LEVELS)
    return levels.ge_(zeros - LEVELS // 2).mul_(LEVELS / (LEVELS - zeros))


@contextmanager
def drawn_from(generator: torch.Generator) -> Iterator[None]:
    """Let what this thread drops be drawn from a generator, rather than from torch's global one."""
    before = getattr(_thread, "generator", None)
    _thread.generator = generator
    try:
        yield
    finally:
        _thread.generator = before
