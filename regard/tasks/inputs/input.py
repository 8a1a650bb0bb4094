"""The interface of inputs.

Axes: B batch, S source positions.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.config.run import RunConfig
from regard.data.batches import Batch, Batches, Frame
from regard.data.corpus import Pair
from regard.data.store import TokenStore
from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress
from regard.models import Model
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.search.steps import Source, StepModel
from regard.tasks.trace import Given, Side, trace
from regard.text.dropout import BpeDropout
from regard.text.packed_rows import PackedRows
from regard.text.sentences import Piece
from regard.text.specials import BOS, EOS
from regard.text.tokenizer import Tokenizer

Rows = list[list[int]]
Dropout = tuple[BpeDropout | None, BpeDropout | None]


@dataclass(frozen=True)
class SourceView:
    """One source in the form that a trace shows."""

    side: Side
    """The positions of the source."""
    given: Given
    """The model's inputs, without the positions that are asked for."""


class Input(ABC):
    """The input of a task: converts raw sources to ids in a store, tensors in a batch, and positions in a trace.

    A raw source is always a text: the text itself, texts with tabs between them, or the name of a file. Class methods
    need nothing but the source; everything else needs the vocabularies learned from the training data.
    """

    is_text: ClassVar[bool] = False
    """Whether sources contain text that is cleaned and tokenised."""

    def __init__(self, config: RunConfig, tokenizer: Tokenizer | None, frame: Frame) -> None:
        self.config = config
        self.optional_tokenizer = tokenizer
        self.frame = frame
        """The special tokens around the ids of a source."""
        self.trained_length = config.data.cleaning.max_length
        """The length in tokens of the longest source that the model was trained on."""
        self.cut_counts: Counter[str] = Counter()
        """How many sources were `read` so far, and of how many the end was `cut`; for `remarks`."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of source texts."""
        if self.optional_tokenizer is None:
            raise ValueError("This input has no text, and therefore no tokenizer.")
        return self.optional_tokenizer

    # Preparing data

    @classmethod
    def problem(cls, source: str) -> str | None:
        """Return what is wrong with a source, as the end of a sentence that begins with its place, or `None`."""
        return None

    @classmethod
    def group(cls, source: str) -> str:
        """Return the group of a source; a group is held out as a whole or not at all."""
        return source

    @classmethod
    def text_of(cls, source: str) -> str:
        """Return the part of a source that is text."""
        return source

    @classmethod
    def texts_of(cls, pair: Pair, config: RunConfig) -> Pair:
        """Return the texts of an example from which vocabularies are learned."""
        return Pair(cls.text_of(pair.source), pair.target)

    def target_texts(self, pairs: Sequence[Pair]) -> list[str]:
        """Return the target texts of examples as a model learns them."""
        return [pair.target for pair in pairs]

    def finish(self, source: str, text: str) -> str:
        """Return the output for a source from the text that a model wrote."""
        return text

    @classmethod
    def check_corpora(cls, config: RunConfig) -> None:
        """Raise an error for incomplete corpora, before anything is learned from them."""
        return

    def gather(self, sources: Iterable[str], directory: Path, progress: Progress | None = None) -> None:
        """Store the files that sources name, such as images, in a data directory before sources are encoded."""
        return

    def open_data(self, directory: Path) -> None:
        """Open what `gather` stored in a data directory, if it still exists."""
        return

    def remarks(self) -> list[str]:
        """Return notes on the sources read so far, in sentences."""
        return []

    def share_data(self, other: "Input") -> None:
        """Use what another input has gathered or opened."""
        return

    @abstractmethod
    def encode(self, sources: Sequence[str]) -> Rows:
        """Return the ids of sources as a store keeps them, without the frame."""

    def encode_packed(self, sources: Sequence[str]) -> PackedRows:
        """Return what `encode` returns, packed."""
        return PackedRows.of(self.encode(sources))

    @property
    @abstractmethod
    def id_limit(self) -> int:
        """One more than the largest id that `encode` returns."""

    def describe(self) -> str:
        """Return a short description; may be empty."""
        return f"{self.tokenizer.size:,} tokens, {self.tokenizer.kind}" if self.optional_tokenizer else ""

    # Training

    def batches(
        self, store: TokenStore, *, rank: int, world_size: int, dropout: Dropout, frames: tuple[Frame, Frame]
    ) -> Batches:
        """Return the batches of one process."""
        training = self.config.training
        return Batches(
            store,
            training.batch_tokens,
            training.seed,
            rank,
            world_size,
            dropout,
            frames,
            source_lengths=self.source_lengths(store),
            alike=self.config.model.copying,
        )

    def source_lengths(self, store: TokenStore) -> NDArray[np.int32] | None:
        """Return the number of encoder positions of each stored source; `None` if it is the number of ids."""
        return None

    def tensors(self, batch: Batch, random: torch.Generator, *, training: bool) -> dict[str, Tensor]:
        """Return the model's input tensors of a batch by name; in training with augmentation."""
        return {"source": batch.source}

    def frequencies(self, store: TokenStore) -> NDArray[np.int64]:
        """Count each token of the source text in a store."""
        return store.counts("source", self.tokenizer.size)

    # Using a model

    def shorten(self, sources: Sequence[str]) -> tuple[list[str], int]:
        """Return sources truncated to what a model can read at once, and how many were truncated."""
        return list(sources), 0

    @abstractmethod
    def rows(self, sources: Sequence[str]) -> Rows:
        """Return the ids of sources without the frame; raises an error for sources that are too long for the model."""

    @abstractmethod
    def groups(self, rows: Rows, tokens: int) -> Iterator[list[int]]:
        """Yield the indices of sources in groups within a budget of padded tokens."""

    @abstractmethod
    def collate(self, sources: Sequence[str], rows: Rows) -> tuple[Tensor, ...]:
        """Return the model's input tensors of sources, on the CPU."""

    @abstractmethod
    def view(self, model: nn.Module, source: str) -> SourceView:
        """Return one source in the form that a trace shows."""

    def breakdown(self, source: str) -> str | None:
        """Return the kind of a source, by which scores are broken down; `None` without one."""
        return None

    # Generating text

    @property
    def aligns(self) -> bool:
        """Whether attention to the source can be read as a word alignment."""
        return False

    @property
    def positions(self) -> int | None:
        """The number of learned positions; `None` if positions are not limited."""
        return self.config.model.learned_positions

    def split(self, sources: Sequence[str], search: Search) -> tuple[list[list[Piece]], Rows]:
        """Split each source into pieces that fit the model, by default one; return them and the ids of all pieces."""
        return [[Piece(source, "")] for source in sources], self.rows(sources)

    def output_limit(self, row: list[int]) -> int:
        """Return the maximum number of tokens that may be generated for a source."""
        return self.longest_output

    @property
    def longest_output(self) -> int:
        """The maximum number of tokens of any output: the configured limit, or the number of learned positions."""
        most = self.config.decoding.max_length
        return min(most, self.positions or most)

    def step_model(
        self, model: Model, sources: Sequence[str], rows: Rows, *, with_attention: bool
    ) -> tuple[StepModel[Any], Source]:
        """Return the step model and the source of a batch; states have attention if `with_attention`."""
        raise RegardError("This input cannot be the source of a text.")

    @property
    def reorders(self) -> bool:
        """Whether `reorder` may change an order."""
        return False

    def reorder(self, source: str, hypotheses: list[Hypothesis]) -> list[Hypothesis]:
        """Return the hypotheses for a source in the order of preference, given in the order of their scores."""
        return hypotheses

    def explain(self, model: Model, tokenizer: Tokenizer, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """Return the hypothesis with its attention to the source and its word alignment."""
        return hypothesis


def with_attention(model: Model, tokenizer: Tokenizer, view: SourceView, hypothesis: Hypothesis) -> Hypothesis:
    """Return the hypothesis with the attention of its tokens to the source (mean of layers and heads): T×S."""
    tokens = list(hypothesis.tokens)
    sides = Side.of(tokenizer, [*tokens, EOS]), Side.of(tokenizer, [BOS, *tokens])
    given = replace(view.given, asked=sides[1].ids)
    seen = trace(model, view.side, *sides, tokenizer=tokenizer, given=given)
    maps = [weights for name, weights in seen.activations.items() if name.endswith("source_attention.weights")]
    if not maps:
        return hypothesis
    return replace(hypothesis, attention=tuple(map(tuple, torch.cat(maps).mean(0).tolist())))
