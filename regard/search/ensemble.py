"""Several step models as one: the mean of their probabilities.

Axes: B batch, M members, S source positions, V vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from regard.search.steps import Source, StepModel


@dataclass(frozen=True)
class Together:
    """The states of all members."""

    states: tuple[Any, ...]

    def select(self, rows: Tensor) -> Self:
        """The states of these rows only, in this order, repeats allowed."""
        return type(self)(tuple(state.select(rows) for state in self.states))


class EnsembleSteps:
    """p(next) = 1/M Σ_m p_m(next), for members of any kind with the same target vocabulary.

    Each member may read the source in tokens of its own.
    """

    def __init__(self, members: Sequence[StepModel[Any]]) -> None:
        self.members = tuple(members)

    def start(self, source: Source) -> Together:
        """Each member's start, from its own source."""
        return Together(tuple(member.start(own) for member, own in zip(self.members, source.content, strict=True)))

    def step(self, tokens: Tensor, state: Together) -> tuple[Tensor, Together]:
        """Log-probabilities B×V of the next token."""
        steps = [member.step(tokens, own) for member, own in zip(self.members, state.states, strict=True)]
        scores = torch.stack([scores for scores, _ in steps]).logsumexp(dim=0) - math.log(len(steps))  # B×V
        return scores, Together(tuple(behind for _, behind in steps))


def join_sources(sources: Sequence[Source]) -> Source:
    """The sources of all members as one; positions are those of the first."""
    seeds = zip(*(one.seeds for one in sources), strict=True)
    return Source(tuple(sources), sources[0].mask, tuple(map(" ".join, seeds)))
