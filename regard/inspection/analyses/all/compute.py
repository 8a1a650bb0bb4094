"""All that can be said about one answer of a run of any task: every analysis that applies, in one result."""

from collections.abc import Callable
from pathlib import Path

from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.inspection.analyses.align.compute import align
from regard.inspection.analyses.all.result import Report
from regard.inspection.analyses.attention.compute import attention
from regard.inspection.analyses.attribute.reasons import explain_words
from regard.inspection.analyses.contributions.compute import contributions
from regard.inspection.analyses.heads.compute import heads
from regard.inspection.analyses.identify.compute import identify
from regard.inspection.analyses.identify.identification import identify_corpus
from regard.inspection.analyses.lens.compute import lens
from regard.inspection.analyses.patch.compute import patch
from regard.inspection.analyses.probe.compute import probe
from regard.inspection.corpus import read_texts
from regard.inspection.opening import REMEDY, answering, opened, reading_text, translating
from regard.inspection.result import Result
from regard.tasks.loaded import LoadedRun
from regard.tasks.trace import Trace

SENTENCES = 1000
"""Most sentences of a corpus that a report reads."""

PRUNE = "It makes another model, so it is no part of a report: regard inspect prune RUN --keep N."

NO_CORPUS = "It asks a corpus, not a sentence: give one by --corpus (CoNLL-U)."

NO_CORRUPTED = "It compares two sources: give the other by --corrupted."


def report(
    run: Path | str,
    source: str,
    target: str | None = None,
    *,
    corrupted: str | None = None,
    corpus: Path | str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Every analysis of what a run says of one source that applies to it, with a reason for each that does not.

    `corrupted` is a second source, for patching; `corpus` (CoNLL-U) is for what is asked of many sentences.
    """
    if corpus is not None and not Path(corpus).is_file():
        raise UsageError(f"{corpus} is not a file: give sentences in CoNLL-U.")
    subject = opened(run)
    trace = subject.trace(source, target)
    said = _said(subject, trace)

    def whole() -> LoadedRun:
        return translating(subject, "It is asked")

    def words() -> Result:
        reading_text(subject, "Words of a text are blanked in turn")
        return explain_words(trace, progress=progress)

    analyses: dict[str, Callable[[], Result]] = {
        "attention": lambda: attention(trace),
        "contributions": lambda: (whole(), contributions(trace))[1],
        "attribute": words,
        "lens": lambda: lens(trace),
        "align": lambda: align(whole(), [source], [said], run=run, progress=progress),
        "identify": lambda: identify(trace),
    }
    left_out = {"prune": PRUNE}
    if corrupted is None:
        left_out["patch"] = NO_CORRUPTED
    else:
        analyses["patch"] = lambda: patch(
            trace, answering(subject, "Patching compares the answers").trace(corrupted), progress=progress
        )
    if corpus is None:
        left_out |= {"heads": NO_CORPUS, "probe": NO_CORPUS}
    else:
        analyses["heads"] = lambda: heads(run, corpus, most=SENTENCES, progress=progress)
        analyses["probe"] = lambda: probe(
            reading_text(subject, "Probes ask what layers know of the words of a text"),
            corpus,
            most=SENTENCES,
            progress=progress,
        )
        analyses["identify-corpus"] = lambda: identify_corpus(
            subject, read_texts(Path(corpus), SENTENCES), progress=progress
        )
    results: dict[str, Result] = {}
    for done, (name, analyse) in enumerate(analyses.items()):
        if progress:
            progress("analyses", done, len(analyses))
        try:
            results[name] = analyse()
        except RegardError as error:
            why = str(error)
            left_out[name] = f"{why.removesuffix(REMEDY)}." if why.endswith(REMEDY) else why
    if progress:
        progress("analyses", len(analyses), len(analyses))
    what = {"translate": "translation", "caption": "caption", "transcribe": "transcript", "generate": "text"}.get(
        subject.config.task.verb, "answer"
    )
    return Report(str(run), subject.config.cell, what, source, said, results, left_out)


def _said(subject: LoadedRun, trace: Trace) -> str:
    """What the run said, as people write it; nothing of a language model, whose text is what it was given."""
    if not subject.writes_text:
        return " ".join(trace.target.word_texts)
    return subject.target_tokenizer.decode(trace.target.ids) if len(trace.source) else ""
