"""Merging of settings: presets, then the file, then the command line."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regard.config.document import Layer, Path, noun, read_value
from regard.config.run import RunConfig
from regard.config.schema import Kinds, kinds, names, optional, selected_section
from regard.config.section import Section
from regard.foundation.errors import UsageError

COMMAND_LINE = "command line"


def stack(*layers: Layer) -> Layer:
    """Merge layers; later ones take precedence."""
    values: dict[str, Any] = {}
    places: dict[Path, str] = {}
    presets: dict[Path, str] = {}
    for layer in layers:
        values = merged(RunConfig, values, layer.values)
        places |= layer.places
        presets = {path: name for path, name in presets.items() if path not in layer.places} | layer.presets
    return Layer(values, places, presets)


def preset_layer(name: str, settings: Mapping[str, Any], place: str) -> Layer:
    """Return the layer of a preset that is named at `place`, which is the location of all its settings."""
    paths = list(leaves(settings))
    return Layer(dict(settings), dict.fromkeys(paths, f"{place} (preset {name})"), dict.fromkeys(paths, name))


def leaves(values: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all settings in a section that are not sections themselves."""
    if not isinstance(values, Mapping):
        yield path
        return
    for name, value in values.items():
        yield from leaves(value, (*path, name))


def merged(section: type[Section], earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two layers of one section; the later one takes precedence, and an empty section changes nothing."""
    result = dict(earlier)
    for name, value in later.items():
        field = section.model_fields.get(name)
        choices = kinds(field)
        before = result.get(name)
        if field is None or not choices or not (isinstance(value, Mapping) or value is None):
            result[name] = value
        elif value is None:
            result[name] = None if optional(field) else before or {}
        else:
            result[name] = _merged_kinds(choices, before if isinstance(before, Mapping) else {}, value)
    return result


def _merged_kinds(choices: Kinds, earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Merge as `merged` does; if the kind changes, settings that the new kind does not share are dropped."""
    held, wanted = selected_section(choices, earlier), selected_section(choices, later)
    if held is not None and "kind" not in later and set(later) <= set(held.model_fields):
        wanted = held  # `captions: 3` keeps a generated corpus
    if wanted is not None and wanted is not held:
        foreign = {name for name in names(choices) if not _is_same_setting(name, held, wanted)}
        earlier = {name: value for name, value in earlier.items() if name not in foreign}
    section = wanted or held or next(iter(choices.values()))
    return merged(section, earlier, later)


def _is_same_setting(name: str, held: type[Section] | None, wanted: type[Section]) -> bool:
    """Return whether two kinds define a setting alike: `captions` may be files, or a number to generate."""
    if name not in wanted.model_fields:
        return False
    before = held.model_fields.get(name) if held else None
    return before is None or name == "kind" or before.annotation == wanted.model_fields[name].annotation


def read_overrides(overrides: Sequence[str]) -> Layer:
    """Return the layer of `key.path=value` arguments; if a key occurs twice, the last one takes precedence."""
    values: dict[str, Any] = {}
    places: dict[Path, str] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        path = tuple(key.strip().split("."))
        if not equals or not all(path):
            raise UsageError(
                f"{noun(override)} is not a setting. Write key.path=value without spaces, such as training.steps=2000."
            )
        section = values
        for name in path[:-1]:
            if not isinstance(section.get(name), dict):
                section[name] = {}
            section = section[name]
        section[path[-1]] = read_value(text, COMMAND_LINE, path)
        places = {known: location for known, location in places.items() if known[: len(path)] != path}
        places |= dict.fromkeys([path, *leaves(section[path[-1]], path)], COMMAND_LINE)
    return Layer(values, places)
