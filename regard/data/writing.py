"""Forms of examples that are text and nothing else: to be written, or to be read with words hidden."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from regard.config.data import Cleaning
from regard.config.run import RunConfig
from regard.config.shape import LanguageModel
from regard.data.batches import Batches, Frame
from regard.data.corpus import Pair
from regard.data.form import Form, Pairs, Rows, Vocabulary, learn_tokenizer
from regard.data.packing import PackedBatches
from regard.data.reading import Read
from regard.data.store import TokenStore
from regard.text.specials import BOS
from regard.text.tokenizer import Tokenizer

ANY_LENGTH = 1 << 40


class Documents(Form):
    """A document to be written: in a store it has no source, and is the target; it may be of any length."""

    noun = "documents"
    plain = True
    frame = Frame((BOS,), ())

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer, tokenizer)

    @classmethod
    def learn(cls, config: RunConfig, pairs: Pairs, count: int) -> Self:
        """Learn the tokenizer."""
        return cls(learn_tokenizer(config, pairs, count))

    @classmethod
    def load(cls, config: RunConfig, directory: Path) -> Self:
        """What `save` wrote."""
        return cls(Tokenizer.load(directory / "shared.json"))

    @classmethod
    def cleaning(cls, config: RunConfig) -> Cleaning:
        """No document is too long."""
        return config.data.cleaning.model_copy(update={"max_characters": ANY_LENGTH, "max_length": ANY_LENGTH})

    @property
    def vocabularies(self) -> Mapping[str, Vocabulary]:
        """The tokenizer."""
        return {"source": self.source}

    def encode(self, pairs: Sequence[Pair]) -> tuple[Rows, Rows]:
        """Nothing, and the tokens of the document."""
        return [[] for _ in pairs], self.target.encode_batch([pair.source for pair in pairs])

    def fact(self) -> str:
        """The tokenizer in a few words."""
        return f"{self.source.size:,} tokens, {self.source.kind}"

    def frequencies(self, store: TokenStore) -> NDArray[np.int64]:
        """How often each token occurs in the documents of a store."""
        return store.counts("target", self.target.size)

    def batches(
        self, config: RunConfig, store: TokenStore, *, rank: int = 0, world_size: int = 1, learning: bool = False
    ) -> Batches:
        """Windows of documents."""
        length, stride = window_of(config)
        training = config.training
        return PackedBatches(
            store, training.batch_tokens, training.seed, rank, world_size, length=length, stride=stride
        )


class Passages(Read):
    """A text to be read with words hidden; one that is too long is cut, and nothing of it is lost."""

    noun = "documents"
    plain = True

    @classmethod
    def cleaning(cls, config: RunConfig) -> Cleaning:
        """No document is too long."""
        return config.data.cleaning.model_copy(update={"max_characters": ANY_LENGTH})

    def rows(self, pairs: Sequence[Pair], longest: int) -> tuple[Rows, Rows, list[int]]:
        """The tokens of texts in pieces of at most `longest`."""
        source, _ = self.encode(pairs)
        pieces = [ids[start : start + longest] for ids in source for start in range(0, len(ids), longest)]
        return pieces, [[] for _ in pieces], []

    def scored_rows(self, pairs: Sequence[Pair], longest: int) -> tuple[Rows, Rows, list[int]]:
        """The same: pieces lose nothing."""
        return self.rows(pairs, longest)


def window_of(config: RunConfig) -> tuple[int, int]:
    """How far a language model looks back, and how far its window moves on."""
    shape = config.shape
    assert isinstance(shape, LanguageModel)
    return shape.length, min(shape.stride or max(1, shape.length // 2), shape.length)
