"""Step models: the interface between search and models.

Axes: B batch, S source positions, V vocabulary.
"""

from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.models import DecodingState, Model
from regard.models.memory import Memory
from regard.nn import taps
from regard.text.specials import BOS, MASK, PAD, SEP

NEVER_GENERATED = (PAD, BOS, SEP, MASK)
"""Special tokens without text: search never generates them."""

SOURCE_ATTENTION = "decoder.*source_attention.weights"
"""The taps of the attention weights from any decoder to the source."""


class State(Protocol):
    """The state of a step model for each row of a batch.

    A state that also has `attention` (B×S: that of the last step to the source) supports a coverage penalty.
    """

    def select(self, rows: Tensor, /) -> Any:
        """Return the state of these rows in this order; rows may repeat."""


S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class Source:
    """A batch of sources for search: their content, mask and random seeds."""

    content: Any
    """The input of the step model: tokens B×S, pixels, prompts, or the sources of several members."""
    mask: Tensor
    """True at the positions that a coverage penalty counts: B×S."""
    seeds: tuple[str, ...]
    """For each row a text that depends only on its content, so that equal sources draw equal samples."""

    @classmethod
    def of(cls, given: "Source | Tensor") -> "Source":
        """Return the source of padded tokens B×S; a `Source` is returned unchanged."""
        if isinstance(given, Source):
            return given
        rows = ([token for token in row if token != PAD] for row in given.tolist())
        return cls(given, given != PAD, tuple(map(str, rows)))

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.mask.device

    def __len__(self) -> int:
        return len(self.mask)


class StepModel(Protocol[S]):
    """Interface of a model that computes scores of the next token from a state and a token."""

    def start(self, source: Source, /) -> S:
        """Return the state before the first token, for B sources."""

    def step(self, tokens: Tensor, state: S, /) -> tuple[Tensor, S]:
        """Read one token B; return the log-probabilities B×V of the next token and the new state."""


class ModelSteps:
    """A trained model as a step model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def start(self, source: Source) -> DecodingState:
        """Encode the sources: tokens B×S, or pixels B×3×H×W."""
        return self.begin(self.model.encode(source.content))

    def begin(self, memory: Memory) -> DecodingState:
        """Return the state before the first token, given the encoded sources."""
        return self.model.start(memory)

    def step(self, tokens: Tensor, state: DecodingState) -> tuple[Tensor, DecodingState]:
        """Return the log-probabilities B×V of the next token and the new state."""
        logits, state = self.model.step(tokens, state)
        return torch.log_softmax(logits.float(), dim=-1), state


@dataclass(frozen=True)
class AttentionState:
    """A decoding state with the attention of the last step."""

    state: DecodingState
    attention: Tensor
    """Mean weight over layers and heads: B×S."""

    def select(self, rows: Tensor) -> Self:
        """Return the state of these rows in this order; rows may repeat."""
        return type(self)(self.state.select(rows), self.attention.index_select(0, rows))


class AttentiveSteps:
    """A trained model as a step model whose states have attention, for coverage penalties; slower than `ModelSteps`."""

    def __init__(self, model: Model) -> None:
        if not any(name.endswith("source_attention.weights") for name in taps.names(model)):
            raise UsageError(
                "A coverage penalty needs attention, but the join of this model is a fixed vector. Leave it out."
            )
        self.model = ModelSteps(model)

    def start(self, source: Source) -> AttentionState:
        """Encode the sources."""
        return self.begin(self.model.model.encode(source.content))

    def begin(self, memory: Memory) -> AttentionState:
        """Return the state before the first token, given the encoded sources."""
        return AttentionState(self.model.begin(memory), torch.zeros_like(memory.mask, dtype=torch.float))

    def step(self, tokens: Tensor, state: AttentionState) -> tuple[Tensor, AttentionState]:
        """Return the log-probabilities B×V of the next token and the new state with its attention."""
        with taps.watch(self.model.model, SOURCE_ATTENTION) as seen:
            scores, after = self.model.step(tokens, state.state)
        weights = torch.cat([seen[name] for name in seen], dim=1)  # B×(layers·H)×1×S
        return scores, AttentionState(after, weights.mean(dim=1)[:, 0])


@dataclass(frozen=True)
class PromptState:
    """A state before the last token of a prompt, or after the whole prompt."""

    state: DecodingState
    waiting: Tensor | None
    """The last token of the prompt B, if it has not been read yet."""

    def select(self, rows: Tensor) -> Self:
        """Return the state of these rows in this order; rows may repeat."""
        waiting = None if self.waiting is None else self.waiting.index_select(0, rows)
        return type(self)(self.state.select(rows), waiting)


class PromptedSteps:
    """A language model as a step model: a source is a prompt that starts with BOS, of the same length in all rows."""

    def __init__(self, model: Model) -> None:
        self.model = ModelSteps(model)

    def start(self, source: Source) -> PromptState:
        """Read prompts B×S up to their last token."""
        state, prompts = self.model.start(source), source.content
        for index in range(prompts.shape[1] - 1):
            _, state = self.model.model.step(prompts[:, index], state)
        return PromptState(state, prompts[:, -1])

    def step(self, tokens: Tensor, state: PromptState) -> tuple[Tensor, PromptState]:
        """Return the log-probabilities B×V of the next token; the first step reads the prompt's last token, not BOS."""
        scores, after = self.model.step(tokens if state.waiting is None else state.waiting, state.state)
        return scores, PromptState(after, None)


def mask_special_tokens(log_probs: Tensor) -> Tensor:
    """Set log-probabilities …×V of special tokens to minus infinity in place; the others are not renormalised."""
    return log_probs.index_fill_(-1, _NEVER_GENERATED.to(log_probs.device), float("-inf"))


_NEVER_GENERATED = torch.tensor(NEVER_GENERATED)
