"""A task: an input, an output, and what depends on both.

Training, evaluation, cards and analyses use this interface for all tasks.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from regard.config.data import Cleaning
from regard.config.run import RunConfig
from regard.data.batches import Batch, Batches
from regard.data.corpus import Pair
from regard.data.labels import Labels
from regard.data.store import TokenStore
from regard.foundation.progress import Progress
from regard.models import Model
from regard.models.encoder_model import EncoderModel
from regard.tasks.inputs import INPUTS, Input
from regard.tasks.inputs.text import cut_rows
from regard.tasks.outputs import OUTPUTS, Output
from regard.tasks.training_batch import TrainingBatch
from regard.tasks.vocabularies import Vocabularies, learn_tokenizers
from regard.text.dropout import BpeDropout
from regard.text.joined import Joined
from regard.text.learning import WordCounts
from regard.text.packed_rows import PackedRows

Rows = list[list[int]]


@dataclass(frozen=True)
class TaskKind:
    """The task of a configuration, before tokenizers and labels are learned from data."""

    config: RunConfig
    input: type[Input]
    output: type[Output[Any]]

    @classmethod
    def of(cls, config: RunConfig) -> Self:
        """Return the task of a configuration."""
        return cls(config, INPUTS[config.task.input], OUTPUTS[config.task.output])

    @property
    def noun(self) -> str:
        """The plural noun for examples."""
        return self.config.task.examples

    @property
    def texts(self) -> tuple[str, ...]:
        """The sides of an example that are text; only these are cleaned and tokenised."""
        return (*(["source"] if self.input.is_text else []), *(["target"] if self.output.writes_text else []))

    @property
    def cleaning(self) -> Cleaning:
        """The settings by which examples are cleaned."""
        return self.output.cleaning(self.config)

    @property
    def checks_pairs(self) -> bool:
        """Whether `problem` can find anything wrong with an example of this task."""
        return self.input.problem.__func__ is not Input.problem.__func__ or (  # type: ignore[attr-defined]
            self.output.problem.__func__ is not Output.problem.__func__  # type: ignore[attr-defined]
        )

    def problem(self, pair: Pair) -> str | None:
        """Return what is wrong with an example, as the end of a sentence that begins with its place, or `None`."""
        return self.input.problem(pair.source) or self.output.problem(pair)

    def group(self, pair: Pair) -> str:
        """Return the group of an example; a group is held out as a whole or not at all."""
        return self.input.group(pair.source)

    def learn(self, words: WordCounts, labels: Counter[str]) -> "Task":
        """Learn tokenizers and labels from the words and the labels of the training examples."""
        known = Labels.learn(labels) if self.output.has_labels else None
        source, target = learn_tokenizers(self.config, words, self.texts)
        return Task(self, Vocabularies(source=source, target=target, labels=known))

    def load(self, directory: Path) -> "Task":
        """Load the task of a run from its `tokenizers` directory, with images or sounds if the run still has them."""
        labels = self.output.has_labels
        task = Task(self, Vocabularies.load(self.config, directory, self.texts, labels=labels))
        task.input.open_data(directory.parent / "data")
        return task


class Task:
    """An input and an output with the vocabularies learned from the training data."""

    def __init__(self, kind: TaskKind, vocabularies: Vocabularies) -> None:
        self.kind, self.config, self.vocabularies = kind, kind.config, vocabularies
        self.input: Input = kind.input(kind.config, vocabularies.source, kind.output.source_frame)
        self.output: Output[Any] = kind.output(kind.config, self.input, vocabularies)

    def configured(self, config: RunConfig) -> "Task":
        """Return the same task and vocabularies under another configuration, such as another model."""
        task = Task(TaskKind.of(config), self.vocabularies)
        task.input.share_data(self.input)
        return task

    @property
    def noun(self) -> str:
        """The plural noun for examples."""
        return self.kind.noun

    def save(self, directory: Path) -> None:
        """Write the vocabularies to a directory."""
        self.vocabularies.save(directory)

    def describe(self) -> str:
        """Return a short description of the vocabularies."""
        source, target = self.vocabularies.source, self.vocabularies.target
        if source is not None and target is not None:
            if source.fingerprint == target.fingerprint:
                return f"{source.size:,} tokens, {source.kind}, shared"
            return f"{source.size:,} source tokens ({source.kind}), {target.size:,} target tokens ({target.kind})"
        return "; ".join(part for part in (self.input.describe(), self.output.describe()) if part)

    # Preparing data

    def check(self, pair: Pair, place: str) -> None:
        """Raise an error for an example that does not fit the vocabularies, at a place such as `a.tsv, text 3`."""
        self.output.check(pair, place)

    def gather(self, pairs: Iterable[Pair], directory: Path, progress: Progress | None = None) -> None:
        """Store the files that sources name, such as images, in a data directory."""
        self.input.gather((pair.source for pair in pairs), directory, progress)

    @property
    def id_limits(self) -> tuple[int, int]:
        """One more than the largest id of each side of a store."""
        return self.input.id_limit, self.output.id_limit

    @property
    def largest_id(self) -> int:
        """One more than the largest id that a store may contain."""
        sizes = [vocabulary.size for vocabulary in self.vocabularies.by_name.values()]
        return max(*sizes, self.input.id_limit) if sizes else self.input.id_limit

    def rows(self, pairs: Sequence[Pair], longest: int) -> tuple[Rows, Rows, list[int]]:
        """Return the ids of examples of at most `longest` tokens, and the indices of longer examples."""
        sources, targets = self.output.encode(pairs)
        if self.output.splits_long_sources:
            pieces = [ids[start : start + longest] for ids in sources for start in range(0, len(ids), longest)]
            return pieces, [[] for _ in pieces], []
        if self.config.task.cuts_long_sources:
            sources = [ids[:longest] for ids in sources]
        fits = [max(len(source), len(target)) <= longest for source, target in zip(sources, targets, strict=True)]
        too_long = [index for index, fit in enumerate(fits) if not fit]
        return list(compress(sources, fits)), list(compress(targets, fits)), too_long

    def packed_rows(self, pairs: Sequence[Pair], longest: int) -> tuple[PackedRows, PackedRows, list[int]]:
        """Return what `rows` returns, packed, in less time for tasks from text to text."""
        if self.output.splits_long_sources or self.config.task.cuts_long_sources:
            sources, targets, too_long = self.rows(pairs, longest)
            return PackedRows.of(sources), PackedRows.of(targets), too_long
        packed = self.output.encode_packed(pairs)
        fits = np.maximum(packed[0].lengths, packed[1].lengths) <= longest
        if fits.all():
            return *packed, []
        return packed[0].select(fits), packed[1].select(fits), np.flatnonzero(~fits).tolist()

    def scored_rows(self, pairs: Sequence[Pair], longest: int) -> tuple[Rows, Rows, list[int]]:
        """Return the ids of all examples, truncated to `longest` tokens per side, and the indices of truncated ones.

        Scored examples are never left out, whatever their length.
        """
        if self.output.splits_long_sources:
            return self.rows(pairs, longest)
        sides = self.output.encode(pairs)
        cut = [index for index, row in enumerate(zip(*sides, strict=True)) if any(len(ids) > longest for ids in row)]
        several = isinstance(self.vocabularies.source, Joined)
        sources = [cut_rows(ids, longest, several=several) for ids in sides[0]]
        return sources, [ids[:longest] for ids in sides[1]], cut

    def frequencies(self, store: TokenStore) -> NDArray[np.int64]:
        """Count each token of the source text, or else of the target text, in a store."""
        if self.vocabularies.source is not None:
            return self.input.frequencies(store)
        assert self.vocabularies.target is not None
        return store.counts("target", self.vocabularies.target.size)

    # Training

    def build(self) -> Model | EncoderModel:
        """Build a model, initialised from torch's global generator."""
        model: Model | EncoderModel = self.output.build()
        return model

    def batches(self, store: TokenStore, *, rank: int = 0, world_size: int = 1, training: bool = False) -> Batches:
        """Return the batches of one process; BPE dropout is applied only in training."""
        own = self.output.batches(store, rank=rank, world_size=world_size)
        if own is not None:
            return own
        share = self.config.text.bpe_dropout if training else 0.0
        sides = (self.vocabularies.source, self.vocabularies.target)
        dropout = tuple(BpeDropout(tokenizer, share) if tokenizer and share else None for tokenizer in sides)
        frames = self.input.frame, self.output.target_frame
        return self.input.batches(
            store, rank=rank, world_size=world_size, dropout=(dropout[0], dropout[1]), frames=frames
        )

    def training_batch(self, batch: Batch, random: torch.Generator, *, training: bool) -> TrainingBatch:
        """Return the inputs and targets of a batch; in training with noise and augmentation."""
        inputs = self.input.tensors(batch, random, training=training)
        return self.output.training_batch(batch, inputs, random, training=training)
