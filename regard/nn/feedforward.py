"""The position-wise half of a Transformer layer.

Axes: B batch, T positions, D width, I inner width.
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.dropout import Dropout
from regard.nn.taps import Tap


def swiglu(states: Tensor) -> Tensor:
    """Return silu(a) ⊙ b for states …×2D with halves a and b: …×D."""
    opening, gated = states.chunk(2, dim=-1)
    return F.silu(opening) * gated


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "swiglu": swiglu}


class FeedForward(nn.Module):
    """y = W₂ f(W₁ x), the same at every position (Vaswani et al., 2017).

    f is ReLU, GELU and SiLU (Hendrycks and Gimpel, 2016), or SwiGLU: silu(W₁ x) ⊙ W₃ x (Shazeer, 2020).
    """

    def __init__(self, width: int, inner: int, *, activation: str, dropout: float) -> None:
        super().__init__()
        self.activation = activation
        self.inner = nn.Linear(width, 2 * inner if activation == "swiglu" else inner)
        self.outer = nn.Linear(inner, width)
        self.dropout = Dropout(dropout)
        self.hidden = Tap(time=1)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Map states B×T×D to B×T×D."""
        hidden = self.hidden(ACTIVATIONS[self.activation](self.inner(states)))  # B×T×I
        result: Tensor = self.outer(self.dropout(hidden))
        return result
