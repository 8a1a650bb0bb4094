"""Which form the examples of each shape have."""

from regard.config.run import RunConfig
from regard.data.form import Form, Parallel


def form_of(config: RunConfig) -> type[Form]:
    """The form of a run's examples."""
    match config.shape.kind:
        case "translation":
            return Parallel
