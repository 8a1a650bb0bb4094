"""Which form the examples of each shape have."""

from regard.config.run import RunConfig
from regard.config.shape import Acceptor, LanguageModel, Masked, Transducer, Translation
from regard.data.form import Form, Parallel
from regard.data.reading import Labelled, Numbered, Tagged
from regard.data.writing import Documents, Passages


def form_of(config: RunConfig) -> type[Form]:
    """The form of a run's examples."""
    match config.shape:
        case Translation():
            return Parallel
        case Acceptor(output="classes"):
            return Labelled
        case Acceptor():
            return Numbered
        case Transducer():
            return Tagged
        case LanguageModel():
            return Documents
        case Masked():
            return Passages
