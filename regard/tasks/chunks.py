"""Chunks of a training corpus, and what is done with each of them while data is prepared.

A step is a function of a chunk. It is plain data, so that it can be sent to a worker process, and its results do not
depend on where it runs.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from regard.config.run import RunConfig
from regard.data.cleaning import Fate, changed_corpus
from regard.data.line_corpora import LineChunk
from regard.data.pair import Pair
from regard.data.store import dtype_for
from regard.data.survey import SurveyedChunk, SurveyRules, salt_of, survey_chunk
from regard.foundation.errors import RegardError
from regard.tasks.task import Task, TaskKind
from regard.tasks.vocabularies import words_to_count
from regard.text.learning import WordCounts
from regard.text.packed_rows import PackedRows


class Chunk(Protocol):
    """Consecutive examples of a corpus."""

    def pairs(self) -> Iterator[Pair]:
        """Yield the examples."""


@dataclass(frozen=True, slots=True)
class PairChunk:
    """Examples that have been read and checked already."""

    texts: list[str]
    """Source and target of each example, alternating; plain strings take less time to send than pairs."""

    @classmethod
    def of(cls, pairs: list[Pair]) -> "PairChunk":
        """Return a chunk of examples."""
        return cls([text for pair in pairs for text in pair])

    def pairs(self) -> Iterator[Pair]:
        """Yield the examples."""
        return map(Pair, self.texts[::2], self.texts[1::2])


@dataclass(frozen=True, slots=True)
class DecidedChunk:
    """Examples, and what was decided about each of them."""

    chunk: Chunk
    fates: bytes
    """The `Fate` of each example."""
    trained: int = 0
    """How many examples before this chunk are for training."""

    def pairs_of(self, *wanted: Fate) -> list[Pair]:
        """Return the examples of some fates; raises if the corpus has changed since the survey."""
        pairs = list(self.chunk.pairs())
        if len(pairs) != len(self.fates):
            raise changed_corpus()
        if len(wanted) == 1 and self.fates.count(wanted[0]) == len(pairs):
            return pairs
        return [pair for pair, fate in zip(pairs, self.fates, strict=True) if fate in wanted]


def problem_of(pair: Pair, kind: TaskKind) -> str | None:
    """Return what is wrong with a training example, or `None`; cleaning drops those without a label."""
    if kind.output.has_labels and not pair.target.strip():
        return None
    return kind.problem(pair)


@dataclass(frozen=True)
class SurveyStep:
    """Checks the examples of a chunk, and surveys them."""

    config: RunConfig

    @cached_property
    def kind(self) -> TaskKind:
        """The task."""
        return TaskKind.of(self.config)

    @cached_property
    def rules(self) -> SurveyRules:
        """The rules of the survey."""
        data, kind = self.config.data, self.kind
        holds_out = not data.validation or (data.held_out_test > 0 and not data.test)
        return SurveyRules(
            kind.cleaning,
            kind.texts,
            required=("target",) if kind.output.has_labels else (),
            together=kind.group,
            salt=salt_of(self.config.training.seed) if holds_out else None,
        )

    def __call__(self, chunk: Chunk) -> SurveyedChunk:
        """Survey a chunk; raises for an invalid example of a chunk of lines."""
        kind = self.kind
        if not isinstance(chunk, LineChunk):
            return survey_chunk(list(chunk.pairs()), self.rules)
        pairs = []
        for number, pair in chunk.numbered():
            if problem := problem_of(pair, kind):
                raise RegardError(f"{chunk.place(number)} {problem}")
            pairs.append(pair)
        return survey_chunk(pairs, self.rules)


@dataclass(frozen=True)
class GatheredChunk:
    """What later steps need of the raw examples of a chunk."""

    held_out: list[tuple[int, Pair]]
    """Examples for validation, each with its index in the chunk."""
    tested: list[tuple[int, Pair]]
    """Examples for the test."""
    words: WordCounts
    """Words of the training examples that tokenizers are learned from."""
    labels: Counter[str]
    """Labels of the training examples."""


@dataclass(frozen=True)
class GatherStep:
    """Collects held-out examples, and counts words and labels of training examples."""

    config: RunConfig
    step: int
    """The words of every N-th training example are counted."""

    @cached_property
    def kind(self) -> TaskKind:
        """The task."""
        return TaskKind.of(self.config)

    def __call__(self, decided: DecidedChunk) -> GatheredChunk:
        """Gather from a chunk."""
        kind, fates = self.kind, decided.fates
        everything = decided.pairs_of(*Fate)
        train = [pair for pair, fate in zip(everything, fates, strict=True) if fate == Fate.TRAIN]
        words = words_to_count(self.config, kind.texts)
        sample = train[-decided.trained % self.step :: self.step]
        words.add(kind.input.texts_of(pair, self.config) for pair in sample)
        labels: Counter[str] = Counter()
        if kind.output.has_labels:
            labels.update(label for pair in train for label in kind.output.labels_of(pair))
        held_out, tested = (
            [(index, everything[index]) for index, fate in enumerate(fates) if fate == wanted]
            for wanted in (Fate.HELD_OUT, Fate.TEST)
        )
        return GatheredChunk(held_out, tested, words, labels)


@dataclass(frozen=True)
class EncodedChunk:
    """The ids of a chunk as a store keeps them."""

    sources: PackedRows
    targets: PackedRows
    too_long: list[int]
    """Indices of the examples that are too long, among the training examples of the chunk."""
    cut_counts: Counter[str]
    """What `Input.cut_counts` counted."""


@dataclass(frozen=True)
class EncodeStep:
    """Tokenises the training examples of a chunk."""

    config: RunConfig
    directory: Path
    """The directory of the run or of the prepared data, with its tokenizers."""
    longest: int
    """Longest side in tokens."""
    known: Task | None = field(default=None, compare=False)
    """The task, if this process has it."""

    def __getstate__(self) -> dict[str, Any]:
        """Return what is sent to another process, which loads the task itself."""
        return {"config": self.config, "directory": self.directory, "longest": self.longest, "known": None}

    @cached_property
    def task(self) -> Task:
        """The task."""
        return self.known or TaskKind.of(self.config).load(self.directory / "tokenizers")

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of ids in the store."""
        return dtype_for(self.task.largest_id)

    def __call__(self, chunk: DecidedChunk | PairChunk) -> EncodedChunk:
        """Tokenise a chunk."""
        pairs = chunk.pairs_of(Fate.TRAIN) if isinstance(chunk, DecidedChunk) else list(chunk.pairs())
        before = self.task.input.cut_counts.copy()
        sources, targets, too_long = self.task.packed_rows(pairs, self.longest)
        counted = self.task.input.cut_counts - before
        return EncodedChunk(sources.astype(self.dtype), targets.astype(self.dtype), too_long, counted)


def training_numbers(fates: bytes, first: int) -> NDArray[np.int64]:
    """Return the numbers of the training examples of a chunk whose first example has the number `first`."""
    return np.flatnonzero(np.frombuffer(fates, dtype=np.uint8) == Fate.TRAIN) + first
