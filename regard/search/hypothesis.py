"""Hypotheses: the results of search."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from regard.text.specials import EOS

Ended = Literal["end", "length", "repetition"]


@dataclass(frozen=True)
class Hypothesis:
    """One output: its tokens (without the end symbol), their log-probabilities, and why it ended.

    Hypotheses that the model ended rank before those that were cut off, each by score: without the log-probability of
    the end symbol the score of a hypothesis is too high.
    """

    tokens: tuple[int, ...]
    """The generated tokens; in the output for a text that was split, with the end symbol between pieces."""
    log_probs: tuple[float, ...]
    """The model's own log-probability of each token, that of the end symbol last if it was generated."""
    score: float
    """The score that search ranks by: the sum of `log_probs`, divided by their number to the power of the length
    penalty."""
    ended: Ended
    """`end`: at the end symbol; `length`: at the length limit; `repetition`: cut off where the output began to loop."""
    text: str = ""
    """The decoded text; filled in after search."""
    attention: tuple[tuple[float, ...], ...] | None = None
    """On request: the attention of each token (the end symbol last) to each source token (likewise), T×S."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """On request: pairs (source word, target word), counted from 0; see `search.alignment`."""

    @property
    def confidence(self) -> float:
        """The geometric mean of the probabilities of its tokens, 0 without tokens. It is not calibrated."""
        return math.exp(math.fsum(self.log_probs) / len(self.log_probs)) if self.log_probs else 0.0


def scored(
    tokens: tuple[int, ...], log_probs: tuple[float, ...], length_penalty: float, ended: Ended, bonus: float = 0.0
) -> Hypothesis:
    """Return the hypothesis of these tokens with its score."""
    score = sum(log_probs) / max(len(log_probs), 1) ** length_penalty + bonus
    return Hypothesis(tokens, log_probs, score, ended)


def joined(parts: Sequence[Hypothesis], spaces: Sequence[str], length_penalty: float) -> Hypothesis:
    """Join the hypotheses of a text's pieces, with the white space that followed each piece.

    The end symbol of every piece but the last is one of its tokens, so that each log-probability has its token.
    """
    tokens: list[int] = []
    log_probs: list[float] = []
    for part in parts:
        if len(log_probs) > len(tokens):
            tokens.append(EOS)
        tokens += part.tokens
        log_probs += part.log_probs
    ended: Ended = next((part.ended for part in parts if part.ended != "end"), "end")
    whole = scored(tuple(tokens), tuple(log_probs), length_penalty, ended)
    text = "".join(part.text + space for part, space in zip(parts, spaces, strict=True))
    return replace(whole, text=text)


def distinct(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    """Return hypotheses in their order without duplicate texts."""
    first: dict[str, Hypothesis] = {}
    for hypothesis in hypotheses:
        first.setdefault(hypothesis.text, hypothesis)
    return list(first.values())


def rank(hypothesis: Hypothesis) -> tuple[bool, float]:
    """Return the sort key of a hypothesis: those that the model ended before those cut off, then by score."""
    return hypothesis.ended != "end", -hypothesis.score
