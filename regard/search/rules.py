"""Rules: which tokens may come next, given those so far; the contract, and how search keeps to it.

A rule is pure and belongs to one row. It reads tokens one at a time through a state of its own, so that its cost does
not grow with the length of the output. Axes: B rows, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.foundation.errors import RegardError
from regard.text.specials import EOS

NOTHING = float("-inf")


class Stuck(RegardError):
    """Rules leave nothing to say in a row: no output keeps to all of them."""

    def __init__(self, row: int) -> None:
        super().__init__("The constraints leave nothing to say: no output keeps to all of them. Relax one.")
        self.row = row


class Rule(Protocol):
    """What may be said next."""

    needs: int
    """How many tokens an output must have room for, so that the rule can be kept."""

    @property
    def start(self) -> Any:
        """The state before the first token."""

    def after(self, state: Any, token: int, /) -> Any:
        """The state behind one more token."""

    def looked(self, state: Any, attention: Tensor, /) -> Any:
        """The state once it is known how much the model looks at each source token (S) while it says the next."""

    def allowed(self, state: Any, left: int, size: int, /) -> Tensor | None:
        """True at the tokens (of `size`) that may be said now, with room for `left` more; `None` is all."""

    def met(self, state: Any, /) -> int:
        """How many tokens of what must be said have been said."""

    def wanted(self, state: Any, /) -> Sequence[int]:
        """The tokens that bring what must be said nearer."""


class Free:
    """No rule at all; others add to it."""

    needs = 0

    @property
    def start(self) -> Any:
        """Nothing to remember."""
        return None

    def after(self, state: Any, token: int) -> Any:
        """Nothing to remember."""
        return state

    def looked(self, state: Any, attention: Tensor) -> Any:
        """It does not matter where the model looks."""
        return state

    def allowed(self, state: Any, left: int, size: int) -> Tensor | None:
        """Everything."""
        return None

    def met(self, state: Any) -> int:
        """Nothing must be said."""
        return 0

    def wanted(self, state: Any) -> Sequence[int]:
        """Nothing must be said."""
        return ()


class Every(Free):
    """Several rules at once."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self.needs = sum(rule.needs for rule in self.rules)

    @property
    def start(self) -> tuple[Any, ...]:
        """Each rule's own."""
        return tuple(rule.start for rule in self.rules)

    def after(self, state: tuple[Any, ...], token: int) -> tuple[Any, ...]:
        """Each rule's own."""
        return tuple(rule.after(own, token) for rule, own in zip(self.rules, state, strict=True))

    def looked(self, state: tuple[Any, ...], attention: Tensor) -> tuple[Any, ...]:
        """Each rule's own."""
        return tuple(rule.looked(own, attention) for rule, own in zip(self.rules, state, strict=True))

    def allowed(self, state: tuple[Any, ...], left: int, size: int) -> Tensor | None:
        """What all of them allow."""
        both: Tensor | None = None
        for rule, own in zip(self.rules, state, strict=True):
            mask = rule.allowed(own, left, size)
            if mask is not None:
                both = mask if both is None else both & mask
        return both

    def met(self, state: tuple[Any, ...]) -> int:
        """All of theirs."""
        return sum(rule.met(own) for rule, own in zip(self.rules, state, strict=True))

    def wanted(self, state: tuple[Any, ...]) -> Sequence[int]:
        """All of theirs."""
        return [token for rule, own in zip(self.rules, state, strict=True) for token in rule.wanted(own)]


def one_of(tokens: Sequence[int], size: int) -> Tensor:
    """A mask of V that is true at these tokens."""
    mask = torch.zeros(size, dtype=torch.bool)
    mask[list(tokens)] = True
    return mask


def look(rules: Sequence[Rule], states: Sequence[Any], attention: Tensor | None) -> list[Any]:
    """The state of each row's rule, once it is known where the model looks (B×S), if it is."""
    if attention is None:
        return list(states)
    return [rule.looked(state, row) for rule, state, row in zip(rules, states, attention, strict=True)]


def keep_to(scores: Tensor, rules: Sequence[Rule], states: Sequence[Any], left: Sequence[int]) -> Tensor:
    """Scores B×V with minus infinity at what each row's rule forbids."""
    for row, (rule, state, room) in enumerate(zip(rules, states, left, strict=True)):
        mask = rule.allowed(state, room, scores.shape[1])
        if mask is not None:
            scores[row].masked_fill_(~mask.to(scores.device), NOTHING)
    return scores


def may_end(rule: Rule, tokens: Sequence[int], size: int) -> bool:
    """Whether an output of these tokens keeps to a rule."""
    state = rule.start
    for token in tokens:
        state = rule.after(state, token)
    mask = rule.allowed(state, 1, size)
    return mask is None or bool(mask[EOS])
