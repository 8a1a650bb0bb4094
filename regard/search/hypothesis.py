"""What search finds."""

from dataclasses import dataclass
from typing import Literal

Ended = Literal["end", "length"]


@dataclass(frozen=True)
class Hypothesis:
    """One output: its tokens (the end symbol left off), what they cost, and why it ended."""

    tokens: tuple[int, ...]
    """What was said."""
    log_probs: tuple[float, ...]
    """The log-probability of each token, that of the end symbol last if it was said."""
    score: float
    """What search ranked it by: the sum of `log_probs`, divided by their number to the power of the length penalty."""
    ended: Ended
    """`end`: the model said so; `length`: the limit did."""


def scored(tokens: tuple[int, ...], log_probs: tuple[float, ...], length_penalty: float, ended: Ended) -> Hypothesis:
    """The hypothesis of these tokens, with its score."""
    return Hypothesis(tokens, log_probs, sum(log_probs) / max(len(log_probs), 1) ** length_penalty, ended)
