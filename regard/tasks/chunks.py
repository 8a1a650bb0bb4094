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

    def pairs(self) -> list[Pair]:
        """Return all examples; raises if the corpus has changed since the survey."""
        pairs = list(self.chunk.pairs())
        if len(pairs) != len(self.fates):
            raise changed_corpus()
        return pairs

    def places_of(self, fate: Fate) -> list[int]:
        """Return the indices of the examples of a fate."""
        places: list[int] = np.flatnonzero(np.frombuffer(self.fates, dtype=np.uint8) == fate).tolist()
        return places

    def training_pairs(self) -> list[Pair]:
        """Return the examples for training."""
        pairs, places = self.pairs(), self.places_of(Fate.TRAIN)
        return pairs if len(places) == len(pairs) else [pairs[place] for place in places]


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
        if not kind.checks_pairs:
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
        kind, pairs = self.kind, decided.pairs()
        train, held_out, tested = (decided.places_of(fate) for fate in (Fate.TRAIN, Fate.HELD_OUT, Fate.TEST))
        words = words_to_count(self.config, kind.texts)
        sample = train[-decided.trained % self.step :: self.step]
        words.add(kind.input.texts_of(pairs[place], self.config) for place in sample)
        labels: Counter[str] = Counter()
        if kind.output.has_labels:
            labels.update(label for place in train for label in kind.output.labels_of(pairs[place]))
        kept = [[(place, pairs[place]) for place in places] for places in (held_out, tested)]
        return GatheredChunk(kept[0], kept[1], words, labels)


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
        pairs = chunk.training_pairs() if isinstance(chunk, DecidedChunk) else list(chunk.pairs())
        before = self.task.input.cut_counts.copy()
        sources, targets, too_long = self.task.packed_rows(pairs, self.longest)
        counted = self.task.input.cut_counts - before
        return EncodedChunk(sources.astype(self.dtype), targets.astype(self.dtype), too_long, counted)
