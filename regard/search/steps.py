"""The step model: all that search knows of what it drives.

Axes: B batch, S source positions, V vocabulary.
"""

from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from regard.models import DecodingState, Model
from regard.text.specials import BOS, MASK, PAD, SEP

NEVER_SAID = (PAD, BOS, SEP, MASK)
"""Tokens that stand for no text: search never chooses them."""


class State(Protocol):
    """Where a step model stands in each row of a batch."""

    def select(self, rows: Tensor, /) -> Any:
        """The state of these rows only, in this order, repeats allowed."""


S = TypeVar("S", bound=State)


class StepModel(Protocol[S]):
    """Anything that turns a state and a token into scores of the next token."""

    def start(self, source: Tensor, /) -> S:
        """The state before the first token, for sources B×S."""

    def step(self, tokens: Tensor, state: S, /) -> tuple[Tensor, S]:
        """Read one token B: log-probabilities B×V of the next, and the state behind it."""


class ModelSteps:
    """A trained model as a step model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def start(self, source: Tensor) -> DecodingState:
        """Encode sources B×S."""
        return self.model.start(self.model.encode(source))

    def step(self, tokens: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Log-probabilities B×V of the next token."""
        logits, state = self.model.step(tokens, state)
        return torch.log_softmax(logits.float(), dim=-1), state


def sayable(log_probs: Tensor) -> Tensor:
    """Log-probabilities …×V with minus infinity at what is never said; the others stay as the model gave them."""
    log_probs[..., list(NEVER_SAID)] = float("-inf")
    return log_probs
