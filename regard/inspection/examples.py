"""Reads the examples of a corpus analysis, and traces a run's own output for each."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.data.conllu import read_conllu
from regard.data.lines import read_lines
from regard.data.store import TokenStore
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.inspection import requirements
from regard.inspection.states import longest_sentence
from regard.runs.run import Run
from regard.search import Hypothesis
from regard.tasks.loaded import LoadedRun
from regard.tasks.trace import Trace

BATCH = 32
"""Sources that are translated together."""

Tag = tuple[int, int, str]
"""The first character of a word, one past its last, and its part of speech."""


@dataclass(frozen=True)
class AnnotatedText:
    """A text and, if it comes from CoNLL-U, the parts of speech of its words."""

    text: str
    tags: tuple[Tag, ...] | None = None

    def tag_of(self, start: int, end: int) -> str | None:
        """Return the tag of the word that shares most characters with a span; None without one."""
        shared = [(min(end, last) - max(start, first), tag) for first, last, tag in self.tags or ()]
        best = max(shared, key=lambda item: item[0], default=(0, ""))
        return best[1] if best[0] > 0 and best[1] != "_" else None


@dataclass(frozen=True)
class Example:
    """A source and, if there is one, its reference."""

    number: int
    """Its place in the file, counted from 1."""
    source: AnnotatedText
    reference: AnnotatedText | None = None


@dataclass
class Examples:
    """The examples of a corpus that are analysed, and what was left out."""

    corpus: str
    """The name of the file."""
    reference: str | None
    chosen: list[Example]
    every: list[Example]
    """Those that were not drawn as well."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Reasons, and how many examples were left out for each."""

    @property
    def has_tags(self) -> bool:
        """Whether the references have parts of speech."""
        texts = (example.reference for example in self.every if example.reference)
        return any(tag != "_" for text in texts for *_, tag in text.tags or ())


def read_examples(
    corpus: Path | str, reference: Path | str | None = None, *, most: int | None = None, seed: int = 1
) -> Examples:
    """Read sources, and a reference for each; plain lines or CoNLL-U.

    An example whose source or reference is empty is left out. Of more than `most`, a sample is drawn.
    """
    if (most is not None and most < 1) or seed < 0:
        raise UsageError(f"`most` is {most} and `seed` is {seed}: they must be at least 1 and 0.")
    sources = _read_annotated(corpus)
    references: Sequence[AnnotatedText | None] = [None] * len(sources)
    if reference is not None:
        references = _read_annotated(reference)
        if len(references) != len(sources):
            raise UsageError(
                f"{corpus} has {len(sources):,} texts and {reference} has {len(references):,}. Give one reference for "
                "each source, on the same line."
            )
    left_out: Counter[str] = Counter()
    every = []
    for number, (source, right) in enumerate(zip(sources, references, strict=True), start=1):
        if not source.text.strip():
            left_out["The source is empty."] += 1
        elif right is not None and not right.text.strip():
            left_out["The reference is empty."] += 1
        else:
            every.append(Example(number, source, right))
    if not every:
        raise UsageError(f"{corpus} has no text to analyse. Give a file with a source on each line.")
    chosen = every
    if most is not None and len(every) > most:
        places = np.random.default_rng([seed, 0]).permutation(len(every))[:most]
        chosen = [every[position] for position in sorted(places.tolist())]
    name = None if reference is None else Path(reference).name
    return Examples(Path(corpus).name, name, chosen, every, left_out)


def _read_annotated(path: Path | str) -> list[AnnotatedText]:
    """Return the lines of a file, or the sentences of a CoNLL-U file with the parts of speech of their words."""
    if not Path(path).name.removesuffix(".gz").endswith(".conllu"):
        return [AnnotatedText(line) for line in read_lines(path)]
    return [
        AnnotatedText(sentence.text, tuple((word.start, word.end, word.upos) for word in sentence.words))
        for sentence in read_conllu(path)
    ]


def check_run(run: LoadedRun) -> None:
    """Refuse a run that does not translate text."""
    if reason := requirements.translation("A corpus analysis averages over output words and compares")(run):
        raise UsageError(reason)


def trace_examples(
    run: LoadedRun, examples: Examples, *, batch: int = BATCH, progress: Progress | None = None
) -> Iterator[tuple[Example, Trace]]:
    """Yield each example with the trace of the run's own output; those that cannot be traced are left out."""
    check_run(run)
    longest = longest_sentence(run.config)
    count = len(examples.chosen)
    for start in range(0, count, batch):
        several = examples.chosen[start : start + batch]
        rows = run.source_tokenizer.encode_batch([example.source.text for example in several])
        fits = [0 < len(row) <= longest for row in rows]
        examples.left_out[f"The source has no token, or more than {longest}."] += fits.count(False)
        texts = [example.source.text for example, fit in zip(several, fits, strict=True) if fit]
        outputs = iter(translate(run, texts))
        for index, (example, fit) in enumerate(zip(several, fits, strict=True), start=start):
            if progress:
                progress("examples", index, count)
            if fit and (found := _trace(run, example, next(outputs), examples.left_out)) is not None:
                yield example, found
    if progress:
        progress("examples", count, count)


def _trace(run: LoadedRun, example: Example, output: Hypothesis | None, left_out: Counter[str]) -> Trace | None:
    """Return the trace of an output, or None and the reason why there is none."""
    if output is None:
        left_out["The run has no output for the source."] += 1
        return None
    try:
        return run.trace_hypothesis(example.source.text, output)
    except RegardError as error:
        left_out[str(error)] += 1
        return None


def count_target_tokens(run: LoadedRun, directory: Path | str) -> NDArray[np.int64] | None:
    """Return how often each target token occurs in the training data of a run; None if the run no longer has them."""
    try:
        return TokenStore(Run.open(directory).data / "train").counts("target", run.target_tokenizer.size)
    except (OSError, ValueError, RegardError):
        return None


def translate(run: LoadedRun, texts: list[str]) -> list[Hypothesis | None]:
    """Return the best output of each source; None for a source that the run refuses."""
    try:
        return [best[0] if best else None for best in run.hypotheses(texts)]
    except RegardError:
        if len(texts) == 1:
            return [None]
        return [translate(run, [text])[0] for text in texts]
