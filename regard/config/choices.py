"""Settings whose value names a component: the built-in names, and those that extensions add.

Names are listed here without importing torch; the components are registered where they are defined, such as
`regard.nn.scores.SCORES`. `regard.extensions` adds to both.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from regard.config import plugins


class Choices:
    """The names that a setting accepts; use it as `Annotated[str, SCORES]`."""

    def __init__(self, *builtin: str) -> None:
        self._builtin = builtin
        self._added: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        return iter((*self._builtin, *self._added))

    def __contains__(self, name: object) -> bool:
        return name in self._builtin or name in self._added

    def add(self, name: str, plugin: str) -> None:
        """Add a name that comes from an extension module."""
        if name in self._builtin or self._added.get(name, plugin) != plugin:
            owner = self._added.get(name, "Regard itself")
            raise ValueError(f"the name {name!r} is taken by {owner}. Choose another")
        self._added[name] = plugin

    def plugin_of(self, name: str | None) -> str | None:
        """Return the extension module that a name comes from; `None` for a built-in one."""
        return self._added.get(name) if name else None

    def _check(self, name: str) -> str:
        if name not in self:
            plugins.load_installed()
        if name not in self:
            raise PydanticCustomError("literal_error", "must be one of {names}", {"names": ", ".join(self) or "none"})
        return name

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a string that is one of the names."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the names as an enumeration."""
        return {"type": "string", "enum": list(self)}


TRACKERS = Choices("tensorboard", "wandb", "mlflow")
"""Experiment trackers."""
SCORES = Choices("additive", "dot", "scaled-dot", "bilinear")
"""Score functions of attention."""
ADDED_POSITIONS = Choices("none", "sinusoidal", "learned")
"""Positions that are added to embeddings."""
POSITIONS = Choices("none", "sinusoidal", "learned", "relative", "bias", "rotary", "alibi")
"""All kinds of positions."""
READERS = Choices()
"""Corpus formats that extensions add."""
CELLS = Choices("gru", "lstm", "elman")
"""Recurrent cells."""
