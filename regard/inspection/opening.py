"""The run that an analysis looks into, by the front door of its shape."""

from pathlib import Path

from regard.foundation.errors import UsageError
from regard.runs.run import Run
from regard.tasks.captioner import Captioner
from regard.tasks.opening import open_task
from regard.tasks.predictor import Predictor
from regard.tasks.translator import Translator

REMEDY = ": regard inspect all shows what applies to it."
"""How a refusal ends, but in a report of all."""


def opened(run: Path | str) -> Translator | Predictor:
    """A run of any task: one that writes translations, texts or captions, or one that only reads."""
    return open_task(Run.open(run))


def translating(subject: Translator | Predictor, what: str) -> Translator:
    """A run that translates text, or why `what` cannot be asked of it."""
    shape = subject.config.shape
    if isinstance(subject, Translator) and shape.encoder and not shape.pictures:
        return subject
    raise UsageError(f"{what} of a source text and its translation, and this run has not both ({shape.arrow}){REMEDY}")


def answering(subject: Translator | Predictor, what: str) -> Translator | Predictor:
    """A run that answers a source text, or why `what` cannot be asked of it."""
    if isinstance(subject, Captioner) or not subject.config.shape.encoder:
        raise UsageError(f"{what} to two source texts, and this run has none ({subject.config.shape.arrow}){REMEDY}")
    return subject


def reading_text(subject: Translator | Predictor, what: str) -> Translator | Predictor:
    """A run whose source is text, or why `what` cannot be asked of it."""
    if isinstance(subject, Captioner):
        raise UsageError(f"{what}, and this run reads pictures ({subject.config.shape.arrow}){REMEDY}")
    return subject
