"""CTC in search: the decoder and the encoder's alignment score every prefix together (Watanabe et al., 2017).

The score of an output y is (1 − λ) · log P(y | decoder) + λ · log P_CTC(y). After a prefix g, a token c adds
λ · (log P_CTC(g·c…) − log P_CTC(g…)), where P_CTC(g…) is the probability of all outputs that begin with g (Graves,
2008). The end adds what is left to log P_CTC(g). So search stays a sum over tokens, and the decoder cannot skip or
repeat what the encoder has located. Axes: B rows, S source positions, V vocabulary.
"""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from regard.models import Model
from regard.search.hypothesis import Hypothesis
from regard.search.steps import AttentiveSteps, ModelSteps, Source
from regard.text.specials import EOS, PAD

BLANK = PAD
LOWEST = -1e5
"""Log-probability of what is impossible, such as more tokens than positions; finite, so that it can be subtracted."""


@dataclass(frozen=True)
class CtcState:
    """The state of the decoder, and the probabilities of all alignments of the prefix."""

    inner: Any
    log_probs: Tensor
    """log P(token | position): B×S×V; after the end of a sound only blanks."""
    token: Tensor
    """log-probability of the alignments of the prefix up to each position that end with its last token: B×S+1."""
    blank: Tensor
    """The same for those that end with a blank: B×S+1; position 0 is before the sound."""
    last: Tensor | None = None
    """The last token of the prefix: B; `None` before the first."""
    scores: Tensor | None = None
    """log P_CTC(prefix·token…) for every next token: B×V; `None` before the first step."""

    @property
    def attention(self) -> Tensor:
        """The attention of the last step to the source, if the decoder's state has it."""
        attention: Tensor = self.inner.attention
        return attention

    def select(self, rows: Tensor) -> Self:
        """Return the state of these rows in this order; rows may repeat."""
        log_probs, token, blank = (tensor[rows] for tensor in (self.log_probs, self.token, self.blank))
        last, scores = (None if tensor is None else tensor[rows] for tensor in (self.last, self.scores))
        return type(self)(self.inner.select(rows), log_probs, token, blank, last, scores)


class CtcSteps:
    """A step model whose scores are mixed with those of CTC; `weight` is λ."""

    def __init__(self, steps: ModelSteps | AttentiveSteps, model: Model, weight: float) -> None:
        self.steps, self.model, self.weight = steps, model, weight

    def start(self, source: Source) -> CtcState:
        """Encode the sources; the empty prefix is aligned with blanks alone."""
        memory = self.model.encode(source.content)
        assert isinstance(self.model.ctc, nn.Linear)
        exact = torch.float32 if source.device.type == "mps" else torch.float64  # which Apple GPUs do not have
        log_probs = torch.log_softmax(self.model.ctc(memory.states).to(exact), dim=2)  # B×S×V
        log_probs = log_probs.masked_fill(~memory.mask[..., None], -torch.inf)
        log_probs[..., BLANK] = log_probs[..., BLANK].masked_fill(~memory.mask, 0.0)
        silent = torch.cat([log_probs.new_zeros(len(log_probs), 1), log_probs[..., BLANK].cumsum(1)], dim=1)
        return CtcState(self.steps.begin(memory), log_probs, torch.full_like(silent, -torch.inf), silent)

    def step(self, tokens: Tensor, state: CtcState) -> tuple[Tensor, CtcState]:
        """Return the mixed scores B×V of the next token and the new state."""
        scores, inner = self.steps.step(tokens, state.inner)  # B×V
        before = state.blank.new_zeros(len(tokens), 1)  # every output begins with the empty prefix
        if state.scores is not None:
            before = state.scores.gather(1, tokens[:, None])  # B×1
            state = extend(state, tokens)
        found = prefix_scores(state)
        mixed = (1 - self.weight) * scores + self.weight * (found - before).to(scores.dtype)
        mixed = mixed.masked_fill((found <= LOWEST) & (before > LOWEST), LOWEST)  # whatever the weight
        return mixed, CtcState(inner, state.log_probs, state.token, state.blank, state.last, found)


def is_possible(hypothesis: Hypothesis) -> bool:
    """Return whether CTC can align an output with its source."""
    return all(log_prob > LOWEST / 2 for log_prob in hypothesis.log_probs)


def extend(state: CtcState, tokens: Tensor) -> CtcState:
    """Return the state after one more token of each row.

    With x the token's log-probabilities and φ those of a prefix that may be followed by it, the recurrence
    n_t = log(exp n_{t−1} + exp φ_{t−1}) + x_t has the solution n_t = X_t + log Σ_{s≤t} exp(φ_{s−1} − X_{s−1}), X = Σ x.
    """
    own = state.log_probs.gather(2, tokens[:, None, None].expand(-1, state.log_probs.shape[1], 1))[..., 0]  # B×S
    token = _recur(_ways(state, tokens)[:, :-1], own.clamp_min(LOWEST))  # B×S
    before = torch.cat([torch.full_like(token[:, :1], -torch.inf), token], dim=1)  # B×S+1
    blank = _recur(before[:, :-1], state.log_probs[..., BLANK].clamp_min(LOWEST))  # B×S
    blank = torch.cat([torch.full_like(blank[:, :1], -torch.inf), blank], dim=1)  # B×S+1
    return CtcState(state.inner, state.log_probs, before, blank, tokens)


def prefix_scores(state: CtcState) -> Tensor:
    """Return log P_CTC(prefix·token…) for every token: B×V; for the end, log P_CTC(prefix)."""
    both = torch.logaddexp(state.token, state.blank)  # B×S+1
    found = torch.logsumexp(both[:, :-1, None] + state.log_probs, dim=1)  # B×V
    if state.last is not None:  # a repeated token needs a blank between
        place = state.last[:, None]
        own = state.log_probs.gather(2, place[:, None].expand(-1, state.log_probs.shape[1], 1))[..., 0]  # B×S
        found = found.scatter(1, place, torch.logsumexp(state.blank[:, :-1] + own, dim=1, keepdim=True))
    found[:, EOS] = both[:, -1]
    return found.clamp_min(LOWEST)


def _ways(state: CtcState, tokens: Tensor) -> Tensor:
    """Return the log-probability B×S+1 of the prefix up to each position, where the token may follow."""
    if state.last is None:
        return state.blank
    repeated = (tokens == state.last)[:, None]
    return torch.where(repeated, state.blank, torch.logaddexp(state.token, state.blank))


def _recur(ways: Tensor, log_probs: Tensor) -> Tensor:
    """Solve n_t = log(exp n_{t−1} + exp φ_{t−1}) + x_t for φ and x B×S."""
    total = log_probs.cumsum(1)
    return total + torch.logcumsumexp(ways - (total - log_probs), dim=1)
