"""The front door of a trained run that writes no text: raw text in, labels, numbers or tags out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, overload

from torch import nn

from regard.shapes.shape import Answer, Shape
from regard.translator import check_overrides

Texts = list[str] | tuple[str, ...]


class Predictor:
    """A model with all that its shape knows of text; a source of two texts has a tab between them."""

    def __init__(self, shape: Shape[Any], model: nn.Module) -> None:
        self.shape, self.model = shape, model

    @classmethod
    def load(cls, directory: Path | str, overrides: Sequence[str] = ()) -> Self:
        """The predictor of a run directory, on the best device at hand; overrides as on the command line."""
        from regard.config.loading import load
        from regard.data.forms import form_of
        from regard.device import choose_device
        from regard.run import Run
        from regard.shapes.choice import shape_of

        run = Run.open(directory)
        check_overrides(overrides)
        config = load(run.directory / "config.yaml", overrides)
        form = form_of(config).load(config, run.tokenizers)
        shape = shape_of(config, form)
        model = shape.build()
        run.load_weights(model, {name: known.fingerprint for name, known in form.vocabularies.items()})
        return cls(shape, model.to(choose_device(config.training.device)).eval())

    @overload
    def predict(self, text: str) -> Answer: ...

    @overload
    def predict(self, text: Texts) -> list[Answer]: ...

    def predict(self, text: str | Texts) -> Answer | list[Answer]:
        """What the model says of a text, or of each of a list of texts; their order and company do not matter."""
        if isinstance(text, str):
            return self.shape.answer(self.model, [text])[0]
        return self.shape.answer(self.model, list(text))
