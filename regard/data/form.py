"""The form of examples: which of their sides are text, what is learnt from them, and how they become ids.

Every shape of model has examples of one form; cleaning, stores and batches ask the form, and never the shape.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from regard.config.data import Cleaning
from regard.config.run import RunConfig
from regard.config.start import reads_text, tokenizer_sides
from regard.data.batches import SOURCE_FRAME, TARGET_FRAME, Batches, Frame
from regard.data.corpus import Pair
from regard.data.store import TokenStore
from regard.foundation.progress import Progress
from regard.text.dropout import BpeDropout
from regard.text.joined import Joined
from regard.text.learning import train_target, train_tokenizer, train_tokenizers
from regard.text.specials import SEP
from regard.text.tokenizer import Tokenizer

Pairs = Callable[[], Iterable[Pair]]
Rows = list[list[int]]


class Vocabulary(Protocol):
    """What a run learns from its training data before it learns anything else: a tokenizer, a set of labels."""

    @property
    def size(self) -> int:
        """How many there are."""

    @property
    def fingerprint(self) -> str:
        """Hash of all that determines it."""

    def save(self, path: Path, /) -> None:
        """Write it as JSON."""


class Form(ABC):
    """How pairs of raw strings become pairs of id sequences, without special tokens."""

    texts: ClassVar[tuple[str, ...]] = ("source",)
    """The sides of a pair that hold text: only these are cleaned and tokenised."""
    noun: ClassVar[str] = "texts"
    """What examples are called."""
    plain: ClassVar[bool] = False
    """Whether an example is a text and nothing else, so that any text is one."""
    frames: tuple[Frame, Frame] = (SOURCE_FRAME, TARGET_FRAME)
    """The special tokens around each side in a batch."""
    frame: Frame = SOURCE_FRAME
    """The special tokens around a text that a model reads by itself."""

    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        self.source, self.target = source, target

    @classmethod
    @abstractmethod
    def learn(cls, config: RunConfig, pairs: Pairs, count: int) -> Self:
        """Learn tokenizers and labels from the training pairs, which can be read again and again."""

    @classmethod
    @abstractmethod
    def load(cls, config: RunConfig, directory: Path) -> Self:
        """What `save` wrote."""

    @property
    @abstractmethod
    def vocabularies(self) -> Mapping[str, Vocabulary]:
        """All that was learnt, by name; a run's weights belong to these and to no others."""

    @abstractmethod
    def encode(self, pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
        """The ids of both sides of some pairs."""

    @abstractmethod
    def fact(self) -> str:
        """The vocabularies in a few words."""

    @classmethod
    def cleaning(cls, config: RunConfig) -> Cleaning:
        """What is asked of an example before it is kept."""
        return config.data.cleaning

    @classmethod
    def problem(cls, pair: Pair) -> str | None:
        """What is wrong with an example, whatever the others are: the end of a sentence, or `None`."""
        return None

    def check(self, pair: Pair, place: str) -> None:
        """Refuse in a sentence an example that does not go with what was learnt, at a place such as `a.tsv, text 3`."""
        return

    def missing(self, pairs: Sequence[Pair]) -> str | None:
        """What training shows and some examples to judge by do not: the end of a sentence, or `None`."""
        return None

    def remarks(self) -> list[str]:
        """What is odd about what was learnt from the training data, in sentences."""
        return []

    @classmethod
    def together(cls, pair: Pair) -> str:
        """What examples have in common that are never parted: held out together, or not at all."""
        return pair.source

    @property
    def ids(self) -> int:
        """One more than the largest id that a store may have to hold."""
        return max(vocabulary.size for vocabulary in self.vocabularies.values())

    @property
    def limits(self) -> tuple[int, int]:
        """One more than the largest id that each side of a store may hold."""
        return self.ids, self.ids

    def frequencies(self, store: TokenStore) -> NDArray[np.int64]:
        """How often each token of the texts that are read occurs in a store."""
        return store.counts("source", self.source.size)

    def gather(self, pairs: Iterable[Pair], directory: Path, progress: Progress | None = None) -> None:
        """Keep in a data directory what examples only name, such as pictures, before they are encoded."""
        return

    def save(self, directory: Path) -> None:
        """Write everything that was learnt, a file each; what two sides share is written once."""
        if self.source is self.target:
            self.source.save(directory / "shared.json")
            return
        self.source.save(directory / "source.json")
        self.target.save(directory / "target.json")

    def rows(self, pairs: Sequence[Pair], longest: int) -> tuple[Rows, Rows, list[int]]:
        """The ids of those pairs that are no longer than `longest` tokens, and the places of those that are."""
        sides = self.encode(pairs)
        fits = [max(len(source), len(target)) <= longest for source, target in zip(*sides, strict=True)]
        source, target = (list(compress(side, fits)) for side in sides)
        return source, target, [place for place, fit in enumerate(fits) if not fit]

    def scored_rows(self, pairs: Sequence[Pair], longest: int) -> tuple[Rows, Rows, list[int]]:
        """Return the ids of all pairs, sides cut to `longest` tokens, and the places of the pairs that were cut.

        What is scored is never left out, whatever its length.
        """
        sides = self.encode(pairs)
        cut = [place for place, row in enumerate(zip(*sides, strict=True)) if any(len(ids) > longest for ids in row)]
        several = isinstance(self.source, Joined)
        sources = [shorten(ids, longest) if several else ids[:longest] for ids in sides[0]]
        return sources, [ids[:longest] for ids in sides[1]], cut

    def batches(
        self, config: RunConfig, store: TokenStore, *, rank: int = 0, world_size: int = 1, learning: bool = False
    ) -> Batches:
        """Batches of a store, as this form deals them; only in learning are words cut anew."""
        training, share = config.training, config.text.bpe_dropout if learning else 0.0
        return Batches(
            store,
            training.batch_tokens,
            training.seed,
            rank,
            world_size,
            self._dropout(share) if share else (None, None),
            self.frames,
        )

    def _dropout(self, share: float) -> tuple[BpeDropout | None, BpeDropout | None]:
        source, target = (
            BpeDropout(tokenizer, share) if side in self.texts else None
            for side, tokenizer in (("source", self.source), ("target", self.target))
        )
        return source, target


def shorten(ids: Sequence[int], longest: int) -> list[int]:
    """Return the ids of several texts with separators, the longest texts cut until all fit into `longest` tokens."""
    parts: Rows = [[]]
    for token in ids:
        if token == SEP:
            parts.append([])
        else:
            parts[-1].append(token)
    lengths = share_room([len(part) for part in parts], longest - len(parts) + 1)
    found = parts[0][: lengths[0]]
    for part, length in zip(parts[1:], lengths[1:], strict=True):
        found += [SEP, *part[:length]]
    return found


def share_room(lengths: Sequence[int], room: int) -> list[int]:
    """Return lengths that sum to at most `room`: only the longest are reduced, and to the same length."""
    low, high = 0, max(lengths, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(length, middle) for length in lengths) <= room:
            low = middle
        else:
            high = middle - 1
    return [min(length, low) for length in lengths]


class Parallel(Form):
    """A text and the text it becomes."""

    texts = ("source", "target")
    noun = "pairs"

    @classmethod
    def learn(cls, config: RunConfig, pairs: Pairs, count: int) -> Self:
        """Learn the tokenizers of both sides, or the one that they share."""
        source, target = learn_tokenizers(config, pairs, count)
        return cls(parted(config, source), target)

    @classmethod
    def load(cls, config: RunConfig, directory: Path) -> Self:
        """What `save` wrote."""
        source, target = load_tokenizers(directory)
        return cls(parted(config, source), target)

    def save(self, directory: Path) -> None:
        """Write the tokenizers, or the one that they share."""
        if self.source.fingerprint == self.target.fingerprint:
            self.target.save(directory / "shared.json")
        else:
            super().save(directory)

    @classmethod
    def cleaning(cls, config: RunConfig) -> Cleaning:
        """Where a source is several texts, its length says nothing about that of the target."""
        given = config.data.cleaning
        return given.model_copy(update={"max_ratio": math.inf}) if config.data.train.texts > 1 else given

    @property
    def vocabularies(self) -> Mapping[str, Vocabulary]:
        """The tokenizers of both sides."""
        return {"source": self.source, "target": self.target}

    @property
    def limits(self) -> tuple[int, int]:
        """The sizes of the two vocabularies."""
        return self.source.size, self.target.size

    def encode(self, pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
        """The tokens of both sides."""
        return (
            self.source.encode_batch([pair.source for pair in pairs]),
            self.target.encode_batch([pair.target for pair in pairs]),
        )

    def fact(self) -> str:
        """The tokenizers in a few words."""
        source, target = self.source, self.target
        if source.fingerprint == target.fingerprint:
            return f"{source.size:,} tokens, {source.kind}, shared"
        return f"{source.size:,} source tokens ({source.kind}), {target.size:,} target tokens ({target.kind})"


def learn_tokenizers(config: RunConfig, pairs: Pairs, count: int) -> tuple[Tokenizer, Tokenizer]:
    """Source and target tokenizer, learnt, or taken from the run that this one starts from."""
    source, target = known_tokenizers(config)
    if source is None:
        return train_tokenizers(config.text, pairs, count)
    return source, target or train_target(config.text, pairs, count)


def learn_tokenizer(config: RunConfig, pairs: Pairs, count: int) -> Tokenizer:
    """The tokenizer of the one text that examples have, learnt, or taken from the run that this one starts from."""
    known = known_tokenizers(config)[0 if reads_text(type(config.shape)) else 1]
    return known or train_tokenizer(config.text, pairs, count, "source")


def known_tokenizers(config: RunConfig) -> tuple[Tokenizer | None, Tokenizer | None]:
    """The tokenizers of source and target that come from the run that this one starts from; `None` where one is new."""
    source, target = tokenizer_sides(config)
    if config.model.start_from is None or (source is None and target is None):
        return None, None
    there = dict(zip(("source", "target"), load_tokenizers(Path(config.model.start_from) / "tokenizers"), strict=True))
    return there[source] if source else None, there[target] if target else None


def parted(config: RunConfig, tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer of sources: one that reads several texts, where sources have them."""
    return Joined(tokenizer) if config.data.train.texts > 1 else tokenizer


def load_tokenizers(directory: Path) -> tuple[Tokenizer, Tokenizer]:
    """Source and target tokenizer of a run's `tokenizers` directory, one object twice if shared."""
    if (directory / "shared.json").exists():
        shared = Tokenizer.load(directory / "shared.json")
        return shared, shared
    return Tokenizer.load(directory / "source.json"), Tokenizer.load(directory / "target.json")
