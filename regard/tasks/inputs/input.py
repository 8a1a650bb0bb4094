"""The contract of an input: what a model reads.

Axes: B batch, S source positions.
"""

from abc import ABC, abstractmethod
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
from regard.data.store import TokenStore
from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress
from regard.models import Model
from regard.search.hypothesis import Hypothesis
from regard.search.options import Search
from regard.search.steps import Source, StepModel
from regard.tasks.trace import Given, Side, trace
from regard.text.dropout import BpeDropout
from regard.text.sentences import Piece
from regard.text.specials import BOS, EOS
from regard.text.tokenizer import Tokenizer

Rows = list[list[int]]
Dropout = tuple[BpeDropout | None, BpeDropout | None]


@dataclass(frozen=True)
class SourceView:
    """One source as a trace shows it."""

    side: Side
    """Its positions."""
    given: Given
    """What the model is given, without what is asked of it."""


class Input(ABC):
    """What a model reads: how raw sources become ids in a store, tensors in a batch, and positions in a trace.

    A raw source is always a text: the text itself, texts with tabs between them, or the name of a file. Class methods
    need nothing but the source; everything else needs what was learned from the training data.
    """

    is_text: ClassVar[bool] = False
    """Whether sources hold text that is cleaned and tokenised."""

    def __init__(self, config: RunConfig, tokenizer: Tokenizer | None, frame: Frame) -> None:
        self.config = config
        self.optional_tokenizer = tokenizer
        self.frame = frame
        """The special tokens around the ids of a source."""
        self.trained_length = config.data.cleaning.max_length
        """The longest source in tokens that the model was trained on."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the text that is read."""
        if self.optional_tokenizer is None:
            raise ValueError("this input has no text")
        return self.optional_tokenizer

    # Preparing data

    @classmethod
    def problem(cls, source: str) -> str | None:
        """What is wrong with a source: the end of a sentence that begins with its place, or `None`."""
        return None

    @classmethod
    def group(cls, source: str) -> str:
        """What sources have in common that must all be held out, or not at all."""
        return source

    @classmethod
    def text_of(cls, source: str) -> str:
        """The part of a source that is text."""
        return source

    @classmethod
    def check_corpora(cls, config: RunConfig) -> None:
        """Refuse corpora that lack something, before anything is learned from them."""
        return

    def gather(self, sources: Iterable[str], directory: Path, progress: Progress | None = None) -> None:
        """Store in a data directory what sources only name, such as images, before they are encoded."""
        return

    def open_data(self, directory: Path) -> None:
        """Open what `gather` stored in a data directory, where it still is."""
        return

    def remarks(self) -> list[str]:
        """What a user should know about the sources that were read so far, in sentences."""
        return []

    def share_data(self, other: "Input") -> None:
        """Use what another input has gathered or opened."""
        return

    @abstractmethod
    def encode(self, sources: Sequence[str]) -> Rows:
        """The ids of sources as a store keeps them, without the frame."""

    @property
    @abstractmethod
    def id_limit(self) -> int:
        """One more than the largest id that `encode` gives."""

    def describe(self) -> str:
        """What was learned or set, in a few words; may be empty."""
        return f"{self.tokenizer.size:,} tokens, {self.tokenizer.kind}" if self.optional_tokenizer else ""

    # Training

    def batches(
        self, store: TokenStore, *, rank: int, world_size: int, dropout: Dropout, frames: tuple[Frame, Frame]
    ) -> Batches:
        """The batches of one process."""
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
        )

    def source_lengths(self, store: TokenStore) -> NDArray[np.int32] | None:
        """How many positions of the encoder each stored source takes, where that is not its number of ids."""
        return None

    def tensors(self, batch: Batch, random: torch.Generator, *, training: bool) -> dict[str, Tensor]:
        """What the model reads of a batch, by name; in training with augmentation."""
        return {"source": batch.source}

    def frequencies(self, store: TokenStore) -> NDArray[np.int64]:
        """How often each token of the text that is read occurs in a store."""
        return store.counts("source", self.tokenizer.size)

    # Using a model

    def shorten(self, sources: Sequence[str]) -> tuple[list[str], int]:
        """Return sources cut to what a model can read at once, and how many were cut."""
        return list(sources), 0

    @abstractmethod
    def rows(self, sources: Sequence[str]) -> Rows:
        """The ids of sources for a trained model, without the frame; refuses sources that are too long for it."""

    @abstractmethod
    def groups(self, rows: Rows, tokens: int) -> Iterator[list[int]]:
        """Places of sources that go through the model together, within a budget of padded tokens."""

    @abstractmethod
    def collate(self, sources: Sequence[str], rows: Rows) -> tuple[Tensor, ...]:
        """The tensors of sources, as the model takes them, on the CPU."""

    @abstractmethod
    def view(self, model: nn.Module, source: str) -> SourceView:
        """One source as a trace shows it."""

    def breakdown(self, source: str) -> str | None:
        """The kind of a source by which scores are also shown; `None` without one."""
        return None

    # Generating text

    @property
    def aligns(self) -> bool:
        """Whether attention to the source says which of its words an output word belongs to."""
        return False

    @property
    def positions(self) -> int | None:
        """How many positions the model has learned; `None` where no position is too far."""
        return self.config.model.learned_positions

    def split(self, sources: Sequence[str], search: Search) -> tuple[list[list[Piece]], Rows]:
        """Each source in pieces that fit the model, whole by default, and the ids of all pieces."""
        return [[Piece(source, "")] for source in sources], self.rows(sources)

    def output_limit(self, row: list[int]) -> int:
        """The largest number of tokens that may be generated for a source."""
        return self.longest_output

    @property
    def longest_output(self) -> int:
        """The largest number of tokens of any output: the configured limit, or the positions that were learned."""
        most = self.config.decoding.max_length
        return min(most, self.positions or most)

    def step_model(
        self, model: Model, sources: Sequence[str], rows: Rows, *, with_attention: bool
    ) -> tuple[StepModel[Any], Source]:
        """What search runs on for a batch of sources; states know where the model looked if `with_attention`."""
        raise RegardError("This input cannot be the source of a text.")

    def explain(self, model: Model, tokenizer: Tokenizer, source: str, hypothesis: Hypothesis) -> Hypothesis:
        """The hypothesis with where each of its tokens looked in the source, and with its word alignment."""
        return hypothesis


def with_attention(model: Model, tokenizer: Tokenizer, view: SourceView, hypothesis: Hypothesis) -> Hypothesis:
    """The hypothesis with where in the source each of its tokens looked (mean of layers and heads): T×S."""
    tokens = list(hypothesis.tokens)
    sides = Side.of(tokenizer, [*tokens, EOS]), Side.of(tokenizer, [BOS, *tokens])
    given = replace(view.given, asked=sides[1].ids)
    seen = trace(model, view.side, *sides, tokenizer=tokenizer, given=given)
    maps = [weights for name, weights in seen.activations.items() if name.endswith("source_attention.weights")]
    if not maps:
        return hypothesis
    return replace(hypothesis, attention=tuple(map(tuple, torch.cat(maps).mean(0).tolist())))
