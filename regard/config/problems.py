"""Error messages for configurations: location, setting, value and remedy."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from regard.config.document import Layer, Path, dotted, noun
from regard.config.run import RunConfig
from regard.config.schema import Kinds, elsewhere, expected, kinds, names, nearest, required, selected_section, words_of
from regard.config.section import Section
from regard.config.upgrade import KINDS as EARLIER
from regard.foundation.errors import UsageError

SHOWN = 5


def format_errors(error: ValidationError, layer: Layer, name: str) -> UsageError:
    """Return an error with one line per problem that pydantic found, at most five."""
    problems = [_Problem.of(dict(details)) for details in error.errors(include_url=False)]
    misspelt = {problem.path[:-1] for problem in problems if problem.code == "extra_forbidden"}
    lines: dict[str, None] = {}
    for problem in problems:
        if problem.code == "missing" and problem.path[:-1] in misspelt:
            continue  # the misspelt name is most likely the missing one
        sentence = problem.sentence()
        stop = "" if sentence.endswith((".", "?")) else "."
        lines[f"{place_of(problem.at, layer, name)}: {sentence}{stop}"] = None
    shown = list(lines)[:SHOWN]
    if len(lines) > SHOWN:
        shown.append(f"… and {len(lines) - SHOWN} more.")
    return UsageError("\n".join(shown))


def add_location(error: UsageError, layer: Layer, name: str) -> UsageError:
    """Return an error about the whole model with the location of the setting that its message begins with."""
    first = re.match(r"[a-z_]+(\.[a-z_]+)*", str(error))
    path: Path = tuple(first.group().split(".")) if first else ()
    if (*path, "kind") in layer.places:
        path = (*path, "kind")  # the problem of a section is most often its kind
    return UsageError(f"{place_of(path, layer, name)}: {error}")


def place_of(path: Path, layer: Layer, name: str) -> str:
    """Return the location of a setting, or of something inside it, or of the section around it."""
    if path and path not in layer.places:
        inside = [location for known, location in layer.places.items() if known[: len(path)] == path]
        if inside:
            return inside[0]
    for length in range(len(path), 0, -1):
        if place := layer.places.get(path[:length]):
            return place
    return name


@dataclass(frozen=True)
class _Problem:
    """One problem that pydantic found, with the schema around it."""

    code: str
    path: Path
    value: Any
    field: FieldInfo | None
    """The field; `None` if the name is unknown."""
    siblings: Kinds
    """The alternative sections that may contain the setting."""
    section: type[Section]
    """The section that contains it."""
    message: str

    @property
    def at(self) -> Path:
        """The setting whose line is shown."""
        return (*self.path, "kind") if self.code.startswith("union_tag") else self.path

    @classmethod
    def of(cls, details: dict[str, Any]) -> "_Problem":
        """Follow pydantic's path through the schema; it contains the kind of a section as a separate step."""
        siblings: Kinds = {"": RunConfig}
        section: type[Section] = RunConfig
        field: FieldInfo | None = None
        path: Path = ()
        steps = iter(details["loc"])
        for step in steps:
            path = (*path, step)
            if field is not None and not kinds(field):
                continue  # inside a list
            field = section.model_fields.get(step)
            choices = kinds(field)
            tag = next(steps, None) if len(choices) > 1 else next(iter(choices), None)
            if tag is not None:
                siblings, section = choices, choices[tag]
        return cls(
            code=details["type"],
            path=path,
            value=details["input"],
            field=field,
            siblings=siblings,
            section=section,
            message=details["msg"].removeprefix("Value error, "),
        )

    def sentence(self) -> str:
        """Return the problem in one sentence."""
        name = dotted(self.path)
        choices = kinds(self.field)
        if self.code == "extra_forbidden":
            return self._unknown(name)
        if self.code == "missing":
            return self._missing(name, choices)
        if self.code == "value_error":
            return f"{name} {self.message}"
        if self.code.startswith("union_tag") and isinstance(self.value, Mapping):
            return self._kind(name, choices)
        if choices or self.field is None:
            return self._no_section(name, choices)
        words = words_of(self.field)
        meant = nearest(self.value, words) if isinstance(self.value, str) else None
        hint = f"; did you mean {meant}?" if meant else ""
        item = isinstance(self.path[-1], int)
        return f"{name} must be {expected(self.field, item=item)}, not {noun(self.value)}{hint}"

    def _unknown(self, name: str) -> str:
        key = str(self.path[-1])
        owners = [kind for kind, section in self.siblings.items() if key in section.model_fields]
        if owners and "kind" in self.section.model_fields:
            kind = self.section.model_fields["kind"].default
            return f"{name} is a setting of kind {' or '.join(owners)}, but this one is {kind}"
        if owners:
            company = " or ".join(" and ".join(required(self.siblings[owner])) for owner in owners)
            return f"{name} belongs to {company}. Set that instead, or remove it"
        meant = nearest(key, names(self.siblings))
        # `text.tokenizer.size` is about the tokenizer, so a setting of that name in an unrelated section is not
        # suggested.
        if meant is None and (other := elsewhere(self.path)) and (len(self.path) <= 2 or other[0] == self.path[0]):
            meant = dotted(other)
        return f"{name} is not a setting" + (f"; did you mean {meant}?" if meant else self._list())

    def _list(self) -> str:
        return f". The settings here are {', '.join(self.section.model_fields)}"

    def _missing(self, name: str, choices: Kinds) -> str:
        if self.path == ("data",):
            return "data.train is missing. " + _list_corpus_settings(kinds(choices["Data"].model_fields["train"]))
        if len(choices) > 1:
            return f"{name} is missing. {_list_corpus_settings(choices)}"
        given = self.value if isinstance(self.value, Mapping) else None
        if len(self.siblings) > 1 and given is not None and not selected_section(self.siblings, given):
            return f"{dotted(self.path[:-1])} names no data. {_list_corpus_settings(self.siblings)}"
        return f"{name} is missing. It must be {expected(self.field) if self.field else 'given'}"

    def _kind(self, name: str, choices: Kinds) -> str:
        kind = self.value.get("kind")
        meant = (EARLIER.get(kind) or nearest(kind, choices)) if isinstance(kind, str) else None
        hint = f"; did you mean {meant}?" if meant else ""
        return f"{name}.kind must be one of {', '.join(choices)}, not {noun(kind)}{hint}"

    def _no_section(self, name: str, choices: Kinds) -> str:
        word = self.value if isinstance(self.value, str) else None
        if any(
            "kind" in choice.model_fields and word in words_of(choice.model_fields["kind"])
            for choice in choices.values()
        ):
            return f"{name} is a section; did you mean to set {name}.kind to {word}?"
        known = names(choices) if choices else list(RunConfig.model_fields)
        return f"{name} must be a section with settings such as {', '.join(known[:4])}, not {noun(self.value)}"


def _list_corpus_settings(choices: Kinds) -> str:
    """Return a sentence that lists the settings that name a corpus."""
    here = [section for section in choices.values() if "imported" not in section.model_fields]
    return "Set " + ", or ".join(" and ".join(required(section)) for section in here)
