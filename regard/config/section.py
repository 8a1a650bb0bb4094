"""Base class of all configuration sections: typed, frozen, and strict about unknown keys."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """One section of a configuration file; each field is documented by the docstring below it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
