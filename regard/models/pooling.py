"""Pooling: reduces the states of a text to one vector.

Axes: B batch, S source positions, D width.
"""

import torch
from torch import Tensor, nn

from regard.models.encoders import mean_state
from regard.models.memory import Memory
from regard.nn.attention import attention_weights
from regard.nn.taps import Tap


class Pool(nn.Module):
    """Reduces a memory to one vector per row; padding never changes the result."""

    def forward(self, memory: Memory) -> Tensor:
        """Return one vector per source: B×D."""
        raise NotImplementedError


class Summary(Pool):
    """The encoder's own summary: the mean or sum of a bag, the last states of an RNN, otherwise the mean."""

    def forward(self, memory: Memory) -> Tensor:
        """Return the summary B×D."""
        return memory.summary


class First(Pool):
    """The state of the first token, which precedes the text and belongs to no word (Devlin et al., 2019)."""

    def forward(self, memory: Memory) -> Tensor:
        """Return the first state B×D."""
        return memory.states[:, 0]


class Last(Pool):
    """The state of the last token."""

    def forward(self, memory: Memory) -> Tensor:
        """Return the last real state B×D."""
        last = (memory.mask.sum(1) - 1)[:, None, None].expand(-1, 1, memory.states.shape[2])  # B×1×D
        return memory.states.gather(1, last).squeeze(1)


class Mean(Pool):
    """The mean state."""

    def forward(self, memory: Memory) -> Tensor:
        """Return the mean over real positions B×D."""
        return mean_state(memory.states, memory.mask)


class Largest(Pool):
    """Max pooling: the largest value of each feature (Collobert et al., 2011)."""

    def forward(self, memory: Memory) -> Tensor:
        """Return the maximum over real positions B×D."""
        return largest_state(memory.states, memory.mask)


class Attentive(Pool):
    """Σ a_s h_s with a = softmax(v · tanh(W h)): attention with a learned query (Yang et al., 2016)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.query = nn.Linear(width, 1, bias=False)
        self.weights = Tap(time=1)

    def forward(self, memory: Memory) -> Tensor:
        """Return the weighted mean B×D."""
        scores = self.query(torch.tanh(self.hidden(memory.states))).transpose(1, 2)  # B×1×S
        weights = self.weights(attention_weights(scores, memory.mask[:, None]))  # B×1×S
        found: Tensor = (weights @ memory.states)[:, 0]  # B×D
        return found


def largest_state(states: Tensor, mask: Tensor) -> Tensor:
    """Return the maximum over real positions of states B×S×D: B×D."""
    return states.masked_fill(~mask[:, :, None], -torch.inf).amax(1)


def make_pool(kind: str | None, width: int) -> Pool:
    """Build the pooling called `kind`; by default the encoder's own summary."""
    match kind:
        case "attention":
            return Attentive(width)
        case "first" | "last" | "mean" | "max":
            return {"first": First, "last": Last, "mean": Mean, "max": Largest}[kind]()
        case _:
            return Summary()
