"""What search finds."""

from dataclasses import dataclass
from typing import Literal

Ended = Literal["end", "length", "repetition"]


@dataclass(frozen=True)
class Hypothesis:
    """One output: its tokens (the end symbol left off), what they cost, and why it ended."""

    tokens: tuple[int, ...]
    """What was said."""
    log_probs: tuple[float, ...]
    """The model's own log-probability of each token, that of the end symbol last if it was said."""
    score: float
    """What search ranked it by: the sum of `log_probs`, divided by their number to the power of the length penalty."""
    ended: Ended
    """`end`: the model said so; `length`: the limit did; `repetition`: it went round in circles, and was cut."""
    text: str = ""
    """What a reader sees; a translator fills it in."""


def scored(
    tokens: tuple[int, ...], log_probs: tuple[float, ...], length_penalty: float, ended: Ended, bonus: float = 0.0
) -> Hypothesis:
    """The hypothesis of these tokens, with its score."""
    score = sum(log_probs) / max(len(log_probs), 1) ** length_penalty + bonus
    return Hypothesis(tokens, log_probs, score, ended)
