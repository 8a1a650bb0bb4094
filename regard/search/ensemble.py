"""Several step models as one: the mean of their probabilities.

Axes: B batch, M members, S source positions, V vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from regard.search.steps import StepModel


@dataclass(frozen=True)
class Together:
    """The states of all members."""

    states: tuple[Any, ...]

    def select(self, rows: Tensor) -> Self:
        """The states of these rows only, in this order, repeats allowed."""
        return type(self)(tuple(state.select(rows) for state in self.states))


class EnsembleSteps:
    """p(next) = 1/M Σ_m p_m(next), for members of any kind with the same target vocabulary.

    Each member may read the source in tokens of its own: sources stand side by side, `widths[m]` columns for member m.
    """

    def __init__(self, members: Sequence[StepModel[Any]], widths: Sequence[int]) -> None:
        self.members = tuple(members)
        self.widths = list(widths)

    def start(self, source: Tensor) -> Together:
        """Each member's start, from its own columns of sources B×ΣS."""
        parts = torch.split(source, self.widths, dim=1)
        return Together(tuple(member.start(part) for member, part in zip(self.members, parts, strict=True)))

    def step(self, tokens: Tensor, state: Together) -> tuple[Tensor, Together]:
        """Log-probabilities B×V of the next token."""
        steps = [member.step(tokens, own) for member, own in zip(self.members, state.states, strict=True)]
        scores = torch.stack([scores for scores, _ in steps]).logsumexp(dim=0) - math.log(len(steps))  # B×V
        return scores, Together(tuple(behind for _, behind in steps))
