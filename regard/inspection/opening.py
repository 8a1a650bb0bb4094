"""The run that an analysis looks into, refused in a sentence where the analysis does not apply."""

from pathlib import Path

from regard.foundation.errors import UsageError
from regard.runs.run import Run
from regard.tasks.loaded import LoadedRun, load_run

REMEDY = ": regard inspect all shows what applies to it."
"""How a refusal ends, except in a report of all analyses."""


def opened(run: Path | str) -> LoadedRun:
    """A run of any task."""
    return load_run(Run.open(run))


def translating(subject: LoadedRun, what: str) -> LoadedRun:
    """A run that translates text, or why `what` cannot be asked of it."""
    if subject.translates_text:
        return subject
    arrow = subject.config.task.arrow
    raise UsageError(f"{what} of a source text and its translation, and this run has not both ({arrow}){REMEDY}")


def answering(subject: LoadedRun, what: str) -> LoadedRun:
    """A run that answers a source text, or why `what` cannot be asked of it."""
    if not subject.input.is_text or not subject.config.task.input_kind().encoder:
        raise UsageError(f"{what} to two source texts, and this run has none ({subject.config.task.arrow}){REMEDY}")
    return subject


def reading_text(subject: LoadedRun, what: str) -> LoadedRun:
    """A run whose source is text, or why `what` cannot be asked of it."""
    if not subject.input.is_text:
        reads = subject.config.task.input_kind().reads
        raise UsageError(f"{what}, and this run reads {reads} ({subject.config.task.arrow}){REMEDY}")
    return subject
