"""The training corpus of a run, read several times while its data is prepared: surveyed, gathered from, and encoded."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.config.data import Corpus, Generated
from regard.config.run import RunConfig
from regard.config.text_corpora import JsonLines, LabelledLines, PairedFiles, TsvFiles
from regard.data.cleaning import CleaningReport, Fate, changed_corpus, with_fate
from regard.data.corpus import Pair, describe, read_located
from regard.data.joining import NO_NUMBER, add_joined_pairs
from regard.data.line_corpora import LineChunk, line_chunks
from regard.data.store import StoreWriter
from regard.data.survey import Survey
from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress
from regard.tasks.chunk_workers import ChunkWorkers, available_cores
from regard.tasks.chunks import (
    Chunk,
    DecidedChunk,
    EncodeStep,
    GatherStep,
    PairChunk,
    SurveyStep,
    problem_of,
)
from regard.tasks.inputs import Input
from regard.tasks.task import Task, TaskKind
from regard.tasks.vocabularies import words_to_count

CHUNK = 2000
"""Examples of a chunk, if it is not a chunk of lines."""
SMALL = 200_000
"""Generated corpora of at most so many examples are kept in memory."""
SMALL_BYTES = 1 << 24
"""Corpora of smaller files, about 200,000 pairs, are prepared in one process: others take seconds to start."""
COMPRESSED = {".gz": 3, ".parquet": 3, ".xlsx": 8}
"""By how much files of these endings are typically compressed."""

Reading = Callable[[], Iterable[Pair]]


class TrainingCorpus:
    """The training examples of a configuration; what is read does not depend on the number of workers."""

    def __init__(self, config: RunConfig, workers: ChunkWorkers, progress: Progress | None = None) -> None:
        self.config, self.kind = config, TaskKind.of(config)
        self.corpus = config.data.train
        self.fate: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)
        """The `Fate` of each example, after `survey`."""
        self._workers, self._progress = workers, progress
        self._counts: list[int] = []
        self._read = read_training_pairs(config)

    def survey(self, validation: Iterable[Pair], directory: Path) -> CleaningReport:
        """Decide the fate of each example, and return the report; `directory` is for temporary files."""
        data = self.config.data
        survey, size, done = Survey(self.kind.cleaning, directory), size_of(self.corpus), 0

        def counted() -> Iterator[Chunk]:
            nonlocal done
            for chunk in self._chunks():
                done += sum(len(block.data) for block in chunk.blocks) if isinstance(chunk, LineChunk) else 0
                yield chunk

        for surveyed in self._workers.map(SurveyStep(self.config), counted()):
            survey.add(surveyed)
            self._counts.append(len(surveyed.fates))
            self._report("reading", len(survey), round(len(survey) * size / done) if 0 < done <= size else None)
        if not len(survey):
            raise RegardError(f"{describe(self.corpus)} has no pairs: the corpus is empty.")
        self._report("reading", len(survey), len(survey))
        self.fate, report = survey.finish(
            held_out=0 if data.validation else data.held_out,
            tested=0 if data.test else data.held_out_test,
            validation=validation,
        )
        return report

    def learn(self, report: CleaningReport) -> tuple[Task, dict[str, list[tuple[int, Pair]]]]:
        """Return the task with its vocabularies, and the examples held out for validation and test, numbered from 1."""
        words, done, first = words_to_count(self.config, self.kind.texts), 0, 1
        step = GatherStep(self.config, words.step(report.train))
        labels, held = Counter[str](), {"validation": list[tuple[int, Pair]](), "test": list[tuple[int, Pair]]()}
        for gathered, count in zip(self._workers.map(step, self._decided()), self._counts, strict=True):
            words.merge(gathered.words)
            labels.update(gathered.labels)
            for name, some in (("validation", gathered.held_out), ("test", gathered.tested)):
                held[name] += [(first + index, pair) for index, pair in some]
            first += count
            done += count
            self._report("learning tokenizers", done, len(self.fate))
        self.kind.input.check_corpora(self.config)
        return self.kind.learn(words, labels), held

    def pairs(self) -> Iterator[Pair]:
        """Yield the examples that are kept for training."""
        return (pair for _, pair in with_fate(self._read(), self.fate, Fate.TRAIN))

    def store(self, task: Task, report: CleaningReport, directory: Path) -> list[int]:
        """Tokenise the training examples into `directory/data/train`; return the numbers of those left out."""
        config, longest = self.config, self.kind.cleaning.max_length
        step, too_long, done = EncodeStep(config, directory, longest, known=task), list[int](), 0
        chunks: Iterator[DecidedChunk | PairChunk]
        numbers: Iterator[list[int]]
        if config.data.joined:
            chunks, numbers = self._joined()
        else:
            chunks, numbers = self._decided(), self._numbers()
        before = task.input.cut_counts.copy()
        with StoreWriter(directory / "data" / "train", task.largest_id) as writer:
            for encoded in self._workers.map(step, chunks):
                own = next(numbers)
                writer.write_packed(encoded.sources, encoded.targets)
                too_long += [own[index] for index in encoded.too_long if own[index] != NO_NUMBER]
                if self._workers.count > 1:
                    before.update(encoded.cut_counts)
                done += sum(number != NO_NUMBER for number in own) if config.data.joined else len(own)
                self._report("storing", done, report.train)
        if self._workers.count > 1:
            task.input.cut_counts = before
        return too_long

    def _chunks(self) -> Iterator[Chunk]:
        """Yield all examples in chunks; those of lines are parsed and checked where they are used."""
        if self.config.data.every == 1 and isinstance(self.corpus, PairedFiles | TsvFiles | JsonLines | LabelledLines):
            yield from line_chunks(self.corpus)
            return
        pairs = iter(self._read())
        while chunk := list(islice(pairs, CHUNK)):
            yield PairChunk.of(chunk)

    def _decided(self) -> Iterator[DecidedChunk]:
        """Yield all examples in the chunks of the survey, with their fates."""
        first = trained = number = 0
        for chunk in self._chunks():
            if number == len(self._counts):
                raise changed_corpus()
            fates = self.fate[first : first + self._counts[number]]
            yield DecidedChunk(chunk, fates.tobytes(), trained)
            trained += int((fates == Fate.TRAIN).sum())
            first, number = first + len(fates), number + 1
        if number != len(self._counts):
            raise changed_corpus()

    def _numbers(self) -> Iterator[list[int]]:
        """Yield the numbers of the training examples of each chunk."""
        first = 0
        for count in self._counts:
            yield (np.flatnonzero(self.fate[first : first + count] == Fate.TRAIN) + first + 1).tolist()
            first += count

    def _joined(self) -> tuple[Iterator[DecidedChunk | PairChunk], Iterator[list[int]]]:
        """Return the training examples and those made by joining them, in chunks, and the numbers of each chunk."""
        kept = with_fate(self._read(), self.fate, Fate.TRAIN)
        joined = add_joined_pairs(kept, self.config.data.joined, self.config.training.seed)
        numbers: list[list[int]] = []

        def chunks() -> Iterator[DecidedChunk | PairChunk]:
            while chunk := list(islice(joined, CHUNK)):
                numbers.append([number for number, _ in chunk])
                yield PairChunk.of([pair for _, pair in chunk])

        return chunks(), (numbers.pop(0) for _ in iter(int, 1))

    def _report(self, task: str, done: int, total: int | None) -> None:
        if self._progress:
            self._progress(task, done, total)


def read_training_pairs(config: RunConfig) -> Reading:
    """Return a function that reads every N-th training example, checked; a small generated corpus is kept in memory."""
    corpus, kind, every = config.data.train, TaskKind.of(config), config.data.every

    def read() -> Iterator[Pair]:
        pairs = (pair for _, pair in read_checked(corpus, kind, drops_unlabelled=True))
        if every == 1 or not corpus.pictures:
            return islice(pairs, 0, None, every)
        seen: dict[str, int] = {}  # an image with all its examples
        return (pair for pair in pairs if seen.setdefault(kind.group(pair), len(seen)) % every == 0)

    if isinstance(corpus, Generated) and corpus.size <= SMALL:
        pairs = list(read())
        return lambda: pairs
    return read


def read_checked(corpus: Corpus, kind: TaskKind, *, drops_unlabelled: bool = False) -> Iterator[tuple[str, Pair]]:
    """Yield the pairs of a corpus with their places; raises an error for an invalid pair.

    If cleaning `drops_unlabelled` pairs, those without a label are not invalid.
    """
    for place, pair in read_located(corpus):
        if problem := problem_of(pair, kind) if drops_unlabelled else kind.problem(pair):
            raise RegardError(f"{place} {problem}")
        yield place, pair


def size_of(corpus: Corpus) -> int:
    """Return the size of the files of a corpus in bytes, about, after decompression."""
    if isinstance(corpus, Generated):
        return corpus.size * (SMALL_BYTES // SMALL)
    files = (file for path in map(Path, corpus.files) for file in (path.rglob("*") if path.is_dir() else [path]))
    return sum(file.stat().st_size * COMPRESSED.get(file.suffix.lower(), 1) for file in files if file.is_file())


def workers_for(config: RunConfig, wanted: int | None = None) -> ChunkWorkers:
    """Return the workers that prepare the data of a configuration; by default as many as cores, if it is large.

    Examples with files, such as images, are prepared in one process, since gathering the files dominates; so are
    those that an extension within a script checks, which other processes cannot import.
    """
    kind = TaskKind.of(config)
    count = wanted or (available_cores() if size_of(config.data.train) > SMALL_BYTES else 1)
    if kind.input.gather is not Input.gather or "__main__" in config.plugins:
        count = 1
    return ChunkWorkers(count, config.plugins)
