"""Runs that start from another run (`model.start_from`): inherited settings, and settings that must not differ.

The weights belong to a model and to tokenizers, so the new run has the same ones. Regularisation (dropout) and
everything about training are its own.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from regard.config.document import Path as Place
from regard.config.document import one_line
from regard.config.model import ImageEncoder, SideSettings
from regard.config.task import TaskSettings
from regard.foundation.errors import UsageError

if TYPE_CHECKING:
    from regard.config.run import RunConfig

Side = Literal["source", "target"]

OWN = ("model.start_from", "model.dropout", "model.attention.dropout", "decoding.batch_tokens")
"""Settings that may differ, since neither weights nor outputs depend on them."""

ATTENTION = ("heads", "score", "project", "keys_values")
VECTORS = ("width", "scale", "norm")


def inherited_settings(values: Mapping[str, Any], tasks: Mapping[str, type[TaskSettings]]) -> dict[str, Any]:
    """Return the settings that a new configuration with the settings `values` inherits from `model.start_from`."""
    model, task = values.get("model"), values.get("task")
    start = model.get("start_from") if isinstance(model, Mapping) else None
    kind = task.get("kind") if isinstance(task, Mapping) else None
    own = tasks.get(kind) if isinstance(kind, str) else None
    if not isinstance(start, str) or not start or own is None:
        return {}
    other = base_config(start)
    found: dict[str, Any] = {}
    for path in _inherited_paths(own, other):
        value = _value(other, _path_in_other(path, own, other))
        section = found
        *above, last = path.split(".")
        for name in above:
            section = section.setdefault(name, {})
        section[last] = value.model_dump(mode="json", exclude_none=True) if isinstance(value, BaseModel) else value
    for path in ("model.start_from", "decoding.batch_tokens"):
        first, last = path.split(".")
        found.get(first, {}).pop(last, None)
    return found


def refuse_differences(
    config: "RunConfig", presets: Mapping[Place, str] | None = None, *, resolved: bool = True
) -> None:
    """Raise, before data is read, if a configuration contradicts the run that it starts from.

    `presets` names the preset that a setting comes from. In a configuration that is not resolved yet, parts that the
    task does not use still have their defaults.
    """
    if config.model.start_from is None:
        return
    other = base_config(config.model.start_from)
    for path in _inherited_paths(type(config.task), other):
        both = _value(config, path), _value(other, _path_in_other(path, type(config.task), other))
        for setting, here, there in _compare(*both, path):
            open_yet = not resolved and there is None and not setting.startswith("text.")
            without_ctc = setting == "decoding.ctc" and config.task.has_ctc != other.task.has_ctc
            if setting not in OWN and not setting.startswith("data.") and not open_yet and not without_ctc:
                preset = _preset(setting, presets or {})
                raise UsageError(
                    f"{setting} is {_format_value(here)} here, but {_format_value(there)} in "
                    f"{config.model.start_from}, which model.start_from names. A run has the model, the tokenizers and "
                    "the search of the run it starts from. Remove "
                    f"{f'the preset {preset}' if preset else setting}{_format_remedy(setting, there)}."
                )


def base_config(start: str) -> "RunConfig":
    """Return the configuration of the run that `model.start_from` names."""
    from regard.config.loading import load

    if not (Path(start) / "run.json").is_file():
        what = "is not a run (it has no run.json)" if Path(start).exists() else "does not exist"
        raise UsageError(f"model.start_from cannot be used: {one_line(start)} {what}. Name the directory of a run.")
    return load(Path(start) / "config.yaml")


def tokenizer_sides(config: "RunConfig") -> tuple[Side | None, Side | None]:
    """Return which tokenizers of `model.start_from` a run uses on its source and on its target side.

    `None`: the run trains its own. A run that answers questions takes only the image encoder of a captioning run, so
    it trains its own tokenizer.
    """
    if config.model.start_from is None:
        return None, None
    own, other = config.task, base_config(config.model.start_from).task
    if takes_image_encoder(type(own), other) or not has_tokenizer(type(other)):
        return None, None
    reads, writes = reads_text(type(other)), other.output_kind().decoder
    source: Side = "source" if reads else "target"
    target: Side | None = "target" if writes else "source"
    if not writes and reads_text(type(own)) and own.output_kind().decoder and not config.text.shared:
        target = None  # the target has its own vocabulary, which is new
    return source, target


def takes_image_encoder(task: type[TaskSettings], other: TaskSettings) -> bool:
    """Return whether only the image encoder of the other run is used."""
    return _reads_both(task) and not _reads_both(type(other))


def _reads_both(task: type[TaskSettings]) -> bool:
    reads = task.input_kind()
    return reads.text and reads.image


def reads_text(task: type[TaskSettings]) -> bool:
    """Return whether a task has a text encoder."""
    return task.input_kind().encoder and task.input_kind().text


def has_tokenizer(task: type[TaskSettings]) -> bool:
    """Return whether runs of a task have a tokenizer: a classifier of sounds has neither text input nor text output."""
    return reads_text(task) or task.output_kind().tokens


def _inherited_paths(task: type[TaskSettings], other: "RunConfig") -> Iterator[str]:
    """Yield the settings, or whole sections, that a run shares with the run that it starts from."""
    model, there = other.model, type(other.task)
    if takes_image_encoder(task, other.task):
        if isinstance(model.encoder, ImageEncoder):
            yield "model.picture"
            if model.encoder.attends:
                yield from ("model.norm_epsilon", "model.attention.score", "model.attention.heads")
        return
    if task is there:
        yield "model"
        yield from ("text.tokenizer", "text.target", "text.joint")
        if task.output_kind().decoder:
            yield "decoding"
    else:
        ours, theirs = task.input_kind(), there.input_kind()
        reads = ours.encoder and theirs.encoder and (ours.image, ours.sound) == (theirs.image, theirs.sound)
        writes = task.output_kind().decoder and there.output_kind().decoder
        parts = [part for part, both in (("encoder", reads), ("decoder", writes)) if both]
        yield from (f"model.{part}" for part in parts)
        yield from (f"model.embeddings.{name}" for name in VECTORS)
        yield from ("model.width", "model.norm_epsilon")
        if has_tokenizer(there):
            yield "text.tokenizer"
        sides: list[SideSettings | None] = [getattr(model, part) for part in parts]
        if any(side is not None and side.attends for side in sides):
            yield from (f"model.attention.{name}" for name in ATTENTION)
        if any(side is not None and side.uses_positions for side in sides):
            yield "model.positions"
        if writes:
            yield "decoding"
    if model.positions is not None and model.positions.kind == "learned":
        yield "data.cleaning.max_length"


def _path_in_other(path: str, task: type[TaskSettings], other: "RunConfig") -> str:
    """Return the path of a setting in the other run; a captioning run has its image encoder as its only encoder."""
    return "model.encoder" if path == "model.picture" and takes_image_encoder(task, other.task) else path


def _value(config: "RunConfig", path: str) -> Any:
    """Return the setting, or section, at a path."""
    value: Any = config
    for name in path.split("."):
        value = getattr(value, name)
    return value


def _compare(here: Any, there: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(here, BaseModel) and type(here) is type(there):
        for name in type(here).model_fields:
            yield from _compare(getattr(here, name), getattr(there, name), f"{path}.{name}")
    elif isinstance(here, BaseModel) and isinstance(there, BaseModel) and hasattr(here, "kind"):
        yield f"{path}.kind", here.kind, getattr(there, "kind", None)
    elif here != there:
        yield path, here, there


def _preset(place: str, presets: Mapping[Place, str]) -> str | None:
    """Return the preset that a setting, or the kind of a section, comes from."""
    path = tuple(place.split("."))
    return presets.get(path) or presets.get((*path, "kind"))


def _format_value(value: Any) -> str:
    if isinstance(value, BaseModel):
        return str(getattr(value, "kind", "a section"))
    if isinstance(value, bool):
        return str(value).lower()  # as YAML writes it
    return "not set" if value is None else str(value)


def _format_remedy(place: str, there: Any) -> str:
    return "" if there is None or isinstance(there, BaseModel) else f", or set {place}={_format_value(there)}"
