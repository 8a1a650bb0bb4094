"""A trace: all recorded activations of the model for one source and target, or one prediction.

Axes: S source tokens, T target tokens (or predictions), V vocabulary (or classes), H heads; a trace is of one example,
so there is no batch axis.
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
"""The taps of the attention weights from any decoder to the source."""

_SPELT = re.compile("(?:<0x[0-9A-F]{2}>)+")
"""Byte tokens, which represent characters that are not in the vocabulary."""

NO_DECODER = (
    "This analysis needs a decoder, but the model of this run has none. Use regard inspect attention, heads, "
    "attribute, identify or probe."
)

MOST_BYTES = 2**30
"""Maximum memory for the weights of all heads in one trace."""


@dataclass(frozen=True)
class Side:
    """The tokens of one side, and the words that they make up."""

    ids: list[int]
    """The ids that the model reads."""
    tokens: list[str]
    """Readable tokens, without the mark of a word start; the mark alone is an open box, or ▸ at the start of a text."""
    words: list[int]
    """The word of each token, counted from 0; a special token is a word of its own."""
    special: list[bool]
    """Which tokens are special: the start and the end symbol (an unknown word is a word)."""

    @classmethod
    def of(cls, tokenizer: Tokenizer, ids: list[int]) -> Self:
        """Build a side from ids, special tokens included."""
        special = [token < len(SPECIALS) and token != UNK for token in ids]
        pieces = [SPECIALS[token] if token < len(SPECIALS) else tokenizer.vocabulary[token] for token in ids]
        words: list[int] = []
        for index, piece in enumerate(pieces):
            starts = index == 0 or special[index] or special[index - 1] or ids[index] == UNK
            starts = starts or piece.startswith(WORD_START)
            words.append(words[-1] + starts if words else 0)
        marked = [piece.removeprefix(WORD_START) or "␣" for piece in pieces]
        tokens = ["▸" if index == 0 and piece == "␣" else piece for index, piece in enumerate(marked)]
        return cls(list(ids), tokens, words, special)

    @classmethod
    def of_labels(cls, names: Sequence[str], numbers: Sequence[int]) -> Self:
        """Build a side from predictions that are not tokens, such as labels; each is its own word."""
        return cls(list(numbers), list(names), list(range(len(names))), [False] * len(names))

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def word_texts(self) -> list[str]:
        """The text of each word; words are separated by white space, and each special token is one."""
        texts = [""] * (self.words[-1] + 1 if self.words else 0)
        for word, token in zip(self.words, self.tokens, strict=True):
            texts[word] += "" if token in "␣▸" and len(self.tokens) > 1 else token
        return [_SPELT.sub(_letters, text) or "␣" for text in texts]

    def summed(self, values: Tensor) -> Tensor:
        """Merge values …×tokens to …×words by summing over the tokens of a word, as for attention *to* words."""
        merged = values.new_zeros(*values.shape[:-1], len(self.word_texts))
        return merged.index_add_(-1, torch.tensor(self.words, dtype=torch.long), values)

    def averaged(self, values: Tensor) -> Tensor:
        """Merge values …×tokens×n to …×words×n by the mean over the tokens of a word, as for attention *from* words."""
        merged = values.new_zeros(*values.shape[:-2], len(self.word_texts), values.shape[-1])
        places = torch.tensor(self.words, dtype=torch.long)
        counts = torch.bincount(places).to(values.dtype)
        return merged.index_add_(-2, places, values) / counts[:, None]


def side_of(grid: tuple[int, int]) -> Side:
    """Build a side from the positions of a grid, row by row, named by row and column."""
    rows, columns = grid
    tokens = [f"{row},{column}" for row in range(rows) for column in range(columns)]
    count = len(tokens)
    return Side(list(range(count)), tokens, list(range(count)), [False] * count)


@dataclass(frozen=True)
class Picture:
    """An image as a source: a grid of positions."""

    name: str
    pixels: Tensor
    """The pixels that the model reads: 3×H×W."""
    grid: tuple[int, int]
    """Rows and columns of the grid."""

    @property
    def side(self) -> Side:
        """The positions as a side."""
        return side_of(self.grid)


@dataclass(frozen=True)
class Given:
    """The inputs of a model: the ids that it reads, and the positions or tokens that it predicts at."""

    source: list[int]
    """S: source tokens."""
    asked: list[int]
    """T: the decoder inputs; for a model without a decoder, the positions that predictions are made at."""
    picture: Picture | None = None
    """The image, if the source is one; its tokens are then positions of the grid."""
    with_text: bool = False
    """Whether the source is a text with an image, which then takes the place of `asked`."""
    content: Tensor | None = None
    """The model's input without the batch axis, if the source is neither text nor an image."""

    def asking(self, asked: Sequence[int]) -> Self:
        """Return the same inputs with other `asked`."""
        return replace(self, asked=list(asked))

    def tensors(self, device: torch.device, rows: int = 1) -> tuple[Tensor, Tensor]:
        """Return both as `rows` equal rows: B×S (for an image B×3×H×W) and B×T (for text with an image B×3×H×W)."""
        both = (torch.tensor([ids], dtype=torch.long, device=device) for ids in (self.source, self.asked))
        source, asked = (ids.expand(rows, -1) for ids in both)
        if self.content is not None:
            return self.content.to(device).expand(rows, *self.content.shape), asked
        if self.picture is not None:
            pixels = self.picture.pixels.to(device).expand(rows, *self.picture.pixels.shape)  # B×3×H×W
            return (source, pixels) if self.with_text else (pixels, asked)
        return source, asked


@dataclass(frozen=True)
class Trace:
    """One teacher-forced pass with every tap recorded by name.

    Row t of a decoder tap belongs to the prediction of target token t: the decoder has read the tokens before it. A
    model without a decoder has no inputs, and its target is its predictions; a language model has no source.
    """

    model: Model | EncoderModel
    """The traced model, for analyses that run it again."""
    source: Side
    """S: the source tokens, the end symbol last; texts that are encoded separately are concatenated."""
    target: Side
    """T: the target tokens, the end symbol last; or predicted labels, tags or masked tokens."""
    inputs: Side
    """T: the decoder inputs, the start symbol first; empty without a decoder."""
    activations: dict[str, Tensor]
    """The values of each tap without the batch axis: weights H×T×S, states T×D, …"""
    log_probabilities: Tensor
    """T×V: of every token at every target position."""
    tokenizer: Tokenizer | None = None
    """The target tokenizer, for analyses of other words than the target's."""
    labels: tuple[str, ...] | None = None
    """Names of all possible labels, if predictions are not tokens; empty if the prediction is a number."""
    given: Given | None = None
    """The model's inputs, if they are not the ids of `source` and `inputs`."""
    parts: tuple[int, ...] = ()
    """Lengths of the texts that are encoded separately, if there are several; they sum to S."""

    @property
    def reads_only(self) -> bool:
        """Whether the model has no decoder."""
        return not len(self.inputs)

    @property
    def writer(self) -> Model:
        """The model, if it has a decoder; otherwise raises `UsageError`."""
        if not isinstance(self.model, Model):
            raise UsageError(NO_DECODER)
        return self.model

    @property
    def picture(self) -> Picture | None:
        """The image, if the source has one."""
        return self.given.picture if self.given else None

    @property
    def numeric(self) -> bool:
        """Whether the prediction is a number."""
        return self.labels is not None and not self.labels

    def tensors(self, rows: int = 1) -> tuple[Tensor, Tensor]:
        """Return the model's inputs as `rows` equal rows on its device: B×S and B×T."""
        given = self.given or Given(self.source.ids, self.inputs.ids)
        return given.tensors(self.model.device, rows)

    def matching(self, pattern: str) -> dict[str, Tensor]:
        """Return the activations of taps whose names match a pattern, in the order of the model."""
        return {name: value for name, value in self.activations.items() if fnmatchcase(name, pattern)}

    @property
    def target_log_probs(self) -> Tensor:
        """The log-probability of each target token: T."""
        return self.log_probabilities.gather(1, torch.tensor(self.target.ids)[:, None])[:, 0]

    def again(self, write: Mapping[str, Write]) -> "Trace":
        """Repeat the pass with interventions; each function gets the tap's value with a batch axis of one."""
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
    """Run the model on a source and a target, or let it predict, and record all taps; `write` as in `taps.watch`."""
    check_cost(model, max(len(source), len(target)))
    known = taps.names(model)
    for name in write or {}:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=2, cutoff=0.0)
            raise UsageError(f"This model has no tap {name}. Did you mean {' or '.join(near)}?")
    ids = (given or Given(source.ids, inputs.ids)).tensors(model.device)
    with torch.no_grad(), taps.watch(model, "*", write=write) as recording:
        logits = model.scores(model.outputs(*ids))
    lengths = tuple(text.shape[1] for text in model.texts(ids[0]))
    parts = lengths if len(lengths) > 1 else ()
    ordered = sorted(known, key=lambda name: not name.startswith("encoder"))  # the source comes first
    seen = {name: _select_activation(recording, name, parts)[0].cpu() for name in ordered if name in recording}
    log_probs = logits[0].log_softmax(-1).cpu()
    return Trace(model, source, target, inputs, seen, log_probs, tokenizer, labels, given, parts)


def spans(name: str, parts: Sequence[int]) -> list[tuple[slice, slice]]:
    """Return the rows and columns of the whole map that the weights of each pass cover, for texts encoded separately.

    An encoder attends within a text, so that its weights are blocks on the diagonal; attention between two texts goes
    from each to the other.
    """
    ends = list(accumulate(parts))
    rows = [slice(end - length, end) for end, length in zip(ends, parts, strict=True)]
    return list(zip(rows, rows if name.startswith("encoder.") else rows[::-1], strict=True))


def _select_activation(recording: taps.Recording, name: str, parts: Sequence[int]) -> Tensor:
    """Return the value of a tap with its batch axis of one; texts that were encoded separately are joined."""
    values = recording.passes(name)
    if parts and name in ("between.keys", "between.values"):  # the first text attends to the second
        return torch.cat(values[::-1], dim=2)
    if not parts or len(values) != len(parts) or not name.endswith((".weights", ".scores")):
        return recording[name]
    if values[0].dim() < 4:  # pooling, 1×1×S: each text has half of the weight
        return torch.cat(values, dim=-1) / len(parts)
    whole = values[0].new_zeros(*values[0].shape[:2], sum(parts), sum(parts))  # 1×H×S×S
    for value, (rows, columns) in zip(values, spans(name, parts), strict=True):
        whole[:, :, rows, columns] = value
    return whole


def _letters(spelt: re.Match[str]) -> str:
    """Decode byte tokens such as `<0xC3><0xA9>`."""
    return bytes.fromhex(spelt[0].replace("<0x", "").replace(">", "")).decode("utf-8", "replace")


def check_cost(model: nn.Module, tokens: int) -> None:
    """Raise `UsageError` if the attention weights of a trace would need too much memory."""
    heads = sum(module.heads for module in model.modules() if isinstance(module, Attention))
    needed = 8 * heads * tokens**2  # scores and weights
    if needed > MOST_BYTES:
        fits = int((MOST_BYTES / (8 * heads)) ** 0.5)
        raise UsageError(
            f"A trace of {tokens:,} tokens would take {needed / 2**30:.1f} GiB for the weights of all {heads} heads. "
            f"Split the text: this model can be traced with up to {fits:,} tokens."
        )
