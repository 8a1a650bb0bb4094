"""Sections that are selected by their `kind`: the built-in ones, and those that extensions add.

Use a registry as an annotation: `encoder: Annotated[EncoderSettings, ENCODERS]`.
"""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from regard.config.section import Section

S = TypeVar("S", bound=Section)


class Kinds(Generic[S]):
    """The alternative sections for one setting, by kind."""

    def __init__(self, *sections: type[S]) -> None:
        self._sections: dict[str, type[S]] = {kind_of(section): section for section in sections}
        self._plugins: dict[str, str] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._sections)

    def __getitem__(self, kind: str) -> type[S]:
        return self._sections[kind]

    def items(self) -> dict[str, type[S]]:
        """Return every section by its kind."""
        return dict(self._sections)

    def add(self, section: type[S], plugin: str) -> None:
        """Add a section that comes from an extension module; configurations must be rebuilt afterwards."""
        kind = kind_of(section)
        if kind in self._sections and self._plugins.get(kind) != plugin:
            owner = self._plugins.get(kind, "Regard itself")
            raise ValueError(f"the kind {kind!r} is taken by {owner}. Choose another")
        self._sections[kind] = section
        self._plugins[kind] = plugin

    def plugin_of(self, kind: str | None) -> str | None:
        """Return the extension module that a kind comes from; `None` for a built-in one."""
        return self._plugins.get(kind) if kind else None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a section of one of the kinds."""
        choices = {kind: handler.generate_schema(section) for kind, section in self._sections.items()}
        return core_schema.tagged_union_schema(choices, discriminator="kind")


def kind_of(section: type[Section]) -> str:
    """Return the `kind` of a section."""
    return str(section.model_fields["kind"].default)
