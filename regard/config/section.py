"""The ground of every configuration section: typed, frozen, and strict about unknown keys."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """One section of a configuration file; each field carries its meaning as a docstring below it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
