"""The schema of a configuration: names of settings, kinds of sections, and the type of each value."""

import ast
import difflib
import inspect
import itertools
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BeforeValidator, Tag
from pydantic.fields import FieldInfo

from regard.config.choices import Choices
from regard.config.document import Path
from regard.config.kinds import Kinds as Registry
from regard.config.run import RunConfig
from regard.config.section import Section

Kinds = dict[str, type[Section]]
"""Alternative sections for one setting, by the tag that pydantic puts into the path of an error."""


def kinds(field: FieldInfo | None) -> Kinds:
    """Return the sections that a field accepts: none for a plain value, several if a `kind` selects one."""
    if field is None:
        return {}
    registered = next((mark for mark in field.metadata if isinstance(mark, Registry)), None)
    return dict(registered.items()) if registered else _sections(field.annotation)


def _sections(annotation: Any) -> Kinds:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        kind = annotation.model_fields.get("kind")
        return {str(kind.default) if kind else annotation.__name__: annotation}
    if get_origin(annotation) is Annotated:
        inner, *marks = get_args(annotation)
        for mark in marks:
            if isinstance(mark, Registry):
                return dict(mark.items())
        tags = [mark.tag for mark in marks if isinstance(mark, Tag)]
        found = _sections(inner)
        return dict(zip(tags, found.values(), strict=True)) if tags else found
    if get_origin(annotation) in (Union, UnionType):
        return {tag: section for part in get_args(annotation) for tag, section in _sections(part).items()}
    return {}


def optional(field: FieldInfo) -> bool:
    """Return whether a field may be empty."""
    return NoneType in get_args(field.annotation)


def selected_section(choices: Kinds, values: Mapping[str, Any]) -> type[Section] | None:
    """Return the section that the values select, by `kind` or by the key of the data; `None` if they do not."""
    if len(choices) == 1:
        return next(iter(choices.values()))
    kind = values.get("kind")
    if isinstance(kind, str) and kind in choices:
        return choices[kind]
    return next((section for section in choices.values() if any(name in values for name in required(section))), None)


def required(section: type[Section]) -> list[str]:
    """Return the names of the required settings of a section."""
    return [name for name, field in section.model_fields.items() if field.is_required()]


def names(choices: Kinds) -> list[str]:
    """Return every name known to at least one of several sections."""
    return list(dict.fromkeys(name for section in choices.values() for name in section.model_fields))


def default_kinds(section: type[Section] = RunConfig) -> dict[str, Any]:
    """Return the default kinds, as a mapping like a file."""
    chosen: dict[str, Any] = {}
    for name, field in section.model_fields.items():
        choices = kinds(field)
        if len(choices) > 1 and isinstance(field.default, Section):
            chosen[name] = {"kind": field.default.model_dump()["kind"]}
        elif len(choices) == 1 and not optional(field) and (inner := default_kinds(*choices.values())):
            chosen[name] = inner
    return chosen


def paths(section: type[Section] = RunConfig, above: Path = ()) -> Iterator[Path]:
    """Yield the path of every setting."""
    for name, field in section.model_fields.items():
        yield (*above, name)
        for choice in kinds(field).values():
            yield from paths(choice, (*above, name))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a mistyped one probably means."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    wanted = name[:60].lower().replace("-", "_") if any("_" in known for known in by_lower) else name[:60].lower()
    matches = difflib.get_close_matches(wanted, by_lower, n=1, cutoff=0.6)
    return by_lower[matches[0]] if matches else None


def elsewhere(path: Path) -> Path | None:
    """Return the nearest setting of the same name in another section, or `None`."""

    def distance(other: Path) -> tuple[int, int]:
        shared = sum(1 for _ in _common(path, other))
        return -shared, len(other)

    return min((other for other in paths() if other[-1] == path[-1]), key=distance, default=None)


def _common(one: Path, other: Path) -> Iterator[str | int]:
    for left, right in zip(one, other, strict=False):
        if left != right:
            return
        yield left


def expected(field: FieldInfo, *, item: bool = False) -> str:
    """Return what a field (or an item of its list) must be, in words: `a whole number of at least 1`."""
    if item and get_origin(field.annotation) is list:
        return _expected(get_args(field.annotation)[0], ())
    return _expected(str, ()) if item else _expected(field.annotation, field.metadata)


def words_of(field: FieldInfo) -> list[str]:
    """Return the words that a field accepts, if it is an enumeration."""
    return [word for part in (field.annotation, *field.metadata) for word in literals(part)]


def literals(annotation: Any) -> list[str]:
    """Return the words that an annotation allows."""
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    if isinstance(annotation, Choices):
        return list(annotation)
    return [word for part in get_args(annotation) if get_origin(annotation) is not list for word in literals(part)]


def _expected(annotation: Any, marks: Iterable[Any]) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *more = get_args(annotation)
        constraints = [mark for item in more for mark in (item.metadata if isinstance(item, FieldInfo) else [item])]
        return _expected(inner, [*marks, *constraints])
    if origin in (Union, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        return _expected(parts[0], marks) if len(parts) == 1 else "a section"
    if words := [*literals(annotation), *(word for mark in marks if isinstance(mark, Choices) for word in mark)]:
        return f"one of {', '.join(words)}"
    if origin is list:
        one_will_do = any(isinstance(mark, BeforeValidator) for mark in marks)
        return "a file name, or a list of file names" if one_will_do else "a list of words, such as [one, two]"
    return _PLAIN.get(annotation, "a section") + _bounds(marks)


_PLAIN = {
    bool: "true or false",
    str: "a word (in quotes where it looks like a number)",
    int: "a whole number",
    float: "a number",
}


def _bounds(marks: Iterable[Any]) -> str:
    """Return the range of a number in words, with a space before it."""
    words: dict[type, str] = {}
    for mark in marks:
        match mark:
            case annotated_types.Ge(ge=bound):
                words[annotated_types.Ge] = f"of at least {bound}"
            case annotated_types.Gt(gt=bound):
                words[annotated_types.Gt] = f"above {bound}"
            case annotated_types.Le(le=bound):
                words[annotated_types.Le] = f"of at most {bound}"
            case annotated_types.Lt(lt=bound):
                words[annotated_types.Lt] = f"below {bound}"
    return " " + " and ".join(words.values()) if words else ""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration file, for editors that complete and check it."""
    from regard.config.presets import PRESETS

    schema = RunConfig.model_json_schema()
    for section in _subclasses(Section):
        described = schema if section is RunConfig else schema["$defs"].get(section.__name__, {})
        for field, text in _field_docstrings(section).items():
            if field in described.get("properties", {}):
                described["properties"][field]["description"] = text
    name = {"type": "string", "enum": list(PRESETS)}
    preset = {
        "anyOf": [name, {"type": "array", "items": name}],
        "description": "A preset, or a list of presets in ascending precedence; the file takes precedence over all.",
    }
    schema["properties"] = {"preset": preset, **schema["properties"]}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    opened = _kind_may_be_left_out(schema)
    assert isinstance(opened, dict)
    return opened


def _subclasses(section: type[Section]) -> Iterator[type[Section]]:
    for subclass in section.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def _field_docstrings(section: type[Section]) -> dict[str, str]:
    """Return the docstrings below the fields of a section and of the sections that it inherits from.

    Pydantic can read them when it builds a class (`use_attribute_docstrings`), but that takes 0.1 s in every command.
    """
    found: dict[str, str] = {}
    for base in reversed(section.__mro__):
        if base is Section or not issubclass(base, Section):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, below in itertools.pairwise(body.body):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            found.pop(field.target.id, None)  # a field without a docstring overrides the inherited one
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                found[field.target.id] = inspect.cleandoc(str(below.value.value))
    return found


def _kind_may_be_left_out(schema: Any) -> Any:
    """Replace `oneOf` by `anyOf`, so that a section without its kind is valid if it is valid for any kind."""
    if isinstance(schema, dict):
        return {
            "anyOf" if key == "oneOf" else key: _kind_may_be_left_out(value)
            for key, value in schema.items()
            if key != "discriminator"
        }
    return [_kind_may_be_left_out(item) for item in schema] if isinstance(schema, list) else schema
