"""Tensors and tokens as plain data, the same in JSON and on pages."""

from typing import Any

from regard.pages.packed_numbers import plain_numbers as rounded
from regard.tasks.trace import Side

__all__ = ["rounded", "rounded_number", "side_data"]


def rounded_number(value: float) -> float:
    """Return a number to five significant digits, as `rounded` does for tensors."""
    return float(f"{value:.5g}")


def side_data(side: Side) -> dict[str, Any]:
    """Return the tokens of a side, the words that they make up, and which are special."""
    return {"tokens": side.tokens, "words": side.words, "wordTexts": side.word_texts, "special": side.special}
