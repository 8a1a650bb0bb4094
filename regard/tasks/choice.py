"""Which shape a run has."""

from typing import Any

from regard.config import shape
from regard.config.run import RunConfig
from regard.data.form import Form
from regard.data.forms import form_of
from regard.runs.run import Run
from regard.tasks.acceptor import Classification, Estimation
from regard.tasks.captions import Captioning
from regard.tasks.language_model import LanguageModel
from regard.tasks.masked import Masking
from regard.tasks.questions import Answering
from regard.tasks.task import Shape
from regard.tasks.transducer import Tagging
from regard.tasks.translation import Translation

SHAPES: dict[type, type[Shape[Any]]] = {
    shape.Translation: Translation,
    shape.Acceptor: Classification,
    shape.Transducer: Tagging,
    shape.LanguageModel: LanguageModel,
    shape.Captions: Captioning,
    shape.Questions: Answering,
    shape.Masked: Masking,
}
"""By their sections; an acceptor that answers with numbers is another."""


def shape_of(config: RunConfig, form: Form) -> Shape[Any]:
    """The shape of a run, with what it learnt from its data."""
    if isinstance(config.shape, shape.Acceptor) and config.shape.output == "number":
        return Estimation(config, form)
    return SHAPES[type(config.shape)](config, form)


def task_of_run(run: Run, config: RunConfig) -> Shape[Any]:
    """The task of a trained run, with the vocabularies that it keeps."""
    return shape_of(config, form_of(config).load(config, run.tokenizers))
