"""Gated convolutions over a sequence.

Axes: B batch, T positions, D width, W positions in the window.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.dropout import Dropout


class GatedConvolution(nn.Module):
    """y = (x + GLU(W · window(x) + b)) / √2, a linear map of each window, gated by half of itself.

    From Gehring et al. (2017). The window is centred on a position, or, if `causal`, ends with it. Variance is kept by
    the √½ after the residual sum and by the initial size of W.
    """

    def __init__(self, width: int, kernel: int, *, causal: bool, dropout: float) -> None:
        super().__init__()
        self.kernel = kernel
        self.before = kernel - 1 if causal else (kernel - 1) // 2
        self.after = kernel - 1 - self.before
        self.dropout = Dropout(dropout)
        self.linear = nn.Linear(kernel * width, 2 * width)
        nn.init.normal_(self.linear.weight, std=math.sqrt(4 * (1 - dropout) / (kernel * width)))
        nn.init.zeros_(self.linear.bias)

    def forward(self, states: Tensor) -> Tensor:
        """Convolve all positions: B×T×D. Padding in the input must be zero to have no effect."""
        padded = F.pad(self.dropout(states), (0, 0, self.before, self.after))  # B×(T+W-1)×D
        windows = padded.unfold(1, self.kernel, 1).transpose(2, 3).flatten(2)  # B×T×WD
        return self._gate(states, windows)

    def step(self, state: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        """Convolve one position B×D after the last W-1 ones B×(W-1)×D; return its result and the new past."""
        window = torch.cat([past, self.dropout(state)[:, None]], dim=1)  # B×W×D
        return self._gate(state, window.flatten(1)), window[:, 1:]

    def _gate(self, states: Tensor, windows: Tensor) -> Tensor:
        return (states + F.glu(self.linear(windows), dim=-1)) * math.sqrt(0.5)
