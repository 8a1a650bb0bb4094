"""Strict reading of the JSON files of a run: each is a dataclass, and errors name the value that does not fit.

A run may come from anywhere, so its files are read as untrusted input: regular files only, of a bounded size, with
the types that the dataclass declares. This module does without pydantic, whose import would double the time that the
fast engine needs to start.
"""

import hashlib
import json
import os
import stat
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from regard.foundation.errors import RegardError

LARGEST = 1 << 28
"""Largest JSON file that is read, in bytes."""
CHECKSUM = "checksum"
"""The key under which a sealed file keeps the hash of everything else in it."""

T = TypeVar("T")


class DamagedFile(RegardError):
    """A file of a run cannot be read, or has invalid content."""


def read_file(path: Path, largest: int = LARGEST) -> bytes:
    """Return the content of a regular file; raises for a symbolic link, pipe, device or directory."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        reason = "it is a symbolic link" if path.is_symlink() else error.strerror or str(error)
        raise DamagedFile(f"{path} cannot be read: {reason}.") from None
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        os.close(handle)
        raise DamagedFile(f"{path} cannot be read: it is not a regular file.")
    with os.fdopen(handle, "rb") as file:
        if facts.st_size > largest:
            raise DamagedFile(f"{path} has {facts.st_size:,} bytes, but at most {largest:,} are allowed.")
        return file.read()


def read_json(path: Path) -> Any:
    """Return the content of a JSON file of a run."""
    try:
        return json.loads(read_file(path).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else f"it is not JSON ({error})"
        raise DamagedFile(f"{path} cannot be read: {reason}.") from None


def read_record(path: Path, kind: type[T], *, sealed: bool = False) -> T:
    """Read a JSON file as the dataclass `kind`; `sealed` requires a correct checksum."""
    return parse(kind, unseal(read_json(path), path, demanded=sealed), path)


def seal(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content with a checksum of itself."""
    plain = {key: value for key, value in content.items() if key != CHECKSUM}
    return {**plain, CHECKSUM: hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()}


def unseal(content: Any, path: Path, *, demanded: bool) -> dict[str, Any]:
    """Return sealed content without its checksum, after checking it."""
    if not isinstance(content, dict):
        raise DamagedFile(f"{path} is damaged: it contains {_describe(content)} instead of a JSON object.")
    if CHECKSUM not in content:
        if demanded:
            raise DamagedFile(f"{path} is damaged: its checksum is missing.")
        return content
    if seal(content) != content:
        raise DamagedFile(f"{path} was changed after it was written: its checksum is wrong.")
    return {key: value for key, value in content.items() if key != CHECKSUM}


def parse(kind: type[T], content: Any, path: Path) -> T:
    """Return JSON content as the dataclass `kind`, every value of the declared type; unknown keys are ignored."""
    found: T = _parse(kind, content, "", path)
    return found


def _parse(kind: Any, value: Any, where: str, path: Path) -> Any:  # noqa: PLR0911
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):  # an optional value
        (only,) = (one for one in get_args(kind) if one is not type(None))
        return None if value is None else _parse(only, value, where, path)
    if kind is Any:
        return value
    if is_dataclass(kind):
        return _parse_dataclass(kind, value, where, path)
    if origin is Literal:
        if value not in get_args(kind) or not isinstance(value, type(get_args(kind)[0])):
            raise _misfit(where, path, f"one of {', '.join(map(str, get_args(kind)))}", value)
        return value
    if origin is list and isinstance(value, list):
        (element,) = get_args(kind)
        return [_parse(element, one, f"{where}[{number}]", path) for number, one in enumerate(value)]
    if origin is dict and isinstance(value, dict):
        element = get_args(kind)[1]
        return {key: _parse(element, one, f"{where}.{key}", path) for key, one in value.items()}
    return _parse_plain(origin or kind, value, where, path)


def _parse_dataclass(kind: Any, value: Any, where: str, path: Path) -> Any:
    if not isinstance(value, dict):
        raise _misfit(where, path, "a JSON object", value)
    hints = _hints(kind)
    found = {}
    for field in fields(kind):
        place = f"{where}.{field.name}" if where else field.name
        if field.name in value:
            found[field.name] = _parse(hints[field.name], value[field.name], place, path)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise DamagedFile(f"{path} is damaged: {place} is missing.")
    return kind(**found)


def _parse_plain(kind: Any, value: Any, where: str, path: Path) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) < 2**63 else _refuse(where, path, "a number", value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", list: "a list"}
        raise _misfit(where, path, names.get(kind, "a JSON object"), value)
    if kind is int and abs(value) >= 2**63:
        raise _misfit(where, path, "a whole number of at most 64 bits", value)
    if kind is str and any(ord(letter) < 32 and letter not in "\t\n" for letter in value):
        raise _misfit(where, path, "a text without control characters", value)
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _refuse(where: str, path: Path, wanted: str, value: Any) -> Any:
    raise _misfit(where, path, wanted, value)


def _misfit(where: str, path: Path, wanted: str, value: Any) -> DamagedFile:
    return DamagedFile(f"{path} is damaged: {where or 'it'} must be {wanted}, not {_describe(value)}.")


def _describe(value: Any) -> str:
    if isinstance(value, dict | list):
        return "a JSON object" if isinstance(value, dict) else "a list"
    try:
        text = json.dumps(value)
    except ValueError:  # a number with more digits than Python prints
        return "a number with thousands of digits"
    return text if len(text) <= 40 else f"{text[:40]}…"
