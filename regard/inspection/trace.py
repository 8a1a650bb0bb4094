"""A trace: everything that happened inside the real model while it read a source and a target.

Axes: B = 1, S source tokens, T target tokens, H heads.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

import torch
from torch import Tensor

from regard.nn import taps
from regard.text.specials import SPECIALS
from regard.text.tokenizer import Tokenizer
from regard.translator import Translator

SOURCE_ATTENTION = "decoder.*source_attention.weights"
"""The taps through which any decoder looks at the source."""


@dataclass(frozen=True)
class Trace:
    """One teacher-forced pass, every tap recorded by name; row t of a decoder tap is what led to target token t."""

    source: list[str]
    """Source tokens as people read them, the end symbol last: S."""
    target: list[str]
    """Target tokens that were said, the end symbol last: T."""
    activations: dict[str, Tensor]
    """What each tap saw, by name; the first axis has length 1."""

    def matching(self, pattern: str) -> dict[str, Tensor]:
        """The activations of the taps whose names match a pattern."""
        return {name: value for name, value in self.activations.items() if fnmatchcase(name, pattern)}


def trace(translator: Translator, source: str, target: str | None = None) -> Trace:
    """Watch the model translate a source, or read a target that it is given."""
    source_ids, target_ids = translator.forced(source, target)
    model = translator.model
    with torch.inference_mode(), taps.watch(model, "*") as recording:
        model(source_ids, target_ids[:, :-1])
    return Trace(
        readable(translator.source_tokenizer, source_ids[0].tolist()),
        readable(translator.target_tokenizer, target_ids[0, 1:].tolist()),
        {name: recording[name].cpu() for name in recording},
    )


def readable(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    """Tokens for the eye: a word's leading mark is dropped; alone it is an open box, or ▸ at the start of a text."""
    tokens = [SPECIALS[one] if one < len(SPECIALS) else tokenizer.vocabulary[one] for one in ids]
    marked = [token.removeprefix("▁") or "␣" for token in tokens]
    return ["▸" if place == 0 and token == "␣" else token for place, token in enumerate(marked)]
