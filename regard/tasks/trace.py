"""A trace: everything that happened inside the real model while it read a source and a target, or answered a text.

Axes: S source tokens, T target tokens (or answers), V vocabulary (or classes), H heads; a trace is of one sentence
pair, so there is no batch.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import accumulate
from typing import Self

import torch
from torch import Tensor, nn

from regard.foundation.errors import UsageError
from regard.models import Model
from regard.models.encoder_model import EncoderModel
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

NO_DECODER = (
    "This asks how a decoder writes, and the model of this run only reads: regard inspect attention, heads, attribute, "
    "identify and probe look into that."
)

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

    @classmethod
    def of_labels(cls, names: Sequence[str], numbers: Sequence[int]) -> Self:
        """Answers that are no tokens, such as labels: each is a word of its own."""
        return cls(list(numbers), list(names), list(range(len(names))), [False] * len(names))

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
        return merged.index_add_(-1, torch.tensor(self.words, dtype=torch.long), values)

    def averaged(self, values: Tensor) -> Tensor:
        """Values …×tokens×n as …×words×n: what a word gives is the mean of what its tokens give."""
        merged = values.new_zeros(*values.shape[:-2], len(self.word_texts), values.shape[-1])
        places = torch.tensor(self.words, dtype=torch.long)
        counts = torch.bincount(places).to(values.dtype)
        return merged.index_add_(-2, places, values) / counts[:, None]


def side_of(grid: tuple[int, int]) -> Side:
    """The places of a grid as a side, row by row, each by its row and column."""
    rows, columns = grid
    tokens = [f"{row},{column}" for row in range(rows) for column in range(columns)]
    count = len(tokens)
    return Side(list(range(count)), tokens, list(range(count)), [False] * count)


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
        """The places as a side."""
        return side_of(self.grid)


@dataclass(frozen=True)
class Given:
    """What a model is given: the ids that it reads, and what is asked of it."""

    source: list[int]
    """S: source tokens."""
    asked: list[int]
    """T: the target tokens before each answer; of a model that only reads, the places that answers are read off."""
    picture: Picture | None = None
    """What is looked at, where the source is a picture; its tokens are then places."""
    beside: bool = False
    """Whether the picture stands beside a source of text, and that is all that is asked about."""
    content: Tensor | None = None
    """What the model reads, without the batch axis, where the source is neither text nor a picture."""

    def asking(self, asked: Sequence[int]) -> Self:
        """The same, with something else asked for."""
        return replace(self, asked=list(asked))

    def tensors(self, device: torch.device, rows: int = 1) -> tuple[Tensor, Tensor]:
        """Both as so many equal rows: B×S (of a picture, its pixels B×3×H×W) and B×T (or the picture beside)."""
        both = (torch.tensor([ids], dtype=torch.long, device=device) for ids in (self.source, self.asked))
        source, asked = (ids.expand(rows, -1) for ids in both)
        if self.content is not None:
            return self.content.to(device).expand(rows, *self.content.shape), asked
        if self.picture is not None:
            pixels = self.picture.pixels.to(device).expand(rows, *self.picture.pixels.shape)  # B×3×H×W
            return (source, pixels) if self.beside else (pixels, asked)
        return source, asked


@dataclass(frozen=True)
class Trace:
    """One teacher-forced pass with every tap recorded by name.

    Row t of a decoder tap is what led to target token t: the decoder had read the tokens before it. A model that only
    reads has no inputs, and its target is what it says of the source; a language model has no source.
    """

    model: Model | EncoderModel
    """The model that was watched, for analyses that ask it more."""
    source: Side
    """S: the source tokens, the end symbol last; of texts that are read apart, one behind the other."""
    target: Side
    """T: the target tokens that were said, the end symbol last; or labels, tags, guesses."""
    inputs: Side
    """T: the target tokens that were read, the start symbol first; none where nothing is written."""
    activations: dict[str, Tensor]
    """What each tap saw, without the batch axis: weights H×T×S, states T×D, …"""
    log_probabilities: Tensor
    """T×V: of every token at every target position."""
    tokenizer: Tokenizer | None = None
    """The target's, for analyses that speak of words that were not said."""
    labels: tuple[str, ...] | None = None
    """Names of all answers there could be, where they are no tokens; none at all where the answer is a number."""
    given: Given | None = None
    """What the model was given, where it is not the ids of source and inputs."""
    parts: tuple[int, ...] = ()
    """Lengths of the texts that were read apart, where there are several; they sum to S."""

    @property
    def reads_only(self) -> bool:
        """Whether nothing is written: there are no inputs."""
        return not len(self.inputs)

    @property
    def writer(self) -> Model:
        """The model, where it writes; refused in a sentence where it does not."""
        if not isinstance(self.model, Model):
            raise UsageError(NO_DECODER)
        return self.model

    @property
    def picture(self) -> Picture | None:
        """What the model looked at, where its source is a picture."""
        return self.given.picture if self.given else None

    @property
    def numeric(self) -> bool:
        """Whether the answer is a number."""
        return self.labels is not None and not self.labels

    def tensors(self, rows: int = 1) -> tuple[Tensor, Tensor]:
        """What the model is given, as so many equal rows on its device: B×S and B×T."""
        given = self.given or Given(self.source.ids, self.inputs.ids)
        return given.tensors(self.model.device, rows)

    def matching(self, pattern: str) -> dict[str, Tensor]:
        """The activations of the taps whose names match a pattern, in the order of the model."""
        return {name: value for name, value in self.activations.items() if fnmatchcase(name, pattern)}

    @property
    def said(self) -> Tensor:
        """The log-probability of each target token: T."""
        return self.log_probabilities.gather(1, torch.tensor(self.target.ids)[:, None])[:, 0]

    def again(self, write: Mapping[str, Write]) -> "Trace":
        """The same pass with interventions: each function is given the tap's value with its batch axis of one."""
        return trace(
            self.model,
            self.source,
            self.target,
            self.inputs,
            write,
            self.tokenizer,
            labels=self.labels,
            given=self.given,
        )


def trace(
    model: Model | EncoderModel,
    source: Side,
    target: Side,
    inputs: Side,
    write: Mapping[str, Write] | None = None,
    tokenizer: Tokenizer | None = None,
    *,
    labels: tuple[str, ...] | None = None,
    given: Given | None = None,
) -> Trace:
    """Watch the model read a source and a target, or answer a source; `write` as in `taps.watch`."""
    check_cost(model, max(len(source), len(target)))
    known = taps.names(model)
    for name in write or {}:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=2, cutoff=0.0)
            raise UsageError(f"This model has no tap {name}: did you mean {' or '.join(near)}?")
    ids = (given or Given(source.ids, inputs.ids)).tensors(model.device)
    with torch.no_grad(), taps.watch(model, "*", write=write) as recording:
        logits = model.scores(model.outputs(*ids))
    lengths = tuple(text.shape[1] for text in model.texts(ids[0]))
    parts = lengths if len(lengths) > 1 else ()
    ordered = sorted(known, key=lambda name: not name.startswith("encoder"))  # the source comes first
    seen = {name: _seen(recording, name, parts)[0].cpu() for name in ordered if name in recording}
    said = logits[0].log_softmax(-1).cpu()
    return Trace(model, source, target, inputs, seen, said, tokenizer, labels, given, parts)


def spans(name: str, parts: Sequence[int]) -> list[tuple[slice, slice]]:
    """Which rows and columns of a whole map the weights of each pass are, where texts are read apart.

    An encoder looks inside a text, so that its weights are blocks on the diagonal; attention between two texts looks
    from each at the other.
    """
    ends = list(accumulate(parts))
    rows = [slice(end - length, end) for end, length in zip(ends, parts, strict=True)]
    return list(zip(rows, rows if name.startswith("encoder.") else rows[::-1], strict=True))


def _seen(recording: taps.Recording, name: str, parts: Sequence[int]) -> Tensor:
    """What a tap saw, with its batch axis of one; of texts that were read apart, as if they were one."""
    values = recording.passes(name)
    if parts and name in ("between.keys", "between.values"):  # the first text looks at the second one's
        return torch.cat(values[::-1], dim=2)
    if not parts or len(values) != len(parts) or not name.endswith(".weights"):
        return recording[name]
    if values[0].dim() < 4:  # pooling, 1×1×S: each text has half of the weight
        return torch.cat(values, dim=-1) / len(parts)
    whole = values[0].new_zeros(*values[0].shape[:2], sum(parts), sum(parts))  # 1×H×S×S
    for value, (rows, columns) in zip(values, spans(name, parts), strict=True):
        whole[:, :, rows, columns] = value
    return whole


def _letters(spelt: re.Match[str]) -> str:
    """The letters that bytes such as `<0xC3><0xA9>` spell."""
    return bytes.fromhex(spelt[0].replace("<0x", "").replace(">", "")).decode("utf-8", "replace")


def check_cost(model: nn.Module, tokens: int) -> None:
    """Refuse what would not fit: a trace keeps every weight of every head."""
    heads = sum(module.heads for module in model.modules() if isinstance(module, Attention))
    needed = 4 * heads * tokens**2
    if needed > MOST_BYTES:
        fits = int((MOST_BYTES / (4 * heads)) ** 0.5)
        raise UsageError(
            f"Looking inside at {tokens:,} tokens would take {needed / 2**30:.1f} GiB for the weights of all {heads} "
            f"heads: this model can be looked into at up to {fits:,} tokens. Split the text."
        )
