"""Collects every analysis that applies to one answer of a run."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.inspection.analyses.all.result import Report
from regard.inspection.registry import (
    EXTENSIONS,
    Analysis,
    InspectedRun,
    ReportInput,
    TracedInput,
    every_analysis,
    open_run,
)
from regard.inspection.result import Result
from regard.tasks.loaded import LoadedRun
from regard.tasks.trace import Trace

SENTENCES = 1000
"""How many sentences of a corpus a report reads at most."""

ANSWERS = {"translate": "translation", "caption": "caption", "transcribe": "transcript", "generate": "text"}
"""What an answer is called, by the verb that a run is used with."""


def report(
    run: Path | str,
    source: str,
    target: str | None = None,
    *,
    corrupted: str | None = None,
    corpus: Path | str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Return every analysis that applies to a run's answer to one source, and the reason for each that does not.

    `corrupted` is a second source, for patching; `corpus` (CoNLL-U) is for analyses of many sentences.
    """
    if corpus is not None and not Path(corpus).is_file():
        raise UsageError(f"{corpus} is not a file: give sentences in CoNLL-U.")
    subject = open_run(run)
    trace = subject.trace(source, target)
    answer = _answer(subject, trace)
    results: dict[str, Result] = {}
    left_out: dict[str, str] = {}
    parts: list[tuple[str, Callable[[], Result]]] = []
    for analysis in every_analysis():
        given = ReportInput(
            run=InspectedRun(run, analysis, subject),
            trace=trace,
            source=source,
            target=answer,
            asked=target,
            corrupted=corrupted,
            corpus=None if corpus is None else Path(corpus),
            sentences=SENTENCES,
            progress=progress,
        )
        if analysis.left_out:
            left_out[analysis.name] = analysis.left_out
        elif reason := analysis.applies(subject) or _without_options(analysis):
            left_out[analysis.name] = reason
        else:
            parts += _parts(analysis, given)
    for done, (name, compute) in enumerate(parts):
        if progress:
            progress("analyses", done, len(parts))
        try:
            results[name] = compute()
        except RegardError as error:
            left_out[name] = str(error)
        except Exception as error:
            if name not in EXTENSIONS:
                raise
            left_out[name] = (
                f"The extension failed ({type(error).__name__}: {str(error)[:200]}): regard inspect {name} shows where."
            )
    if progress:
        progress("analyses", len(parts), len(parts))
    what = ANSWERS.get(subject.config.task.verb, "answer")
    return Report(str(run), subject.config.cell, what, source, answer, results, left_out)


def _parts(analysis: Analysis, given: ReportInput) -> Iterator[tuple[str, Callable[[], Result]]]:
    """Yield the parts that an analysis has in a report, by name."""
    if analysis.report is not None:
        yield analysis.name, partial(analysis.report, given)
    elif analysis.needs != "run":
        traced = TracedInput(given.run, given.source, given.asked)
        yield analysis.name, partial(analysis.explain, given.trace, traced=traced, progress=given.progress)
    if analysis.inspect_corpus is not None and given.corpus is not None:
        limits = [parameter.default for parameter in analysis.corpus_parameters if parameter.name == "most"]
        limit = {"most": min(given.sentences, limits[0])} if limits else {}
        inspect = partial(analysis.call, analysis.inspect_corpus, given.run)
        of_corpus = partial(inspect, progress=given.progress, corpus=given.corpus, **limit)
        yield f"{analysis.name}-corpus", of_corpus


def _without_options(analysis: Analysis) -> str | None:
    """Return why an analysis cannot be called without options, or None if it can."""
    required = [parameter.flag for parameter in analysis.parameters if parameter.required]
    if analysis.needs == "run" or not required:
        return None
    return f"It needs options ({', '.join(required)}): regard inspect {analysis.name}."


def _answer(subject: LoadedRun, trace: Trace) -> str:
    """Return what the run answered, as people write it; nothing for a language model, whose text is its input."""
    if not subject.writes_text:
        return " ".join(trace.target.word_texts)
    return subject.target_tokenizer.decode(trace.target.ids) if len(trace.source) else ""
