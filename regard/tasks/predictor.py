"""The front door of a trained run that writes no text: raw text in, labels, numbers or tags out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, overload

from regard.config.run import RunConfig
from regard.data.batches import Frame
from regard.models import Model
from regard.models.reader import Reader
from regard.runs.run import Run
from regard.tasks.bad_inputs import answer_all
from regard.tasks.results import Nothing, Result
from regard.tasks.task import Shape
from regard.tasks.trace import Trace
from regard.tasks.translator import check_overrides
from regard.text.joined import check_parts
from regard.text.tokenizer import Tokenizer

Texts = list[str] | tuple[str, ...]


class Predictor:
    """A model with all that its shape knows of text; a source of two texts has a tab between them."""

    def __init__(self, shape: Shape[Any], model: Model | Reader) -> None:
        self.shape, self.model = shape, model

    @classmethod
    def load(cls, directory: "Path | str | Run", overrides: Sequence[str] = ()) -> Self:
        """The predictor of a run directory, on the best device at hand; overrides as on the command line."""
        from regard.data.forms import form_of
        from regard.foundation.device import choose_device
        from regard.tasks.choice import shape_of

        run = Run.open(directory)
        check_overrides(overrides)
        config = run.load_config(overrides)
        form = form_of(config).load(config, run.tokenizers)
        shape = shape_of(config, form)
        model = run.load_model(shape.build, {name: known.fingerprint for name, known in form.vocabularies.items()})
        return cls(shape, model.to(choose_device(config.training.device)).eval())

    @property
    def config(self) -> RunConfig:
        """The configuration of the run."""
        return self.shape.config

    @property
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of what is read."""
        return self.shape.form.source

    @property
    def frame(self) -> Frame:
        """The special tokens around what is read."""
        return self.shape.form.frame

    def fresh(self) -> Model | Reader:
        """A model of the same shape that has learned nothing."""
        made: Model | Reader = self.shape.build()
        return made

    def trace(self, source: str, target: str | None = None) -> Trace:
        """Watch the model answer a text, or ask it for another answer: every tap by its name."""
        check_parts(source, self.config.data.train.texts)
        return self.shape.trace(self.model, source, target)

    @overload
    def predict(self, text: str) -> Result: ...

    @overload
    def predict(self, text: Texts) -> list[Result]: ...

    def predict(self, text: str | Texts) -> Result | list[Result]:
        """What the model says of a text, or of each of a list of texts; their order and company do not matter.

        As on the command line, an empty text has an empty answer, and a source of more texts or fewer than the model
        reads is refused. Where texts of a list cannot be answered, `BadInputs` says which, and has the other answers.
        """
        if isinstance(text, str):
            self.check(text)
            return self.answer([text])[0]
        return answer_all(self.answer, text, self.check)

    def check(self, text: str) -> None:
        """Refuse a source of more texts or fewer than the model reads."""
        if text.strip():
            check_parts(text, self.config.data.train.texts)

    def answer(self, texts: Sequence[str]) -> list[Result]:
        """Answer texts that have been checked; an empty text has an empty answer."""
        asked = [text for text in texts if text.strip()]
        answers = iter(self.shape.answer(self.model, asked) if asked else ())
        return [next(answers) if text.strip() else Nothing(self.shape.result) for text in texts]
