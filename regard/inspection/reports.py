"""All that can be said about one answer of a run of any task: every analysis that applies, in one result."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.inspection.alignments import Alignments, align
from regard.inspection.identifiability import identify
from regard.inspection.identification import identify_corpus, read_texts
from regard.inspection.layer_lens import lens
from regard.inspection.maps import attention
from regard.inspection.opening import REMEDY, answering, opened, reading_text, translating
from regard.inspection.page import Panel, Part, render_parts
from regard.inspection.patching import patch
from regard.inspection.probing import probe
from regard.inspection.reasons import explain_words
from regard.inspection.result import Result
from regard.inspection.roles import heads
from regard.inspection.shares import contributions
from regard.tasks.loaded import LoadedRun
from regard.tasks.trace import Trace
from regard.text.joined import TAB

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SENTENCES = 1000
"""Most sentences of a corpus that a report reads."""

PRUNE = "It makes another model, so it is no part of a report: regard inspect prune RUN --keep N."
NO_CORPUS = "It asks a corpus, not a sentence: give one by --corpus (CoNLL-U)."
NO_CORRUPTED = "It compares two sources: give the other by --corrupted."


@dataclass(frozen=True)
class Report(Result):
    """The results that apply to one answer, and why the others do not."""

    run: str
    model: str
    """The cell of the grid that it is."""
    what: str
    """What was said: a translation, a text, an answer."""
    source: str
    target: str
    results: dict[str, Result]
    """By the name of the command."""
    left_out: dict[str, str]
    """Reasons, by the name of the command."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"Inside one {self.what}"

    def to_json(self) -> dict[str, Any]:
        """Plain data: that of every analysis, by its name."""
        about = {"run": self.run, "model": self.model, "source": self.source, "target": self.target}
        found = {name: result.to_json() for name, result in self.results.items()}
        return {**about, "results": found, "left_out": self.left_out}

    def __str__(self) -> str:
        """All tables, one below the other."""
        parts = [f"{self._read}\n→ {self.target}" if self.target else self._read]
        parts += [f"── {name}: {result.title} ──\n\n{_told(result)}" for name, result in self.results.items()]
        if self.left_out:
            parts.append("\n".join(["── left out ──", "", *(f"{name}: {why}" for name, why in self.left_out.items())]))
        return "\n\n".join(parts)

    @property
    def _read(self) -> str:
        """What was read, on one line."""
        return " · ".join(self.source.split(TAB))

    def draw(self) -> "Figure":
        """Refused: a picture is of one analysis."""
        raise UsageError(
            "A report is no picture: write it as .html, .json or .txt, and draw single analyses, such as "
            "regard inspect attention RUN TEXT -o picture.png."
        )

    def panels(self) -> list[Panel]:
        """Those of all analyses."""
        return [panel for result in self.results.values() for panel in result.panels()]

    def page(self) -> str:
        """A page with a table of contents."""
        parts = [Part(name, result.title, result.panels()) for name, result in self.results.items()]
        lead = [f"{self._read} → {self.target}" if self.target else self._read]
        return render_parts(self.title, lead, parts, self.left_out, run=f"{self.run}: {self.model}")


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


def _told(result: Result) -> str:
    """Return a result as text; links of an alignment with what they rest on."""
    return f"{result}\n\n{result.summary}" if isinstance(result, Alignments) else str(result)


def _said(subject: LoadedRun, trace: Trace) -> str:
    """What the run said, as people write it; nothing of a language model, whose text is what it was given."""
    if not subject.writes_text:
        return " ".join(trace.target.word_texts)
    return subject.target_tokenizer.decode(trace.target.ids) if len(trace.source) else ""
