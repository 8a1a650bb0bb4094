"""Ensemble of step models: the mean of their probabilities.

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
class EnsembleState:
    """The states of all members."""

    states: tuple[Any, ...]

    def select(self, rows: Tensor) -> Self:
        """Return the states of these rows in this order; rows may repeat."""
        return type(self)(tuple(state.select(rows) for state in self.states))


class EnsembleSteps:
    """p(next) = 1/M Σ_m p_m(next), for models of any kind with the same target vocabulary.

    Each member may tokenize the source differently.
    """

    def __init__(self, members: Sequence[StepModel[Any]]) -> None:
        self.members = tuple(members)

    def start(self, source: Source) -> EnsembleState:
        """Return the initial state of each member, from its own source."""
        return EnsembleState(tuple(member.start(own) for member, own in zip(self.members, source.content, strict=True)))

    def step(self, tokens: Tensor, state: EnsembleState) -> tuple[Tensor, EnsembleState]:
        """Return the log-probabilities B×V of the next token and the new state."""
        steps = [member.step(tokens, own) for member, own in zip(self.members, state.states, strict=True)]
        scores = torch.stack([scores for scores, _ in steps]).logsumexp(dim=0) - math.log(len(steps))  # B×V
        return scores, EnsembleState(tuple(after for _, after in steps))


def join_sources(sources: Sequence[Source]) -> Source:
    """Join the sources of all members to one, with the mask of the first."""
    seeds = zip(*(source.seeds for source in sources), strict=True)
    return Source(tuple(sources), sources[0].mask, tuple(map(" ".join, seeds)))
