"""How much each target word has to do with each source word, by every layer of a model, over many pairs.

Axes: B batch, S source tokens, T target tokens, H heads.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import cut, pad_rows
from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.nn import taps
from regard.tasks.loaded import LoadedRun
from regard.tasks.trace import SOURCE_ATTENTION, Side, check_cost, trace
from regard.text.specials import BOS, EOS
from regard.text.tokenizer import Tokenizer

Method = Literal["attention", "contributions"]
METHODS: dict[Method, str] = {
    "attention": "where the decoder looked",
    "contributions": "what each source token contributed, block by block with the residual (ALTI)",
}

Reading = Literal["reads", "writes"]
READINGS: dict[Reading, str] = {"reads": "the row that reads a word", "writes": "the row that writes it"}
"""Which row of a map T×S belongs to a target word: the one that reads it (AWI), or the one that writes it (AWO)."""

TOKENS = 2048
"""Padded tokens of a batch."""


@dataclass(frozen=True)
class Pair:
    """Two texts as their words, and the tokens of each word."""

    source: list[str]
    target: list[str]
    source_tokens: list[list[int]]
    target_tokens: list[list[int]]

    @classmethod
    def of(cls, translator: LoadedRun, source: str, target: str) -> "Pair":
        """Texts as given; words are separated by white space."""
        words = source.split(), target.split()
        tokenizers = translator.source_tokenizer, translator.target_tokenizer
        tokens = [_tokens(tokenizer, some) for tokenizer, some in zip(tokenizers, words, strict=True)]
        return cls(words[0], words[1], tokens[0], tokens[1])

    @property
    def source_ids(self) -> list[int]:
        """All source tokens, without special ones."""
        return [token for word in self.source_tokens for token in word]

    @property
    def target_ids(self) -> list[int]:
        """All target tokens, without special ones."""
        return [token for word in self.target_tokens for token in word]


@dataclass(frozen=True)
class Choice:
    """Which of a model's maps is read, and how."""

    layer: int | None
    """Counted from 0; none for all layers together."""
    head: int | None
    """Counted from 0; none for the mean of all."""
    reading: Reading

    def __str__(self) -> str:
        where = "all layers" if self.layer is None else f"layer {self.layer}"
        which = "" if self.head is None else f", head {self.head}"
        return f"{where}{which}, {READINGS[self.reading]}"


Maps = dict[tuple[int | None, int | None], Tensor]
"""Maps T×S of one pair by layer and head, both sides with their end symbol."""


def token_maps(
    translator: LoadedRun, pairs: Sequence[Pair], method: Method, *, progress: Progress | None = None
) -> Iterator[tuple[int, Maps]]:
    """The maps of every pair that has words on both sides, with its place; in no particular order."""
    wanted = [index for index, pair in enumerate(pairs) if pair.source_ids and pair.target_ids]
    longest = np.array([_longest(pairs[index]) for index in wanted], dtype=np.int32)
    if wanted:
        check_cost(translator.model, int(longest.max()))
        _check_positions(translator, [pairs[index] for index in wanted])
    order = [wanted[index] for index in np.argsort(longest, kind="stable")]
    sizes = np.sort(longest)
    done = 0
    for start, end in cut(sizes, TOKENS if method == "attention" else 1) if wanted else ():
        places = order[start:end]
        some = [pairs[position] for position in places]
        found = _attention(translator, some) if method == "attention" else [_contributions(translator, some[0])]
        yield from zip(places, found, strict=True)
        done += len(places)
        if progress:
            progress("aligning", done, len(wanted))


def word_weights(weights: Tensor, pair: Pair, reading: Reading) -> Tensor:
    """A map of tokens T×S as one of target words × source words, with a last column for the source's end symbol.

    A source word is given the sum of what its tokens are given, a target word gives the mean of what its tokens give.
    """
    rows = weights[1:] if reading == "reads" else weights[:-1]  # of each target token, the end symbol left out
    sources = [word for word, tokens in enumerate(pair.source_tokens) for _ in tokens]
    targets = [word for word, tokens in enumerate(pair.target_tokens) for _ in tokens]
    across = weights.new_zeros(len(rows), len(pair.source) + 1)
    across.index_add_(1, torch.tensor([*sources, len(pair.source)]), rows)
    merged = weights.new_zeros(len(pair.target), across.shape[1]).index_add_(0, torch.tensor(targets), across)
    counts = torch.tensor([len(tokens) for tokens in pair.target_tokens])
    return merged / counts.clamp(min=1)[:, None]


def _attention(translator: LoadedRun, pairs: Sequence[Pair]) -> list[Maps]:
    """Attention to the source in one batch, by layer and head; means over heads, and over all."""
    model = translator.model
    device = model.output_bias.device
    source = pad_rows([np.asarray(pair.source_ids) for pair in pairs], [], [EOS]).to(device)  # B×S
    inputs = pad_rows([np.asarray(pair.target_ids) for pair in pairs], [BOS], []).to(device)  # B×T
    with torch.no_grad(), taps.watch(model, SOURCE_ATTENTION) as seen:
        model.decode(model.encode(source), inputs)
    layers = {number: seen[name].cpu() for number, name in enumerate(seen) if seen[name].shape[1]}  # B×H×T×S each
    if not layers:
        raise UsageError(
            "This model does not attend to its source (its join is a fixed vector, or no head is left), so no "
            "alignment can be read from it."
        )
    found = []
    for row, pair in enumerate(pairs):
        rows, across = len(pair.target_ids) + 1, len(pair.source_ids) + 1
        own = {number: layer[row, :, :rows, :across] for number, layer in layers.items()}  # those with heads left
        maps: Maps = {(None, None): torch.cat(list(own.values())).mean(0)}
        for number, weights in own.items():
            maps[number, None] = weights.mean(0)
            maps |= {(number, head): head_weights for head, head_weights in enumerate(weights)}
        found.append(maps)
    return found


def _contributions(translator: LoadedRun, pair: Pair) -> Maps:
    """What source tokens contribute inside each decoder layer, and through the whole model."""
    from regard.inspection.flow import decompose

    outputs, inputs = [*pair.target_ids, EOS], [BOS, *pair.target_ids]
    own, other = translator.source_tokenizer, translator.target_tokenizer
    sides = Side.of(own, [*pair.source_ids, EOS]), Side.of(other, outputs), Side.of(other, inputs)
    layers = decompose(trace(translator.model, *sides))
    maps: Maps = {(None, None): layers.roll()[0]}
    for number, layer in enumerate(layers.decoder):
        if layer.source is not None:
            maps[number, None] = layer.source.cpu()
    return maps


def _tokens(tokenizer: Tokenizer, words: list[str]) -> list[list[int]]:
    return tokenizer.encode_batch(words) if words else []


def _longest(pair: Pair) -> int:
    return max(len(pair.source_ids), len(pair.target_ids)) + 1


def _check_positions(translator: LoadedRun, pairs: Sequence[Pair]) -> None:
    positions = translator.config.model.positions
    if positions is None or positions.kind != "learned":
        return
    for pair in pairs:
        if _longest(pair) > positions.max_length:
            raise UsageError(
                f'"{" ".join(pair.source)[:60]}" or its target has {_longest(pair) - 1} tokens, but this model has '
                f"learned {positions.max_length} positions (one is for the end symbol): split it or leave it out."
            )
