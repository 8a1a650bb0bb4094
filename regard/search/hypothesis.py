"""What search finds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from regard.text.specials import EOS

Ended = Literal["end", "length", "repetition"]


@dataclass(frozen=True)
class Hypothesis:
    """One output: its tokens (the end symbol left off), what they cost, and why it ended.

    Of several, those that the model ended come first, best score first, and behind them those that were cut short, best
    score first: what was cut has not paid for an end, so its score says too much.
    """

    tokens: tuple[int, ...]
    """What was said; in the output for a text that was split, with the end symbol between pieces."""
    log_probs: tuple[float, ...]
    """The model's own log-probability of each token, that of the end symbol last if it was said."""
    score: float
    """What search ranked it by: the sum of `log_probs`, divided by their number to the power of the length penalty."""
    ended: Ended
    """`end`: the model said so; `length`: the limit did; `repetition`: it went round in circles, and was cut."""
    text: str = ""
    """What a reader sees; a translator fills it in."""
    attention: tuple[tuple[float, ...], ...] | None = None
    """On request: the weight that each token (the end symbol last) gave to each source token (likewise), T×S."""
    alignment: tuple[tuple[int, int], ...] | None = None
    """On request: pairs (source word, target word), counted from 0; see `search.alignment`."""


def scored(
    tokens: tuple[int, ...], log_probs: tuple[float, ...], length_penalty: float, ended: Ended, bonus: float = 0.0
) -> Hypothesis:
    """The hypothesis of these tokens, with its score."""
    score = sum(log_probs) / max(len(log_probs), 1) ** length_penalty + bonus
    return Hypothesis(tokens, log_probs, score, ended)


def joined(parts: Sequence[Hypothesis], spaces: Sequence[str], length_penalty: float) -> Hypothesis:
    """The hypothesis of a text from those of its pieces, with the white space that stood behind each.

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
    """Hypotheses in their order, each text once."""
    first: dict[str, Hypothesis] = {}
    for one in hypotheses:
        first.setdefault(one.text, one)
    return list(first.values())


def rank(hypothesis: Hypothesis) -> tuple[bool, float]:
    """What to sort hypotheses by: those that ended by themselves before those cut short, then the best score first."""
    return hypothesis.ended != "end", -hypothesis.score
