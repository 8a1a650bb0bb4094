"""The run that an analysis looks into, by the front door of its shape."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.predictor import Predictor
    from regard.translator import Translator


def opened(run: Path, *, pictures: bool = False) -> "Translator | Predictor":
    """A run of any shape: one that writes translations, one that writes texts, or one that only reads.

    One that looks at pictures is refused, unless the analysis can do with `pictures`.
    """
    from regard.run import Run

    shape = Run.open(run).config.shape
    if not shape.decoder:
        from regard.predictor import Predictor

        return Predictor.load(run)
    if not shape.encoder:
        from regard.writer import Writer

        return Writer.load(run)
    if shape.pictures and pictures:
        from regard.captioner import Captioner

        return Captioner.load(run)
    from regard.translator import Translator

    return Translator.load(run)


def translating(run: Path, what: str) -> "Translator":
    """A run that translates, or why `what` cannot be asked of it."""
    from regard.errors import UsageError
    from regard.run import Run
    from regard.translator import Translator

    shape = Run.open(run).config.shape
    if not (shape.encoder and shape.decoder):
        raise UsageError(
            f"{what} of a source and a target, and {run} has not both ({shape.arrow}): regard inspect attention, "
            "attribute and probe look into it."
        )
    return Translator.load(run)
