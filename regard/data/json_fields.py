"""Fields of JSON objects, checked; messages name the place of the object."""

import json
from collections.abc import Callable
from typing import Any

from regard.foundation.errors import RegardError


def parse_json(line: str, place: str, make: Callable[[list[tuple[str, Any]]], object] | None = None) -> object:
    """Return the JSON value of a line; `make` returns an object of (name, value) pairs, by default a dictionary."""
    try:
        return json.loads(line, object_pairs_hook=make)
    except (ValueError, RecursionError) as error:
        raise RegardError(f"{place} is not valid JSON ({error}). Write one JSON object on each line.") from error


def field_of(record: object, name: str, place: str) -> object:
    """Return a field of a JSON object."""
    if not isinstance(record, dict):
        raise RegardError(f"{place} is {json_sort(record)}, but every line must be a JSON object.")
    if name not in record:
        known = ", ".join(str(key) for key in list(record)[:10]) or "none"
        raise RegardError(
            f"{place} has no field `{name}` (its fields: {known}). Set source_field and target_field to two of these."
        )
    return record[name]


def text_of(value: object, name: str, place: str) -> str:
    """Return a field that must be a string."""
    if not isinstance(value, str):
        raise RegardError(f"{place}: field `{name}` is {json_sort(value)}, but it must be a string.")
    return value


def references_of(value: object, name: str, place: str) -> list[str]:
    """Return the references of an example: a text, or a list with at least one text, none of which is empty."""
    found: list[str] = []
    references = value if isinstance(value, list) else [value]
    if not references:
        raise RegardError(f"{place}: field `{name}` is an empty list. Write at least one reference, or leave it out.")
    for number, reference in enumerate(references, start=1):
        which = f"reference {number} in field `{name}`" if isinstance(value, list) else f"field `{name}`"
        if not isinstance(reference, str):
            raise RegardError(f"{place}: {which} is {json_sort(reference)}, but it must be a string.")
        if not reference.strip():
            raise RegardError(f"{place}: {which} is empty. Write a text, or leave it out.")
        found.append(reference)
    return found


def label_text_of(value: object, name: str, place: str) -> str:
    """Return a label or a target: a string, or a number or a boolean as JSON writes it, `1` or `2.5` or `true`."""
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float):  # a boolean is an int
        raise RegardError(f"{place}: field `{name}` is {json_sort(value)}, but it must be a string or a number.")
    return json.dumps(value)


def json_sort(value: object) -> str:
    """Return the name of a value's JSON type, with an article."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
