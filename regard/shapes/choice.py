"""Which shape a run has."""

from typing import Any

from regard.config.run import RunConfig
from regard.data.form import Form
from regard.shapes.shape import Shape


def shape_of(config: RunConfig, form: Form) -> Shape[Any]:
    """The shape of a run, with what it learnt from its data."""
    match config.shape.kind:
        case "translation":
            from regard.shapes.translation import Translation

            return Translation(config, form)
