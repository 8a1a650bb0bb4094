"""Rules: which tokens may come next, given the tokens so far; the interface, and how search applies it.

A rule is pure and belongs to one row. It reads tokens one at a time and keeps its own state, so that its cost does not
grow with the length of the output. Axes: B rows, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.foundation.errors import RegardError
from regard.text.specials import EOS

NOTHING = float("-inf")


class Stuck(RegardError):
    """No output of a row satisfies all rules."""

    def __init__(self, row: int) -> None:
        super().__init__("No output satisfies all constraints. Relax one of them.")
        self.row = row


class Rule(Protocol):
    """Interface of a rule: decides which tokens may come next."""

    needs: int
    """The number of tokens that an output must have room for, so that the rule can be satisfied."""

    @property
    def start(self) -> Any:
        """The state before the first token."""

    def after(self, state: Any, token: int, /) -> Any:
        """Return the state after one more token."""

    def looked(self, state: Any, attention: Tensor, /) -> Any:
        """Return the state updated with the attention to each source token (S) at the step of the next token."""

    def allowed(self, state: Any, left: int, size: int, /) -> Tensor | None:
        """Return a mask of `size` tokens, true at those allowed now, with `left` tokens left; `None` allows all."""

    def met(self, state: Any, /) -> int:
        """Return the number of required tokens that have been generated."""

    def wanted(self, state: Any, /) -> Sequence[int]:
        """Return the tokens that make progress towards the required ones."""


class Free:
    """The rule that allows everything; base class of the others."""

    needs = 0

    @property
    def start(self) -> Any:
        """No state."""
        return None

    def after(self, state: Any, token: int) -> Any:
        """Return the state unchanged."""
        return state

    def looked(self, state: Any, attention: Tensor) -> Any:
        """Ignore attention."""
        return state

    def allowed(self, state: Any, left: int, size: int) -> Tensor | None:
        """Allow every token."""
        return None

    def met(self, state: Any) -> int:
        """Return 0, since no token is required."""
        return 0

    def wanted(self, state: Any) -> Sequence[int]:
        """Return no tokens, since none is required."""
        return ()


class Every(Free):
    """The conjunction of several rules."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self.needs = sum(rule.needs for rule in self.rules)

    @property
    def start(self) -> tuple[Any, ...]:
        """The states of all rules."""
        return tuple(rule.start for rule in self.rules)

    def after(self, state: tuple[Any, ...], token: int) -> tuple[Any, ...]:
        """Return the states of all rules."""
        return tuple(rule.after(own, token) for rule, own in zip(self.rules, state, strict=True))

    def looked(self, state: tuple[Any, ...], attention: Tensor) -> tuple[Any, ...]:
        """Return the states of all rules."""
        return tuple(rule.looked(own, attention) for rule, own in zip(self.rules, state, strict=True))

    def allowed(self, state: tuple[Any, ...], left: int, size: int) -> Tensor | None:
        """Return the tokens that all rules allow."""
        both: Tensor | None = None
        for rule, own in zip(self.rules, state, strict=True):
            mask = rule.allowed(own, left, size)
            if mask is not None:
                both = mask if both is None else both & mask
        return both

    def met(self, state: tuple[Any, ...]) -> int:
        """Combine the results of all rules."""
        return sum(rule.met(own) for rule, own in zip(self.rules, state, strict=True))

    def wanted(self, state: tuple[Any, ...]) -> Sequence[int]:
        """Combine the results of all rules."""
        return [token for rule, own in zip(self.rules, state, strict=True) for token in rule.wanted(own)]


def one_of(tokens: Sequence[int], size: int) -> Tensor:
    """Return a mask of V that is true at these tokens."""
    mask = torch.zeros(size, dtype=torch.bool)
    mask[list(tokens)] = True
    return mask


def update_attention(rules: Sequence[Rule], states: Sequence[Any], attention: Tensor | None) -> list[Any]:
    """Update the state of each row's rule with attention B×S to the source, if there is any."""
    if attention is None:
        return list(states)
    return [rule.looked(state, row) for rule, state, row in zip(rules, states, attention, strict=True)]


def apply_rules(scores: Tensor, rules: Sequence[Rule], states: Sequence[Any], left: Sequence[int]) -> Tensor:
    """Set scores B×V to minus infinity at the tokens that each row's rule forbids."""
    for row, (rule, state, room) in enumerate(zip(rules, states, left, strict=True)):
        mask = rule.allowed(state, room, scores.shape[1])
        if mask is not None:
            scores[row].masked_fill_(~mask.to(scores.device), NOTHING)
    return scores


def may_end(rule: Rule, tokens: Sequence[int], size: int) -> bool:
    """Return whether an output of these tokens satisfies a rule."""
    state = rule.start
    for token in tokens:
        state = rule.after(state, token)
    mask = rule.allowed(state, 1, size)
    return mask is None or bool(mask[EOS])
