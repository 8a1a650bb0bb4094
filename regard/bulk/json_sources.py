"""From a line of JSON to the source of a run: a text in one of its fields, or a record."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.foundation.errors import RegardError
from regard.text.records import RecordForm, format_record, record_form, record_problem

if TYPE_CHECKING:
    from regard.config.run import RunConfig

FIELD = "source"
"""Default name of the field of a text."""


class JsonSources(ABC):
    """What a run reads from a line of JSON."""

    @abstractmethod
    def source_of(self, line: str, value: Any, field: str | None) -> str:
        """Return the source of a line with this value, or of the named field of it; raises if there is none."""


class TextSources(JsonSources):
    """A source is a text: a field of an object."""

    def source_of(self, line: str, value: Any, field: str | None) -> str:
        """Return the text of a field, by default `source`."""
        name = field or FIELD
        text = _field_of(value, name)
        if not isinstance(text, str):
            raise RegardError(f"The field `{name}` is not a text.")
        return text


@dataclass(frozen=True)
class RecordSources(JsonSources):
    """A source is a record: the whole line, as `regard translate` reads it, or a field of an object."""

    form: RecordForm

    def source_of(self, line: str, value: Any, field: str | None) -> str:
        """Return the JSON text of a record; in a field it may also be a string."""
        source = line
        if field is not None:
            record = _field_of(value, field)
            source = record if isinstance(record, str) else format_record(record)
        if problem := record_problem(source, self.form):
            raise RegardError(f"It {problem}" if field is None else f"The field `{field}` {problem}")
        return source


def sources_for(config: "RunConfig") -> JsonSources:
    """Return what a run reads from a line of JSON."""
    return RecordSources(record_form(config.data.train)) if config.task.input_kind().record else TextSources()


def _field_of(value: Any, name: str) -> Any:
    if not isinstance(value, Mapping):
        raise RegardError("It is not a JSON object.")
    if name not in value:
        known = ", ".join(list(value)[:10]) or "none"
        raise RegardError(f"It has no field `{name}` (its fields: {known}). Name one with --field.")
    return value[name]
