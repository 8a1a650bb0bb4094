"""A run that starts from another (`model.start_from`): which of its settings it inherits, and which must not differ.

The weights that are taken over belong to a cell and to tokenizers, so a new run has the same ones. Regularisation
(dropout) and everything about training are its own.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from regard.config.document import Path as Place
from regard.config.model import Decoder, Encoder, ImageEncoder, attends
from regard.config.shape import _Shape as Shape
from regard.foundation.errors import UsageError

if TYPE_CHECKING:
    from regard.config.run import RunConfig

Side = Literal["source", "target"]

OWN = ("model.start_from", "model.dropout", "model.attention.dropout", "decoding.batch_tokens")
"""Settings that a run may have for itself: no weight depends on them, and neither does what the model says."""

ATTENTION = ("heads", "score", "project", "keys_values")
VECTORS = ("width", "scale", "norm")


def inherited(values: Mapping[str, Any], shapes: Mapping[str, type[Shape]]) -> dict[str, Any]:
    """The settings that a new configuration, whose own are `values`, inherits from the run that it starts from."""
    model, shape = values.get("model"), values.get("shape")
    start = model.get("start_from") if isinstance(model, Mapping) else None
    kind = shape.get("kind") if isinstance(shape, Mapping) else None
    own = shapes.get(kind) if isinstance(kind, str) else None
    if not isinstance(start, str) or not start or own is None:
        return {}
    other = base_config(start)
    found: dict[str, Any] = {}
    for path in _inherited_paths(own, other):
        value = _value(other, _there(path, own, other))
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
    """Refuse a configuration that says something else than the run that it starts from, before any data is read.

    `presets` names the preset that a setting comes from. In a configuration that is not resolved yet, parts that the
    shape leaves off still have their defaults.
    """
    if config.model.start_from is None:
        return
    other = base_config(config.model.start_from)
    for path in _inherited_paths(type(config.shape), other):
        both = _value(config, path), _value(other, _there(path, type(config.shape), other))
        for place, here, there in _compare(*both, path):
            open_yet = not resolved and there is None and not place.startswith("text.")
            if place not in OWN and not place.startswith("data.") and not open_yet:
                preset = _preset(place, presets or {})
                raise UsageError(
                    f"{place} is {_shown(here)} here and {_shown(there)} in {config.model.start_from}, which "
                    f"model.start_from names: a run has the cell, the tokenizers and the search of the run it starts "
                    f"from. Remove {f'the preset {preset}' if preset else place}{_setting(place, there)}."
                )


def base_config(start: str) -> "RunConfig":
    """The configuration of the run that `model.start_from` names."""
    from regard.config.loading import load

    if not (Path(start) / "run.json").is_file():
        what = "is not a run (it has no run.json)" if Path(start).exists() else "does not exist"
        raise UsageError(f"model.start_from cannot be used: {start} {what}. Name the directory of a run.")
    return load(Path(start) / "config.yaml")


def tokenizer_sides(config: "RunConfig") -> tuple[Side | None, Side | None]:
    """Which tokenizer of the run that it starts from a run has on its source and on its target side.

    `None`: one of its own, which is learnt. Only the image encoder of a captioning run can be taken into a run that
    answers questions, so that one learns its own words.
    """
    if config.model.start_from is None:
        return None, None
    own, other = config.shape, base_config(config.model.start_from).shape
    if takes_eyes(type(own), other):
        return None, None
    reads, writes = reads_text(type(other)), other.decoder
    source: Side = "source" if reads else "target"
    target: Side | None = "target" if writes else "source"
    if not writes and own.encoder and not own.pictures and not config.text.shared:
        target = None  # the target has a vocabulary of its own, which the other run has never seen
    return source, target


def takes_eyes(shape: type[Shape], other: Shape) -> bool:
    """Whether only the image encoder of the other run is taken over."""
    return shape.beside and not other.beside


def reads_text(shape: type[Shape]) -> bool:
    """Whether a shape has an encoder of text."""
    return shape.encoder and (shape.beside or not shape.pictures)


def _inherited_paths(shape: type[Shape], other: "RunConfig") -> Iterator[str]:
    """The settings, or whole sections, that a run of a shape has in common with the run that it starts from."""
    model, there = other.model, type(other.shape)
    if takes_eyes(shape, other.shape):
        if isinstance(model.encoder, ImageEncoder):
            yield "model.picture"
            if attends(model.encoder):
                yield from ("model.norm_epsilon", "model.attention.score", "model.attention.heads")
        return
    if shape is there:
        yield "model"
        yield from ("text.tokenizer", "text.target", "text.joint")
        if shape.decoder:
            yield "decoding"
    else:
        reads = shape.encoder and there.encoder and shape.pictures == there.pictures
        writes = shape.decoder and there.decoder
        parts = [part for part, both in (("encoder", reads), ("decoder", writes)) if both]
        yield from (f"model.{part}" for part in parts)
        yield from (f"model.embeddings.{name}" for name in VECTORS)
        yield from ("model.width", "model.norm_epsilon", "text.tokenizer")
        sides: list[Encoder | Decoder | None] = [getattr(model, part) for part in parts]
        if any(side is not None and attends(side) for side in sides):
            yield from (f"model.attention.{name}" for name in ATTENTION)
        if any(side is not None and side.kind in ("transformer", "conv") for side in sides):
            yield "model.positions"
        if writes:
            yield "decoding"
    if model.positions is not None and model.positions.kind == "learned":
        yield "data.cleaning.max_length"


def _there(path: str, shape: type[Shape], other: "RunConfig") -> str:
    """Where the other run has a setting: its image encoder is the only encoder of a captioning run."""
    return "model.encoder" if path == "model.picture" and takes_eyes(shape, other.shape) else path


def _value(config: "RunConfig", path: str) -> Any:
    """The setting, or section, at a path."""
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
    """The preset that a setting, or the kind of a section, comes from."""
    path = tuple(place.split("."))
    return presets.get(path) or presets.get((*path, "kind"))


def _shown(value: Any) -> str:
    if isinstance(value, BaseModel):
        return str(getattr(value, "kind", "a section"))
    if isinstance(value, bool):
        return str(value).lower()  # as YAML writes it
    return "not set" if value is None else str(value)


def _setting(place: str, there: Any) -> str:
    return "" if there is None or isinstance(there, BaseModel) else f", or set {place}={_shown(there)}"
