"""A YAML text as plain values, each of which remembers the line it stands on.

Scalars are read as YAML 1.2 reads them (`no` is a word, not false), with `6_000` and `1e-3` as the numbers they look
like. Whatever is not a small tree of mappings, lists and scalars is refused.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any

import yaml

from regard.foundation.errors import UsageError

Path = tuple[str | int, ...]
"""Where a value stands, such as `("model", "encoder", "layers")`."""

MAX_DEPTH = 40
MAX_VALUES = 50_000
_LARGEST = 2**63

_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"[-+]?\d+(_\d+)*")
_REAL = re.compile(r"[-+]?(\d+(_\d+)*(\.\d*)?|\.\d+)([eE][-+]?\d+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE)
_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}
_UNPRINTABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class Layer:
    """Settings from one place: a preset, a file, or the command line."""

    values: dict[str, Any]
    places: dict[Path, str] = field(default_factory=dict)
    """Where each of them is written, such as `my.yaml:12`."""
    presets: dict[Path, str] = field(default_factory=dict)
    """The preset that each of them comes from, for those that come from one."""


def read(text: str, name: str) -> Layer:
    """The settings of a YAML file called `name`."""
    root = _compose(text, name)
    if root is None:
        raise UsageError(f"{name} is empty: a configuration names at least a corpus, such as `data: {{train: …}}`.")
    reader = _Reader(name)
    values = reader.plain(root, ())
    if not isinstance(values, dict):
        raise UsageError(f"{name}: a configuration is a mapping such as `data: {{train: …}}`, not {noun(values)}.")
    return Layer(values, reader.places)


def read_value(text: str, name: str, path: Path) -> Any:
    """The value of one setting in YAML, as it stands behind the `=` of an override."""
    node = _compose(text, f"{name}: {dotted(path)}", lines=False)
    return None if node is None else _Reader(name, lines=False).plain(node, path)


def read_plain(value: Any, place: str) -> Any:
    """Python values as if they had been read: tuples become lists, paths become text, keys must be text."""
    return _Reader(place, lines=False).plain(value, ())


def scalar(text: str) -> str | int | float | bool | None:
    """What an unquoted YAML scalar stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= 40 else math.inf
    if _REAL.fullmatch(text):
        number = float(text)
        # `1e5` is how many people write a whole number of steps.
        return int(number) if "." not in text and number.is_integer() and abs(number) < _LARGEST else number
    return text


def noun(value: Any) -> str:
    """A value as an error message shows it: short, quoted, on one line."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a section" if value else "an empty section"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, str):
        shown = value if len(value) <= 40 else value[:39] + "…"
        return '"' + "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown) + '"'
    return str(value)[:40]


def dotted(path: Path) -> str:
    """A path as a user writes it, such as `model.encoder.layers`."""
    shown = ".".join(one_line(str(name)[:60]) for name in path[:8])
    return shown + "…" if len(path) > 8 else shown


def one_line(text: str) -> str:
    """A name as it may stand in a message, whatever is in it."""
    return "".join(c if c.isprintable() else "?" for c in text[:300])


def _compose(text: str, name: str, *, lines: bool = True) -> yaml.Node | None:
    """The node tree of a YAML text; `None` if there is nothing in it."""
    try:
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.BaseLoader)
        return root
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark and lines else name
        problem = " ".join((error.problem or error.context or "it cannot be read").split())[:160]
        remedy = ": indent with spaces, not tabs" if "'\\t'" in problem else ""
        raise UsageError(f"{place}: not valid YAML: {problem}{remedy}.") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        place = f"{name}:{line}" if lines else name
        raise UsageError(f"{place}: the character {chr(error.character)!a} cannot stand in YAML.") from None
    except RecursionError:
        raise UsageError(f"{name}: nested too deeply to be a configuration.") from None
    except (ValueError, OverflowError):
        raise UsageError(f"{name}: not valid YAML: an escaped character is out of range.") from None


def _content(value: Any) -> Any:
    """What a YAML node holds, one level deep; any other value as it is, paths as text."""
    if isinstance(value, yaml.ScalarNode):
        return value.value if value.style else scalar(value.value)
    if isinstance(value, yaml.Node):
        return value.value
    return fspath(value) if isinstance(value, PathLike) else value


class _Reader:
    """One walk over a tree, counting what it reads, so that no tree can be too deep or too large."""

    def __init__(self, name: str, *, lines: bool = True) -> None:
        self.name = name
        self.lines = lines
        self.places: dict[Path, str] = {}
        self.read = 0

    def plain(self, value: Any, path: Path) -> Any:
        """The plain value of a YAML node or a Python value."""
        place = self._place(value)
        self.places[path] = place
        self.read += 1
        if len(path) > MAX_DEPTH:
            raise UsageError(f"{place}: nested too deeply to be a configuration.")
        if self.read > MAX_VALUES:
            raise UsageError(f"{place}: more than {MAX_VALUES:,} values are too many for a configuration.")
        if isinstance(value, yaml.Node) and value.tag not in _TAGS:
            raise UsageError(f"{place}: {noun(value.tag)} is a YAML tag, and a configuration has none.")
        content = _content(value)
        if isinstance(content, Mapping):
            return self._mapping(list(content.items()), path)
        if isinstance(value, yaml.MappingNode):
            return self._mapping(content, path)
        if isinstance(content, list | tuple):
            return [self.plain(item, (*path, number)) for number, item in enumerate(content)]
        return self._scalar(content, place, path)

    def _mapping(self, pairs: list[tuple[Any, Any]], path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in pairs:
            name, place = _content(key), self._place(key)
            if not isinstance(name, str) or _UNPRINTABLE.search(name):
                inside = f" in {dotted(path)}" if path else ""
                raise UsageError(f"{place}: the name of a setting{inside} must be a word, not {noun(name)}.")
            if name in values:
                raise UsageError(f"{place}: {dotted((*path, name))} is set twice; keep one.")
            values[name] = self.plain(value, (*path, name))
            self.places[(*path, name)] = place
        return values

    def _scalar(self, value: Any, place: str, path: Path) -> Any:
        if not isinstance(value, str | int | float | bool | None):
            raise UsageError(f"{place}: {dotted(path)} cannot be of type {type(value).__name__}.")
        if isinstance(value, str) and _UNPRINTABLE.search(value):
            raise UsageError(f"{place}: {dotted(path)} holds a character that is not text.")
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{place}: {dotted(path)} must be a finite number.")
        if isinstance(value, int) and abs(value) >= _LARGEST:
            raise UsageError(f"{place}: {dotted(path)} is too large a number.")
        return value

    def _place(self, value: Any) -> str:
        if self.lines and isinstance(value, yaml.Node):
            return f"{self.name}:{value.start_mark.line + 1}"
        return self.name
