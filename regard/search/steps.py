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


@dataclass(frozen=True)
class Source:
    """A batch of sources, as search knows them: how many, which positions are real, and what samples depend on."""

    content: Any
    """What the step model reads: tokens B×S, pixels, beginnings, or the sources of several members."""
    mask: Tensor
    """True at the positions that a coverage penalty wants attention for: B×S."""
    seeds: tuple[str, ...]
    """For each row a text that depends on its content alone: equal sources draw equal samples."""

    @classmethod
    def of(cls, given: "Source | Tensor") -> "Source":
        """Source tokens B×S with their padding, or a source that is one already."""
        if isinstance(given, Source):
            return given
        rows = ([token for token in row if token != PAD] for row in given.tolist())
        return cls(given, given != PAD, tuple(map(str, rows)))

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        return self.mask.device

    def __len__(self) -> int:
        return len(self.mask)


class StepModel(Protocol[S]):
    """Anything that turns a state and a token into scores of the next token."""

    def start(self, source: Source, /) -> S:
        """The state before the first token, for B sources."""

    def step(self, tokens: Tensor, state: S, /) -> tuple[Tensor, S]:
        """Read one token B: log-probabilities B×V of the next, and the state behind it."""


class ModelSteps:
    """A trained model as a step model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def start(self, source: Source) -> DecodingState:
        """Encode the sources: tokens B×S, or pixels B×3×H×W."""
        return self.model.start(self.model.encode(source.content))

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

    def __init__(self, model: Model) -> None:
        if not any(name.endswith("source_attention.weights") for name in taps.names(model)):
            raise UsageError("A coverage penalty needs attention, but this model's join is a fixed vector.")
        self.model = ModelSteps(model)

    def start(self, source: Source) -> Attended:
        """Encode the sources."""
        return Attended(self.model.start(source), torch.zeros_like(source.mask, dtype=torch.float))

    def step(self, tokens: Tensor, state: Attended) -> tuple[Tensor, Attended]:
        """Log-probabilities B×V of the next token, by attention in the open."""
        with taps.watch(self.model.model, SOURCE_ATTENTION) as seen:
            scores, behind = self.model.step(tokens, state.state)
        weights = torch.cat([seen[name] for name in seen], dim=1)  # B×(layers·H)×1×S
        return scores, Attended(behind, weights.mean(dim=1)[:, 0])


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

    def start(self, source: Source) -> Begun:
        """Read beginnings B×S up to their last token."""
        state, prompts = self.model.start(source), source.content
        for place in range(prompts.shape[1] - 1):
            _, state = self.model.model.step(prompts[:, place], state)
        return Begun(state, prompts[:, -1])

    def step(self, tokens: Tensor, state: Begun) -> tuple[Tensor, Begun]:
        """Log-probabilities B×V of the next token; the first token read is the beginning's last, not BOS."""
        scores, behind = self.model.step(tokens if state.waiting is None else state.waiting, state.state)
        return scores, Begun(behind, None)


def sayable(log_probs: Tensor) -> Tensor:
    """Log-probabilities …×V with minus infinity at what is never said; the others stay as the model gave them."""
    return log_probs.index_fill_(-1, _NEVER_SAID.to(log_probs.device), float("-inf"))


_NEVER_SAID = torch.tensor(NEVER_SAID)
