"""From a file, presets and overrides to one resolved configuration, and back.

What is said later wins: the presets that a file names, the file, presets named on the command line, overrides. Under
all of these lie the settings that a run inherits from the one that it starts from (`model.start_from`).
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
from regard.config.problems import place_of, refusal, with_place
from regard.config.run import RunConfig
from regard.config.schema import default_kinds, nearest
from regard.config.start import inherited, refuse_differences
from regard.config.task import TASKS
from regard.config.upgrade import upgraded
from regard.foundation.errors import RegardError, UsageError

LARGEST_FILE = 1_000_000


def load(path: Path | str, overrides: Sequence[str] = (), *, of_run: bool = False) -> RunConfig:
    """Return the resolved configuration of a YAML file; the paths in it are relative to the current directory.

    The file of a run is complete: it inherits nothing, so that it can be read where `model.start_from` is gone. It may
    come from anybody: the extensions that it names must have been loaded before.
    """
    name = one_line(str(path))
    of_run = of_run or _is_file(Path(path).parent / "run.json")
    return _resolved(read(_text(Path(path), name), name), overrides, name, of_run=of_run)


def from_mapping(mapping: Mapping[str, Any], overrides: Sequence[str] = ()) -> RunConfig:
    """The resolved configuration of a mapping that says what a file would say."""
    name = "configuration"
    values = read_plain(mapping, name)
    if not isinstance(values, dict):
        raise UsageError(f"{name}: a configuration is a mapping, not {noun(values)}.")
    return _resolved(Layer(values), overrides, name)


def dump(config: RunConfig) -> str:
    """A configuration as YAML; loading it gives an equal one."""
    values = config.model_dump(mode="json", exclude_none=True)
    return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1_000_000)


def _resolved(file: Layer, overrides: Sequence[str], name: str, *, of_run: bool = False) -> RunConfig:
    """Lay everything over everything, check it, and fill in what is left open."""
    layers = [Layer(default_kinds())]
    try:
        file = upgraded(file)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    command_line = upgraded(read_overrides(overrides), file)
    plugins.load_requested()
    named = _plugin_names(file.values.get("plugins"), place_of(("plugins",), file, name))
    asked = _plugin_names(command_line.values.get("plugins"), COMMAND_LINE)
    for module in [*asked, *([] if of_run else named)]:
        plugins.load(module)
    if of_run:
        plugins.require(named, name)
    corpus_layer = None if of_run else _corpus_layer(file, command_line, name)
    for said, default in ((file, name), (command_line, COMMAND_LINE)):
        if corpus_layer is not None and corpus_layer[0] is said:
            layers.append(corpus_layer[1])
        values = dict(said.values)
        chosen = values.pop("preset", None)
        layers += _presets(chosen, place_of(("preset",), said, default))
        layers.append(Layer(values, said.places))
    layer = stack(*layers)
    inherit = not of_run and _starts(layer)
    if not inherit and (kind := _default_encoder(layer, file, command_line)):
        # What is said of the encoder without its kind is said of this one; presets describe encoders of text.
        rest = [_without_encoder(one) if one.presets else one for one in layers[1:]]
        layer = stack(layers[0], Layer({"model": {"encoder": {"kind": kind}}}), *rest)
    try:
        if inherit:
            layer = stack(layers[0], Layer(inherited(layer.values, TASKS.items())), *layers[1:])
    except UsageError as error:
        raise with_place(error, layer, name) from None
    try:
        config = RunConfig.model_validate(layer.values, strict=True)
    except ValidationError as error:
        raise refusal(error, layer, name) from None
    try:
        for said in (file, command_line):
            config.refuse_unused(said.values)
        if inherit:
            # Before a cell that is half inherited is called impossible.
            refuse_differences(config, layer.presets, resolved=False)
            config = config.resolved()
            refuse_differences(config, layer.presets)
            return config
        return config.resolved()
    except UsageError as error:
        raise with_place(error, layer, name) from None


def _corpus_layer(file: Layer, command_line: Layer, name: str) -> tuple[Layer, Layer] | None:
    """Return the settings of the public corpus that `data.corpus` names, after the layer that names it."""
    for said, default in ((command_line, COMMAND_LINE), (file, name)):
        data = said.values.get("data")
        corpus = data.get("corpus") if isinstance(data, Mapping) else None
        if isinstance(corpus, str):
            from regard.config.corpora import corpus_settings

            place = place_of(("data", "corpus"), said, default)
            try:
                values = {"data": corpus_settings(corpus)}
            except RegardError as error:
                raise UsageError(f"{place}: {error}") from None
            return said, Layer(values, dict.fromkeys(leaves(values), place))
    return None


def _starts(layer: Layer) -> bool:
    model = layer.values.get("model")
    return isinstance(model, Mapping) and model.get("start_from") is not None


def _default_encoder(whole: Layer, *said: Layer) -> str | None:
    """The kind of encoder that the input of the task asks for, where neither file nor command line names a kind."""
    section = whole.values.get("task")
    kind = section.get("kind") if isinstance(section, Mapping) else None
    if not isinstance(kind, str) or kind not in TASKS or not (wanted := TASKS[kind].input_kind().encoders):
        return None
    for layer in said:
        model = layer.values.get("model")
        encoder = model.get("encoder") if isinstance(model, Mapping) else None
        if encoder is not None and (not isinstance(encoder, Mapping) or "kind" in encoder):
            return None
    return wanted[0]


def _without_encoder(preset: Layer) -> Layer:
    """A preset without its encoder."""
    model = {name: value for name, value in preset.values.get("model", {}).items() if name != "encoder"}
    kept = {path: name for path, name in preset.presets.items() if path[:2] != ("model", "encoder")}
    return Layer({**preset.values, "model": model}, preset.places, kept)


def _plugin_names(given: Any, place: str) -> list[str]:
    """The names of extension modules that a file lists."""
    if given is None:
        return []
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise UsageError(f"{place}: plugins must be a list of module names, such as [my_module], not {noun(given)}.")
    return given


def _presets(chosen: Any, place: str) -> list[Layer]:
    """The layers of a preset's name, or of a list of names."""
    names = chosen if isinstance(chosen, list) else [] if chosen is None else [chosen]
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"{place}: preset must be the name of a preset, or a list of names, not {noun(name)}.")
        if name not in PRESETS:
            meant = nearest(name, PRESETS)
            hint = f"did you mean {meant}?" if meant else "`regard config presets` lists them."
            raise UsageError(f"{place}: {noun(name)} is not a preset; {hint}")
    return [preset_layer(name, PRESETS[name].settings, place) for name in names]


def _text(path: Path, name: str) -> str:
    """The text of a configuration file."""
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
        raise UsageError(f"{name} is over {LARGEST_FILE // 1_000_000} MB: too large to be a configuration.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name}:{line}: not UTF-8 text; save the file as UTF-8.") from None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # such as a name that is too long
        return False


def _similar(path: Path) -> str:
    """A hint at a file of nearly the same name."""
    try:
        names = [file.name for file in path.parent.iterdir()]
    except (OSError, ValueError):
        return "."
    matches = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"; did you mean {one_line(str(path.with_name(matches[0])))}?" if matches else "."


class _Dumper(yaml.SafeDumper):
    """Writes text so that it is read back as text: quoted wherever it looks like something else."""


def _text_node(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None if isinstance(scalar(text), str) and text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text_node)
