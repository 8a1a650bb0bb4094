"""Recurrent layers, which run over a whole sequence or one step at a time with the same weights.

Axes: B batch, T steps, D width.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

GATES = {"elman": 1, "gru": 3, "lstm": 4}


class Recurrence(nn.Module):
    """Interface of a recurrent layer in one direction.

    Its state is one tensor B×M whose first D numbers are the output; M may be larger, as with the LSTM. Running over a
    whole sequence and step by step must give the same outputs.
    """

    width: int
    state_width: int

    def blank(self, like: Tensor) -> Tensor:
        """Return the zero state for as many rows as `like` has: B×M."""
        return like.new_zeros(len(like), self.state_width)

    def forward(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Return the outputs B×T×D of a sequence B×T×I that starts from a state B×M; by default step by step."""
        outputs = []
        for position in range(inputs.shape[1]):
            state = self.step(inputs[:, position], state)
            outputs.append(state[:, : self.width])
        return torch.stack(outputs, dim=1)  # B×T×D

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Return the state B×M after one more input B×I; its first D numbers are the output."""
        raise NotImplementedError


class RecurrentLayer(Recurrence):
    """Elman, GRU and LSTM layers, computed by torch's kernels.

    Elman (1990):  h = tanh(W x + U h' + b)
    GRU (Cho et al., 2014):  r, z = σ(…);  n = tanh(W x + r ⊙ (U h' + b));  h = (1-z) ⊙ n + z ⊙ h'
    LSTM (Hochreiter and Schmidhuber, 1997):  i, f, o = σ(…);  c = f ⊙ c' + i ⊙ tanh(…);  h = o ⊙ tanh(c)

    The state is one tensor B×M: h, and for the LSTM h and c concatenated.
    """

    def __init__(self, cell: str, width_in: int, width: int) -> None:
        super().__init__()
        self.cell = cell
        self.width = width
        self.state_width = 2 * width if cell == "lstm" else width
        rows = GATES[cell] * width
        self.input_weight = nn.Parameter(torch.empty(rows, width_in))
        self.state_weight = nn.Parameter(torch.empty(rows, width))
        self.input_bias = nn.Parameter(torch.zeros(rows))
        self.state_bias = nn.Parameter(torch.zeros(rows))
        self._initialise()

    def _initialise(self) -> None:
        """Initialise: uniform input weights, orthogonal recurrent weights, and an LSTM forget gate bias of 1."""
        bound = 1 / math.sqrt(self.width)
        nn.init.uniform_(self.input_weight, -bound, bound)
        for block in torch.split(self.state_weight.data, self.width):
            nn.init.orthogonal_(block)
        if self.cell == "lstm":
            nn.init.ones_(self.input_bias.data[self.width : 2 * self.width])

    @property
    def _weights(self) -> list[Tensor]:
        return [self.input_weight, self.state_weight, self.input_bias, self.state_bias]

    def forward(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Return the outputs B×T×D of a sequence B×T×I that starts from a state B×M."""
        hidden = state[:, : self.width].contiguous().unsqueeze(0)  # 1×B×D
        how = (True, 1, 0.0, self.training, False, True)
        if self.cell == "lstm":
            cell = state[:, self.width :].contiguous().unsqueeze(0)  # 1×B×D
            return torch.lstm(inputs, (hidden, cell), self._weights, *how)[0]  # B×T×D
        run = torch.gru if self.cell == "gru" else torch.rnn_tanh
        return run(inputs, hidden, self._weights, *how)[0]  # B×T×D

    def step(self, inputs: Tensor, state: Tensor) -> Tensor:
        """Return the state B×M after one more input B×I; its first D numbers are the output."""
        hidden = state[:, : self.width]  # B×D
        if self.cell == "lstm":
            hidden, cell = torch.lstm_cell(inputs, (hidden, state[:, self.width :]), *self._weights)
            return torch.cat([hidden, cell], dim=1)  # B×M
        if self.cell == "gru":
            return torch.gru_cell(inputs, hidden, *self._weights)  # B×D
        return torch.rnn_tanh_cell(inputs, hidden, *self._weights)  # B×D


MakeCell = Callable[[int, int], Recurrence]
"""(width of the inputs, width of the state) → a layer."""

CELLS: dict[str, MakeCell] = {name: partial(RecurrentLayer, name) for name in GATES}
"""Every recurrent cell by the name it has in a configuration; `regard.extensions` adds to them."""


def make_recurrence(cell: str, width_in: int, width: int) -> Recurrence:
    """Return a layer of the cell called `cell`."""
    return CELLS[cell](width_in, width)


def backwards(states: Tensor, lengths: Tensor) -> Tensor:
    """Reverse each row of B×T×D within its own length; padding stays at the end."""
    places = torch.arange(states.shape[1], device=states.device)[None, :]  # 1×T
    mirrored = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)  # B×T
    return states.gather(1, mirrored[:, :, None].expand_as(states))  # B×T×D
