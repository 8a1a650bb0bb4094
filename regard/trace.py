"""A trace: everything that happened inside the real model while it read a source and a target.

Axes: S source tokens, T target tokens, V vocabulary, H heads; a trace is of one sentence pair, so there is no batch.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from regard.errors import UsageError
from regard.models import Model
from regard.nn import taps
from regard.nn.attention import Attention
from regard.nn.taps import Write
from regard.text.normalising import WORD_START
from regard.text.specials import SPECIALS, UNK
from regard.text.tokenizer import Tokenizer

SOURCE_ATTENTION = "decoder.*source_attention.weights"
"""The taps through which any decoder looks at the source."""

_SPELT = re.compile("(?:<0x[0-9A-F]{2}>)+")
"""Letters that a vocabulary has no token for are spelt in bytes."""

MOST_BYTES = 2**30
"""Memory that the weights of all heads may take in one trace."""


@dataclass(frozen=True)
class Side:
    """The tokens of one side, and the words that they make up."""

    ids: list[int]
    """As the model reads them."""
    tokens: list[str]
    """As people read them: a word's leading mark is dropped; alone it is an open box, or ▸ at the start of a text."""
    words: list[int]
    """The word of each token, counted from 0; a special token is a word of its own."""
    special: list[bool]
    """Which tokens are special: the start and the end symbol (an unknown word is a word)."""

    @classmethod
    def of(cls, tokenizer: Tokenizer, ids: list[int]) -> Self:
        """Ids, special ones included, as a side."""
        special = [one < len(SPECIALS) and one != UNK for one in ids]
        pieces = [SPECIALS[one] if one < len(SPECIALS) else tokenizer.vocabulary[one] for one in ids]
        words: list[int] = []
        for place, piece in enumerate(pieces):
            starts = place == 0 or special[place] or special[place - 1] or ids[place] == UNK
            starts = starts or piece.startswith(WORD_START)
            words.append(words[-1] + starts if words else 0)
        marked = [piece.removeprefix(WORD_START) or "␣" for piece in pieces]
        tokens = ["▸" if place == 0 and piece == "␣" else piece for place, piece in enumerate(marked)]
        return cls(list(ids), tokens, words, special)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def word_texts(self) -> list[str]:
        """The words themselves: what stands between white space, and each special token."""
        texts = [""] * (self.words[-1] + 1 if self.words else 0)
        for word, token in zip(self.words, self.tokens, strict=True):
            texts[word] += "" if token in "␣▸" and len(self.tokens) > 1 else token
        return [_SPELT.sub(_letters, text) or "␣" for text in texts]

    def summed(self, values: Tensor) -> Tensor:
        """Values …×tokens as …×words: what is given *to* a word is the sum of what its tokens are given."""
        merged = values.new_zeros(*values.shape[:-1], len(self.word_texts))
        return merged.index_add_(-1, torch.tensor(self.words), values)

    def averaged(self, values: Tensor) -> Tensor:
        """Values …×tokens×n as …×words×n: what a word gives is the mean of what its tokens give."""
        merged = values.new_zeros(*values.shape[:-2], len(self.word_texts), values.shape[-1])
        places = torch.tensor(self.words)
        counts = torch.bincount(places).to(values.dtype)
        return merged.index_add_(-2, places, values) / counts[:, None]


@dataclass(frozen=True)
class Picture:
    """A picture as a source: a grid of places."""

    name: str
    pixels: Tensor
    """As the model reads them: 3×H×W."""
    grid: tuple[int, int]
    """Rows and columns of places."""

    @property
    def side(self) -> Side:
        """The places as a side, row by row, each by its row and column."""
        rows, columns = self.grid
        tokens = [f"{row},{column}" for row in range(rows) for column in range(columns)]
        count = len(tokens)
        return Side(list(range(count)), tokens, list(range(count)), [False] * count)


@dataclass(frozen=True)
class Trace:
    """One teacher-forced pass with every tap recorded by name.

    Row t of a decoder tap is what led to target token t: the decoder had read the tokens before it.
    """

    model: Model
    """The model that was watched, for analyses that ask it more."""
    source: Side
    """S: the source tokens, the end symbol last."""
    target: Side
    """T: the target tokens that were said, the end symbol last."""
    inputs: Side
    """T: the target tokens that were read, the start symbol first."""
    activations: dict[str, Tensor]
    """What each tap saw, without the batch axis: weights H×T×S, states T×D, …"""
    log_probabilities: Tensor
    """T×V: of every token at every target position."""
    tokenizer: Tokenizer | None = None
    """The target's, for analyses that speak of words that were not said."""
    picture: Picture | None = None
    """What the model looked at, where its source is a picture; the source tokens are then its places."""

    def matching(self, pattern: str) -> dict[str, Tensor]:
        """The activations of the taps whose names match a pattern, in the order of the model."""
        return {name: value for name, value in self.activations.items() if fnmatchcase(name, pattern)}

    @property
    def read(self) -> Tensor:
        """What the encoder read: the source's tokens 1×S, or the picture's pixels 1×3×H×W."""
        return torch.tensor([self.source.ids]) if self.picture is None else self.picture.pixels[None]

    @property
    def said(self) -> Tensor:
        """The log-probability of each target token: T."""
        return self.log_probabilities.gather(1, torch.tensor(self.target.ids)[:, None])[:, 0]

    def again(self, write: Mapping[str, Write]) -> "Trace":
        """The same pass with interventions: each function is given the tap's value with its batch axis of one."""
        return trace(self.model, self.source, self.target, self.inputs, write, self.tokenizer, self.picture)


def trace(
    model: Model,
    source: Side,
    target: Side,
    inputs: Side,
    write: Mapping[str, Write] | None = None,
    tokenizer: Tokenizer | None = None,
    picture: Picture | None = None,
) -> Trace:
    """Watch the model read a source (or look at a picture) and a target; `write` as in `taps.watch`."""
    check_cost(model, max(len(source), len(target)))
    known = taps.names(model)
    for name in write or {}:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=2, cutoff=0.0)
            raise UsageError(f"This model has no tap {name}: did you mean {' or '.join(near)}?")
    device = model.output_bias.device
    read = torch.tensor([source.ids]) if picture is None else picture.pixels[None]
    with torch.no_grad(), taps.watch(model, "*", write=write) as recording:
        logits = model(read.to(device), torch.tensor([inputs.ids], device=device))
    ordered = sorted(known, key=lambda name: not name.startswith("encoder"))  # the source comes first
    seen = {name: recording[name][0].cpu() for name in ordered if name in recording}
    return Trace(model, source, target, inputs, seen, logits[0].log_softmax(-1).cpu(), tokenizer, picture)


def _letters(spelt: re.Match[str]) -> str:
    """The letters that bytes such as `<0xC3><0xA9>` spell."""
    return bytes.fromhex(spelt[0].replace("<0x", "").replace(">", "")).decode("utf-8", "replace")


def check_cost(model: Model, tokens: int) -> None:
    """Refuse what would not fit: a trace keeps every weight of every head."""
    heads = sum(module.heads for module in model.modules() if isinstance(module, Attention))
    needed = 4 * heads * tokens**2
    if needed > MOST_BYTES:
        fits = int((MOST_BYTES / (4 * heads)) ** 0.5)
        raise UsageError(
            f"Looking inside at {tokens:,} tokens would take {needed / 2**30:.1f} GiB for the weights of all {heads} "
            f"heads: this model can be looked into at up to {fits:,} tokens. Split the text."
        )
