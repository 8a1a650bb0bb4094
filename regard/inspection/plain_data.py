"""Tensors and tokens as plain data, the same in JSON and on pages."""

from typing import Any

from torch import Tensor

from regard.tasks.trace import Side


def rounded(values: Tensor) -> list[Any]:
    """Return nested lists of numbers with four decimal places, exactly as `regard.inspection.page.pack` keeps them."""
    whole: list[Any] = (values.detach().double() * 1e4).round().div(1e4).tolist()
    return whole


def side_data(side: Side) -> dict[str, Any]:
    """Return the tokens of a side, the words that they make up, and which are special."""
    return {"tokens": side.tokens, "words": side.words, "wordTexts": side.word_texts, "special": side.special}
