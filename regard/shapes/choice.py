"""Which shape a run has."""

from typing import Any

from regard.config import shape
from regard.config.run import RunConfig
from regard.data.form import Form
from regard.shapes.acceptor import Classification, Estimation
from regard.shapes.captions import Captioning
from regard.shapes.language_model import LanguageModel
from regard.shapes.masked import Masking
from regard.shapes.questions import Answering
from regard.shapes.shape import Shape
from regard.shapes.transducer import Tagging
from regard.shapes.translation import Translation

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
