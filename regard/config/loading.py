"""Load a resolved configuration from a file, presets and overrides, and write it.

In ascending precedence: the settings that a run inherits from the one that it starts from (`model.start_from`), the
presets that a file names, the file, presets named on the command line, overrides.
"""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from regard.config import plugins
from regard.config.document import Layer, noun, one_line, read, read_plain, scalar
from regard.config.layers import COMMAND_LINE, leaves, preset_layer, read_overrides, stack
from regard.config.presets import PRESETS
from regard.config.problems import add_location, format_errors, place_of
from regard.config.run import RunConfig
from regard.config.schema import default_kinds, nearest
from regard.config.start import inherited_settings, refuse_differences
from regard.config.task import TASKS
from regard.config.upgrade import upgrade
from regard.foundation.errors import RegardError, UsageError

LARGEST_FILE = 1_000_000


def load(path: Path | str, overrides: Sequence[str] = (), *, of_run: bool = False) -> RunConfig:
    """Return the resolved configuration of a YAML file; the paths in it are relative to the current directory.

    The file of a run (`of_run`) is complete: it inherits nothing, so that it can be read without `model.start_from`. As
    it may come from an untrusted source, the extensions that it names must already be loaded.
    """
    text, name = read_text(path)
    of_run = of_run or _is_file(Path(path).parent / "run.json")
    return _resolve(read(text, name), overrides, name, of_run=of_run)


def from_mapping(mapping: Mapping[str, Any], overrides: Sequence[str] = ()) -> RunConfig:
    """Return the resolved configuration of a mapping with the content of a file."""
    name = "configuration"
    values = read_plain(mapping, name)
    if not isinstance(values, dict):
        raise UsageError(f"{name}: a configuration is a mapping, not {noun(values)}.")
    return _resolve(Layer(values), overrides, name)


def dump(config: RunConfig) -> str:
    """Return a configuration as YAML; loading it gives an equal one."""
    values = config.model_dump(mode="json", exclude_none=True)
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


def _resolve(file: Layer, overrides: Sequence[str], name: str, *, of_run: bool = False) -> RunConfig:
    """Merge all layers, check the result, and fill in defaults."""
    layers = [Layer(default_kinds())]
    try:
        file = upgrade(file)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    command_line = upgrade(read_overrides(overrides), file)
    plugins.load_requested()
    named = _plugin_names(file.values.get("plugins"), place_of(("plugins",), file, name))
    asked = _plugin_names(command_line.values.get("plugins"), COMMAND_LINE)
    for module in [*asked, *([] if of_run else named)]:
        plugins.load(module)
    if of_run:
        plugins.require(named, name)
    corpus_layer = None if of_run else _corpus_layer(file, command_line, name)
    for given, default in ((file, name), (command_line, COMMAND_LINE)):
        if corpus_layer is not None and corpus_layer[0] is given:
            layers.append(corpus_layer[1])
        values = dict(given.values)
        chosen = values.pop("preset", None)
        layers += _presets(chosen, place_of(("preset",), given, default))
        layers.append(Layer(values, given.places))
    layer = stack(*layers)
    inherit = not of_run and _has_start(layer)
    if not inherit and (kind := _default_encoder(layer, file, command_line)):
        # Encoder settings without a kind apply to this kind; presets describe encoders of text.
        rest = [_without_encoder(layer) if layer.presets else layer for layer in layers[1:]]
        layer = stack(layers[0], Layer({"model": {"encoder": {"kind": kind}}}), *rest)
    try:
        if inherit:
            layer = stack(layers[0], Layer(inherited_settings(layer.values, TASKS.items())), *layers[1:])
    except UsageError as error:
        raise add_location(error, layer, name) from None
    try:
        config = RunConfig.model_validate(layer.values, strict=True)
    except ValidationError as error:
        raise format_errors(error, layer, name) from None
    try:
        for given in (file, command_line):
            config.refuse_unused(given.values)
        # Earlier versions wrote the weight of CTC into the file of every run.
        config.refuse_unused_ctc((command_line if of_run else stack(file, command_line)).values)
        if inherit:
            # Checked first, so that a partly inherited model is not called impossible.
            refuse_differences(config, layer.presets, resolved=False)
            config = config.resolved()
            refuse_differences(config, layer.presets)
            return config
        return config.resolved()
    except UsageError as error:
        raise add_location(error, layer, name) from None


def _corpus_layer(file: Layer, command_line: Layer, name: str) -> tuple[Layer, Layer] | None:
    """Return the layer that names `data.corpus`, and the settings of that corpus."""
    for given, default in ((command_line, COMMAND_LINE), (file, name)):
        data = given.values.get("data")
        corpus = data.get("corpus") if isinstance(data, Mapping) else None
        if isinstance(corpus, str):
            from regard.config.corpora import corpus_settings

            place = place_of(("data", "corpus"), given, default)
            try:
                values = {"data": corpus_settings(corpus)}
            except RegardError as error:
                raise UsageError(f"{place}: {error}") from None
            return given, Layer(values, dict.fromkeys(leaves(values), place))
    return None


def _has_start(layer: Layer) -> bool:
    model = layer.values.get("model")
    return isinstance(model, Mapping) and model.get("start_from") is not None


def _default_encoder(whole: Layer, *given: Layer) -> str | None:
    """Return the default kind of encoder for the input of the task, or `None` if a layer names one."""
    section = whole.values.get("task")
    kind = section.get("kind") if isinstance(section, Mapping) else None
    if not isinstance(kind, str) or kind not in TASKS or not (wanted := TASKS[kind].input_kind().encoders):
        return None
    for layer in given:
        model = layer.values.get("model")
        encoder = model.get("encoder") if isinstance(model, Mapping) else None
        if encoder is not None and (not isinstance(encoder, Mapping) or "kind" in encoder):
            return None
    return wanted[0]


def _without_encoder(preset: Layer) -> Layer:
    """Return a preset without its encoder."""
    model = {name: value for name, value in preset.values.get("model", {}).items() if name != "encoder"}
    kept = {path: name for path, name in preset.presets.items() if path[:2] != ("model", "encoder")}
    return Layer({**preset.values, "model": model}, preset.places, kept)


def _plugin_names(given: Any, place: str) -> list[str]:
    """Return the names of extension modules that a file lists."""
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise UsageError(f"{place}: plugins must be a list of module names, such as [my_module], not {noun(given)}.")
    return given


def _presets(chosen: Any, place: str) -> list[Layer]:
    """Return the layers of a preset's name, or of a list of names."""
    names = chosen if isinstance(chosen, list) else [] if chosen is None else [chosen]
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"{place}: preset must be the name of a preset, or a list of names, not {noun(name)}.")
        if name not in PRESETS:
            meant = nearest(name, PRESETS)
            hint = f"did you mean {meant}?" if meant else "`regard config presets` lists them."
            raise UsageError(f"{place}: {noun(name)} is not a preset; {hint}")
    return [preset_layer(name, PRESETS[name].settings, place) for name in names]


def read_text(path: Path | str) -> tuple[str, str]:
    """Return the text of a configuration file, and its name as messages show it."""
    path, name = Path(path), one_line(str(path))
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise UsageError(f"{name} does not exist{_similar(path)}") from None
    except IsADirectoryError:
        inside = path / "config.yaml"
        hint = f"; did you mean {one_line(str(inside))}?" if inside.exists() else ", not a configuration file."
        raise UsageError(f"{name} is a directory{hint}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "that is not a file name"
        raise UsageError(f"{name} cannot be read: {reason}.") from None
    if len(content) > LARGEST_FILE:
        raise UsageError(f"{name} is over {LARGEST_FILE // 1_000_000} MB, which is too large for a configuration.")
    try:
        return content.decode("utf-8-sig"), name
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name}:{line}: not UTF-8 text. Save the file as UTF-8.") from None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # for example, a name that is too long
        return False


def _similar(path: Path) -> str:
    """Return a hint that names a file with a similar name."""
    try:
        names = [file.name for file in path.parent.iterdir()]
    except (OSError, ValueError):
        return "."
    matches = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"; did you mean {one_line(str(path.with_name(matches[0])))}?" if matches else "."


class _Dumper(yaml.SafeDumper):
    """Writes strings so that they are read back as strings: quoted if they look like another type."""


def _text_node(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None if isinstance(scalar(text), str) and text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text_node)
