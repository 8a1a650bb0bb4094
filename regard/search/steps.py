"""The step model: all that search knows of what it drives.

Axes: B batch, S source positions, V vocabulary.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.models import DecodingState, Model
from regard.nn import taps
from regard.text.specials import BOS, MASK, PAD, SEP

NEVER_SAID = (PAD, BOS, SEP, MASK)
"""Tokens that stand for no text: search never chooses them."""

SOURCE_ATTENTION = "decoder.*source_attention.weights"
"""The taps through which any decoder looks at the source."""


class State(Protocol):
    """Where a step model stands in each row of a batch.

    One that also has `attention` (B×S: where the last step looked in the source) can be searched with a coverage
    penalty.
    """

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


@dataclass(frozen=True)
class Attended:
    """A state that knows where the model looked."""

    state: DecodingState
    attention: Tensor
    """Mean weight over layers and heads: B×S."""

    def select(self, rows: Tensor) -> Self:
        """The state of these rows only, in this order, repeats allowed."""
        return type(self)(self.state.select(rows), self.attention.index_select(0, rows))


class AttentiveSteps:
    """A trained model as a step model whose states know where it looked: slower, for coverage."""

    def __init__(self, model: Model, steps: ModelSteps | None = None) -> None:
        if not any(name.endswith("source_attention.weights") for name in taps.names(model)):
            raise UsageError("A coverage penalty needs attention, but this model's join is a fixed vector.")
        self.model = steps or ModelSteps(model)

    def start(self, source: Tensor) -> Attended:
        """Encode sources B×S."""
        return Attended(self.model.start(source), torch.zeros_like(source, dtype=torch.float))

    def step(self, tokens: Tensor, state: Attended) -> tuple[Tensor, Attended]:
        """Log-probabilities B×V of the next token, by attention in the open."""
        with taps.watch(self.model.model, SOURCE_ATTENTION) as seen:
            scores, behind = self.model.step(tokens, state.state)
        weights = torch.cat([seen[name] for name in seen], dim=1)  # B×(layers·H)×1×S
        return scores, Attended(behind, weights.mean(dim=1)[:, 0])


class SeeingSteps(ModelSteps):
    """A model that looks at pictures, which it is given beforehand, as a step model.

    Search knows a source only as numbers B×S, one for each place: all of them real, and the same for the same picture.
    """

    def __init__(self, model: Model, pixels: Tensor) -> None:
        super().__init__(model)
        self.pixels = pixels  # B×3×H×W

    def start(self, source: Tensor) -> DecodingState:
        """Look at the pictures."""
        return super().start(self.pixels)


@dataclass(frozen=True)
class Begun:
    """A state before the last token of a beginning, or behind all of it."""

    state: DecodingState
    waiting: Tensor | None
    """The last token of the beginning B, which is still to be read."""

    def select(self, rows: Tensor) -> Self:
        """The state of these rows only, in this order, repeats allowed."""
        waiting = None if self.waiting is None else self.waiting.index_select(0, rows)
        return type(self)(self.state.select(rows), waiting)


class PromptedSteps:
    """A language model as a step model: a source is a beginning, BOS first, as long in every row."""

    def __init__(self, model: Model) -> None:
        self.model = ModelSteps(model)

    def start(self, source: Tensor) -> Begun:
        """Read beginnings B×S up to their last token."""
        state = self.model.start(source)
        for place in range(source.shape[1] - 1):
            _, state = self.model.model.step(source[:, place], state)
        return Begun(state, source[:, -1])

    def step(self, tokens: Tensor, state: Begun) -> tuple[Tensor, Begun]:
        """Log-probabilities B×V of the next token; the first token read is the beginning's last, not BOS."""
        scores, behind = self.model.step(tokens if state.waiting is None else state.waiting, state.state)
        return scores, Begun(behind, None)


def sayable(log_probs: Tensor) -> Tensor:
    """Log-probabilities …×V with minus infinity at what is never said; the others stay as the model gave them."""
    return log_probs.index_fill_(-1, _NEVER_SAID.to(log_probs.device), float("-inf"))


_NEVER_SAID = torch.tensor(NEVER_SAID)
