"""Which form the examples of each shape have."""

from regard.config.run import RunConfig
from regard.config.shape import Acceptor, Captions, LanguageModel, Masked, Questions, Transducer, Translation
from regard.data.asked import Asked
from regard.data.form import Form, Parallel
from regard.data.pictured import Captioned
from regard.data.reading import Labelled, Numbered, Tagged
from regard.data.writing import Documents, Passages

FORMS: dict[type, type[Form]] = {
    Translation: Parallel,
    Acceptor: Labelled,
    Transducer: Tagged,
    LanguageModel: Documents,
    Captions: Captioned,
    Questions: Asked,
    Masked: Passages,
}
"""By shape; an acceptor that answers with numbers has another."""


def form_of(config: RunConfig) -> type[Form]:
    """The form of a run's examples."""
    if isinstance(config.shape, Acceptor) and config.shape.output == "number":
        return Numbered
    return FORMS[type(config.shape)]
