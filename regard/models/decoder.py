"""The interface of decoders, and the fixed-vector join of those without recurrence.

Axes: B batch, T target positions, E embedding width, D width.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.config import model as config
from regard.config.cell import resolved, width_of
from regard.models.memory import DecodingState, Memory
from regard.nn.attention import Attention
from regard.nn.embeddings import TokenEmbedding
from regard.nn.taps import Tap

Choose = Callable[[Tensor, Tensor], Tensor]
"""(output states …×E, true next inputs …) → the next inputs …: mixes in the decoder's own predictions in training."""


class Decoder(nn.Module):
    """Runs over all positions at once, or one step at a time from an explicit state, with the same results."""

    embedding: TokenEmbedding

    def start(self, memory: Memory) -> DecodingState:
        """Return the decoding state before the first token."""
        raise NotImplementedError

    def step(self, tokens: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Read one token B; return its output state B×E and the new decoding state."""
        raise NotImplementedError

    def forward(self, memory: Memory, inputs: Tensor, choose: Choose | None = None) -> Tensor:
        """Return the output states B×T×E of all inputs B×T; each depends only on itself and the inputs before it."""
        raise NotImplementedError


class ParallelDecoder(Decoder):
    """A decoder whose training needs no loop over time.

    Scheduled sampling takes its predictions from a first pass without gradients (Mihaylova and Martins, 2019).
    """

    def forward(self, memory: Memory, inputs: Tensor, choose: Choose | None = None) -> Tensor:
        """Return the output states B×T×E of all inputs B×T."""
        if choose is not None:
            with torch.no_grad():
                predicted = self.read(memory, inputs[:, :-1])
            inputs = torch.cat([inputs[:, :1], choose(predicted, inputs[:, 1:])], dim=1)
        return self.read(memory, inputs)

    def read(self, memory: Memory, inputs: Tensor) -> Tensor:
        """Return the output states B×T×E of all inputs B×T in one pass."""
        raise NotImplementedError


class FixedVector(nn.Module):
    """Adds the summary of the source to the inputs of a decoder without recurrence.

    `initial` adds it to the first position unchanged, `transformed` to the first position through a linear map,
    `every-step` to every position through a linear map.
    """

    def __init__(self, cell: config.Model, form: str) -> None:
        super().__init__()
        self.everywhere = form == "every-step"
        width_in, width = width_of(cell.encoder), width_of(cell.decoder)
        self.linear = nn.Identity() if form == "initial" else nn.Linear(width_in, width)

    def forward(self, states: Tensor, vector: Tensor, start: int) -> Tensor:
        """Add the vector B×D to states B×T×D at positions start, start+1, …, where the form asks for it."""
        added = self.linear(vector)[:, None]  # B×1×D
        if self.everywhere:
            return torch.add(states, added)
        if start > 0:
            return states
        return torch.cat([states[:, :1] + added, states[:, 1:]], dim=1)  # B×T×D


class Exit(nn.Module):
    """Maps the decoder's width to that of the embeddings if they differ."""

    def __init__(self, cell: config.Model) -> None:
        super().__init__()
        width, out = width_of(cell.decoder), resolved(cell.embeddings.width)
        self.linear = nn.Identity() if width == out else nn.Linear(width, out)
        self.states = Tap(time=1)

    def forward(self, states: Tensor) -> Tensor:
        """Map states B×T×D to B×T×E."""
        result: Tensor = self.states(self.linear(states))
        return result


def make_fixed_vector(cell: config.Model) -> FixedVector | None:
    """Build the fixed-vector join; `None` if the model has another join."""
    return FixedVector(cell, resolved(cell.join.form)) if isinstance(cell.join, config.FixedJoin) else None


def source_key_values(attention: Attention, memory: Memory, name: str) -> dict[str, Tensor]:
    """Return the keys and values of the source for one attention, under their names in `DecodingState.source`."""
    found = attention.key_values(memory.states)
    return {f"{name}.keys": found.keys, f"{name}.values": found.values}
