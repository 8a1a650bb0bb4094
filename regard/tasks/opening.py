"""Opening the run of any task with the object that uses it."""

from collections.abc import Sequence

from regard.runs.run import Run
from regard.tasks.captioner import Captioner
from regard.tasks.predictor import Predictor
from regard.tasks.translator import Translator
from regard.tasks.writer import Writer

Opened = Translator | Predictor
"""What uses a run: it writes text (translations, captions, continuations), or answers with labels, numbers, tags."""


def open_task(run: Run, overrides: Sequence[str] = ()) -> Opened:
    """Return the object that uses a run, whatever its task is."""
    shape = run.config.shape
    if not shape.decoder:
        return Predictor.load(run, overrides)
    if not shape.encoder:
        return Writer.load(run, overrides)
    return (Captioner if shape.pictures else Translator).load(run, overrides)
