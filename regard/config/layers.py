"""Settings laid over settings: presets, then the file, then the command line."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regard.config.document import Layer, Path, noun, read_value
from regard.config.run import RunConfig
from regard.config.schema import Kinds, asked, kinds, names, optional
from regard.config.section import Section
from regard.foundation.errors import UsageError

COMMAND_LINE = "command line"


def stack(*layers: Layer) -> Layer:
    """All layers as one, later ones winning."""
    values: dict[str, Any] = {}
    places: dict[Path, str] = {}
    presets: dict[Path, str] = {}
    for layer in layers:
        values = merged(RunConfig, values, layer.values)
        places |= layer.places
        presets = {path: name for path, name in presets.items() if path not in layer.places} | layer.presets
    return Layer(values, places, presets)


def preset_layer(name: str, settings: Mapping[str, Any], place: str) -> Layer:
    """The layer of a preset that is named at `place`: every setting of it has that place."""
    paths = list(leaves(settings))
    return Layer(dict(settings), dict.fromkeys(paths, f"{place} (preset {name})"), dict.fromkeys(paths, name))


def leaves(values: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of all settings in a section that are no sections themselves."""
    if not isinstance(values, Mapping):
        yield path
        return
    for name, value in values.items():
        yield from leaves(value, (*path, name))


def merged(section: type[Section], earlier: Mapping[str, Any], later: Mapping[str, Any]) -> dict[str, Any]:
    """Two layers of one section: the later one wins, key by key; an empty section changes nothing."""
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
    """As `merged`; where the kind changes, what only other kinds know, or mean otherwise, is left behind."""
    held, wanted = asked(choices, earlier), asked(choices, later)
    if held is not None and "kind" not in later and set(later) <= set(held.model_fields):
        wanted = held  # `captions: 3` asks for no other corpus where so many can be made
    if wanted is not None and wanted is not held:
        foreign = {name for name in names(choices) if not _means_the_same(name, held, wanted)}
        earlier = {name: value for name, value in earlier.items() if name not in foreign}
    section = wanted or held or next(iter(choices.values()))
    return merged(section, earlier, later)


def _means_the_same(name: str, held: type[Section] | None, wanted: type[Section]) -> bool:
    """Whether a kind has a setting, and as another kind had it: `captions` may be files, or how many to make."""
    if name not in wanted.model_fields:
        return False
    before = held.model_fields.get(name) if held else None
    return before is None or name == "kind" or before.annotation == wanted.model_fields[name].annotation


def read_overrides(overrides: Sequence[str]) -> Layer:
    """The layer of `key.path=value` arguments; of two for the same key the last one wins."""
    values: dict[str, Any] = {}
    places: dict[Path, str] = {}
    for override in overrides:
        key, equals, text = override.partition("=")
        path = tuple(key.strip().split("."))
        if not equals or not all(path):
            raise UsageError(
                f"{noun(override)} is not a setting: write key.path=value without spaces, such as training.steps=2000."
            )
        section = values
        for name in path[:-1]:
            if not isinstance(section.get(name), dict):
                section[name] = {}
            section = section[name]
        section[path[-1]] = read_value(text, COMMAND_LINE, path)
        places = {known: place for known, place in places.items() if known[: len(path)] != path}
        places |= dict.fromkeys([path, *leaves(section[path[-1]], path)], COMMAND_LINE)
    return Layer(values, places)
