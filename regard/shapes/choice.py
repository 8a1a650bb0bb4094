"""Which shape a run has."""

from typing import Any

from regard.config import shape
from regard.config.run import RunConfig
from regard.data.form import Form
from regard.shapes.acceptor import Classification, Estimation
from regard.shapes.language_model import LanguageModel
from regard.shapes.masked import Masking
from regard.shapes.shape import Shape
from regard.shapes.transducer import Tagging
from regard.shapes.translation import Translation


def shape_of(config: RunConfig, form: Form) -> Shape[Any]:
    """The shape of a run, with what it learnt from its data."""
    match config.shape:
        case shape.Translation():
            return Translation(config, form)
        case shape.Acceptor(output="classes"):
            return Classification(config, form)
        case shape.Acceptor():
            return Estimation(config, form)
        case shape.Transducer():
            return Tagging(config, form)
        case shape.LanguageModel():
            return LanguageModel(config, form)
        case shape.Masked():
            return Masking(config, form)
