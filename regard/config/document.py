"""YAML texts as plain values with the line of each.

Scalars are read as in YAML 1.2 (`no` is a string, not false); `6_000` and `1e-3` are numbers. Only a small tree of
mappings, lists and scalars is accepted.
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
"""The path of a value, such as `("model", "encoder", "layers")`."""

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
    """Settings from one source: a preset, a file, or the command line."""

    values: dict[str, Any]
    places: dict[Path, str] = field(default_factory=dict)
    """The location of each setting, such as `my.yaml:12`."""
    presets: dict[Path, str] = field(default_factory=dict)
    """The preset of each setting that comes from a preset."""


def read(text: str, name: str) -> Layer:
    """Return the settings of a YAML file called `name`."""
    root = _compose(text, name)
    if root is None:
        raise UsageError(f"{name} is empty. A configuration needs at least a corpus, such as `data: {{train: …}}`.")
    reader = _Reader(name)
    values = reader.plain(root, ())
    if not isinstance(values, dict):
        raise UsageError(f"{name}: a configuration is a mapping such as `data: {{train: …}}`, not {noun(values)}.")
    return Layer(values, reader.places)


def read_value(text: str, name: str, path: Path) -> Any:
    """Return the value of an override, the YAML text after its `=`."""
    node = _compose(text, f"{name}: {dotted(path)}", lines=False)
    return None if node is None else _Reader(name, lines=False).plain(node, path)


def read_plain(value: Any, place: str) -> Any:
    """Return Python values as if read from YAML: tuples become lists, paths strings, and keys must be strings."""
    return _Reader(place, lines=False).plain(value, ())


def scalar(text: str) -> str | int | float | bool | None:
    """Return the value of an unquoted YAML scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= 40 else math.inf
    if _REAL.fullmatch(text):
        number = float(text)
        # Many people write a whole number of steps as `1e5`.
        return int(number) if "." not in text and number.is_integer() and abs(number) < _LARGEST else number
    return text


def noun(value: Any) -> str:
    """Return a value as an error message shows it: short, quoted, on one line."""
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
    """Return a path as a user writes it, such as `model.encoder.layers`."""
    shown = ".".join(one_line(str(name)[:60]) for name in path[:8])
    return shown + "…" if len(path) > 8 else shown


def one_line(text: str) -> str:
    """Return a name in a form that is safe in a message: one line, printable."""
    return "".join(c if c.isprintable() else "?" for c in text[:300])


def _compose(text: str, name: str, *, lines: bool = True) -> yaml.Node | None:
    """Return the node tree of a YAML text; `None` if it is empty."""
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
        raise UsageError(f"{place}: the character {chr(error.character)!a} is not allowed in YAML.") from None
    except RecursionError:
        raise UsageError(f"{name}: nested too deeply to be a configuration.") from None
    except (ValueError, OverflowError):
        raise UsageError(f"{name}: not valid YAML: an escaped character is out of range.") from None


def _content(value: Any) -> Any:
    """Return the content of a YAML node, one level deep; other values unchanged, paths as strings."""
    if isinstance(value, yaml.ScalarNode):
        return value.value if value.style else scalar(value.value)
    if isinstance(value, yaml.Node):
        return value.value
    return fspath(value) if isinstance(value, PathLike) else value


class _Reader:
    """Reads a tree of values and raises if it is too deep or too large."""

    def __init__(self, name: str, *, lines: bool = True) -> None:
        self.name = name
        self.lines = lines
        self.places: dict[Path, str] = {}
        self.read = 0

    def plain(self, value: Any, path: Path) -> Any:
        """Return the plain value of a YAML node or a Python value."""
        place = self._place(value)
        self.places[path] = place
        self.read += 1
        if len(path) > MAX_DEPTH:
            raise UsageError(f"{place}: nested too deeply to be a configuration.")
        if self.read > MAX_VALUES:
            raise UsageError(f"{place}: a configuration may have at most {MAX_VALUES:,} values.")
        if isinstance(value, yaml.Node) and value.tag not in _TAGS:
            raise UsageError(f"{place}: {noun(value.tag)} is a YAML tag, which a configuration must not have.")
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
                raise UsageError(f"{place}: {dotted((*path, name))} is set twice. Keep one.")
            values[name] = self.plain(value, (*path, name))
            self.places[(*path, name)] = place
        return values

    def _scalar(self, value: Any, place: str, path: Path) -> Any:
        if not isinstance(value, str | int | float | bool | None):
            raise UsageError(f"{place}: {dotted(path)} cannot be of type {type(value).__name__}.")
        if isinstance(value, str) and _UNPRINTABLE.search(value):
            raise UsageError(f"{place}: {dotted(path)} contains a character that is not text.")
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{place}: {dotted(path)} must be a finite number.")
        if isinstance(value, int) and abs(value) >= _LARGEST:
            raise UsageError(f"{place}: {dotted(path)} is too large a number.")
        return value

    def _place(self, value: Any) -> str:
        if self.lines and isinstance(value, yaml.Node):
            return f"{self.name}:{value.start_mark.line + 1}"
        return self.name
