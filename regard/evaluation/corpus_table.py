"""A row for each example of a corpus: what a run says, what is right, and how sure it is; computed batch by batch.

The rows of texts have the outputs of `regard evaluate`, the log-probabilities of `regard score` and the sentence scores
of sacrebleu; those of other tasks have the answers of `regard predict`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from regard.data.corpus import Pair
from regard.evaluation.confidence import FILE, Confidence
from regard.evaluation.judged import check_examples, read_examples
from regard.evaluation.likelihood import likelihoods
from regard.evaluation.perplexity import text_likelihoods
from regard.evaluation.texts import read_aligned
from regard.foundation.errors import RegardError, UsageError
from regard.search import Hypothesis, Search
from regard.tasks.loaded import LoadedRun
from regard.tasks.outputs.tags import TagsOutput
from regard.tasks.results import Label, Number

BATCH = 32
"""Examples per batch: a batch of sentences takes about a second on one core."""

ConfidenceKind = Literal["calibrated", "token probability"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One example of a corpus; fields that do not apply are None."""

    number: int
    """Its place in the corpus, counted from 0."""
    source: str
    reference: str
    """A text, a label, tags with spaces between them, or a number."""
    output: str | None
    """The best output, as `regard translate` or `regard predict` writes it, without probabilities."""
    error: str | None = None
    """Why there is no output, in a sentence."""

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class TextRow(Row):
    """An example of a run that generates text."""

    chrf: float | None = None
    bleu: float | None = None
    """Of the sentence, with smoothing and effective order as in sacrebleu."""
    source_tokens: int | None = None
    """Without special tokens; None if the source is not a text."""
    reference_tokens: int | None = None
    output_tokens: int | None = None
    confidence: float | None = None
    confidence_kind: ConfidenceKind = "token probability"
    """`calibrated`: the probability that the output is good (`regard calibrate`); `token probability`: the geometric
    mean of the probabilities of its tokens."""
    output_log_prob: float | None = None
    """Per token, the end symbol included, in nats."""
    reference_log_prob: float | None = None
    score: float | None = None
    """The score that search ranks by."""


@dataclass(frozen=True, kw_only=True)
class AnswerRow(Row):
    """An example of a run that predicts a label, tags or a number."""

    right: bool | None = None
    """Whether the answer is the reference; of tags, whether all are. None for numbers."""
    probability: float | None = None
    """Of the label; of tags the lowest."""
    reference_probability: float | None = None
    """Of the right label."""
    words: int | None = None
    words_right: int | None = None
    """Of tags."""
    difference: float | None = None
    """Of a number: output minus reference."""


@dataclass(frozen=True, kw_only=True)
class DocumentRow(Row):
    """A text of a language model, which is its own reference."""

    tokens: int | None = None
    log_prob: float | None = None
    """Per token, the end symbol included, in nats."""


def read_corpus(run: LoadedRun, paths: Sequence[Path]) -> list[Pair]:
    """Read sources and references: two files, line by line, or one or more in the format of the run's training data."""
    if not paths:
        raise UsageError("There is no corpus to read. Name a file of sources and one of references.")
    if len(paths) == 2 and not run.output.any_text:
        pairs = [Pair(source, target) for source, target in zip(*read_aligned(*paths), strict=True)]
        return check_examples(run.task, pairs, paths[0])
    return read_examples(run.task, paths)


def corpus_rows(
    run: LoadedRun,
    pairs: Sequence[Pair],
    *,
    directory: Path | None = None,
    beam: int | None = None,
    batch: int = BATCH,
) -> Iterator[list[Row]]:
    """Yield the rows of a corpus, a batch at a time, in order; rows do not depend on batches.

    Stop iterating to cancel; an example that the run refuses has an `error` in its row.

    Args:
        run: A run that generates text, predicts a label, tags or a number, or is a language model.
        pairs: Sources and references; of a language model the sources are the texts.
        directory: The run's directory, for its calibrated confidence.
        beam: Width of the beam; by default that of the run.
        batch: Examples per batch.
    """
    if batch < 1:
        raise UsageError(f"`batch` is {batch}. It must be at least 1.")
    kind = run.config.task.output
    if beam is not None and not (run.writes_text and kind != "document"):
        raise UsageError(f"This run does not search for outputs ({run.config.task.arrow}). Leave out `beam`.")
    if kind == "masked-words":
        raise UsageError("A corpus of masked words has no table. Use regard evaluate.")
    sure = Confidence.load(directory) if directory is not None and (directory / FILE).exists() else None
    for start in range(0, len(pairs), batch):
        yield _rows_of(run, pairs[start : start + batch], start, sure, beam)


def _rows_of(run: LoadedRun, pairs: Sequence[Pair], start: int, sure: Confidence | None, beam: int | None) -> list[Row]:
    """Return the rows of a batch; if the run refuses an example, those of the others."""
    try:
        if run.config.task.output == "document":
            return _document_rows(run, pairs, start)
        if run.writes_text:
            return _text_rows(run, pairs, start, sure, beam)
        return _answer_rows(run, pairs, start)
    except RegardError as error:
        if len(pairs) == 1:
            kind = DocumentRow if run.config.task.output == "document" else TextRow if run.writes_text else AnswerRow
            [pair] = pairs
            return [kind(number=start, source=pair.source, reference=pair.target, output=None, error=str(error))]
        return [row for place, pair in enumerate(pairs) for row in _rows_of(run, [pair], start + place, sure, beam)]


def _text_rows(
    run: LoadedRun, pairs: Sequence[Pair], start: int, sure: Confidence | None, beam: int | None
) -> list[Row]:
    """Return the rows of a run that generates text."""
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    best = [found[0] if found else None for found in run.hypotheses(sources, Search(split=None), beam=beam)]
    of_text = run.translates_text
    wanted = likelihoods(run, sources, references, cut=True) if of_text else [None] * len(pairs)
    counts = [len(ids) for ids in run.input.encode(sources)] if of_text else [None] * len(pairs)
    reference_counts = [len(ids) for ids in run.output.targets(list(pairs))]
    confidences = _confidences(run, sources, best, sure)
    rows: list[Row] = []
    for place, (pair, hypothesis, likelihood) in enumerate(zip(pairs, best, wanted, strict=True)):
        output = "" if hypothesis is None else " ".join(hypothesis.text.splitlines())
        row = TextRow(
            number=start + place,
            source=pair.source,
            reference=pair.target,
            output=output,
            chrf=_sentence_metrics()[0].sentence_score(output, [pair.target]).score,
            bleu=_sentence_metrics()[1].sentence_score(output, [pair.target]).score,
            source_tokens=counts[place],
            reference_tokens=reference_counts[place],
            output_tokens=0 if hypothesis is None else len(hypothesis.tokens),
            confidence=confidences[place],
            confidence_kind="token probability" if sure is None else "calibrated",
            reference_log_prob=None if likelihood is None else likelihood.log_prob / len(likelihood.log_probs),
        )
        if hypothesis is not None and hypothesis.log_probs:
            row = replace(row, output_log_prob=_mean(hypothesis.log_probs), score=hypothesis.score)
        rows.append(row)
    return rows


def _confidences(
    run: LoadedRun, sources: Sequence[str], best: Sequence[Hypothesis | None], sure: Confidence | None
) -> list[float | None]:
    """Return the confidence in each output; None where there is none."""
    given = [(source, hypothesis) for source, hypothesis in zip(sources, best, strict=True) if hypothesis is not None]
    if sure is None:
        found = iter([hypothesis.confidence for _, hypothesis in given])
    else:
        ratings = sure.rate(run, [source for source, _ in given], [hypothesis for _, hypothesis in given])
        found = iter([rating.confidence for rating in ratings])
    return [None if hypothesis is None else next(found) for hypothesis in best]


@cache
def _sentence_metrics() -> tuple[Any, Any]:
    """Return chrF and BLEU of sentences."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(), BLEU(effective_order=True)


def _answer_rows(run: LoadedRun, pairs: Sequence[Pair], start: int) -> list[Row]:
    """Return the rows of a run that predicts."""
    sources = [pair.source for pair in pairs]
    if isinstance(run.output, TagsOutput):
        return _tag_rows(run, run.output, pairs, start)
    rows: list[Row] = []
    for place, (pair, answer) in enumerate(zip(pairs, run.predict(sources), strict=True)):
        gold = pair.target.strip()
        row = AnswerRow(number=start + place, source=pair.source, reference=gold, output=None)
        if isinstance(answer, Label):
            chances = answer.probabilities
            row = replace(row, output=answer.label, right=answer.label == gold, probability=answer.probability)
            row = replace(row, reference_probability=chances.get(gold))
        elif isinstance(answer, Number):
            row = replace(row, output=answer.line, difference=answer.value - float(gold))
        rows.append(row)
    return rows


def _tag_rows(run: LoadedRun, output: TagsOutput, pairs: Sequence[Pair], start: int) -> list[Row]:
    """Return the rows of a tagger."""
    rows: list[Row] = []
    found = output.likeliest(run.model, [pair.source.split() for pair in pairs])
    for place, (pair, tags) in enumerate(zip(pairs, found, strict=True)):
        gold = pair.target.split()
        right = sum(tag == true for (tag, _), true in zip(tags, gold, strict=True))
        rows.append(
            AnswerRow(
                number=start + place,
                source=pair.source,
                reference=" ".join(gold),
                output=" ".join(tag for tag, _ in tags),
                right=right == len(gold),
                probability=min((chance for _, chance in tags), default=None),
                words=len(gold),
                words_right=right,
            )
        )
    return rows


def _document_rows(run: LoadedRun, pairs: Sequence[Pair], start: int) -> list[Row]:
    """Return the rows of a language model."""
    found = text_likelihoods(run, [pair.source for pair in pairs])
    return [
        DocumentRow(
            number=start + place,
            source=pair.source,
            reference=pair.source,
            output=None,
            tokens=len(likelihood.log_probs),
            log_prob=likelihood.log_prob / max(1, len(likelihood.log_probs)),
        )
        for place, (pair, likelihood) in enumerate(zip(pairs, found, strict=True))
    ]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / max(1, len(values))
