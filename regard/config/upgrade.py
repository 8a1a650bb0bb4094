"""Upgrade configurations that were written for earlier versions of Regard."""

from collections.abc import Mapping
from typing import Any

from regard.config.document import Layer
from regard.foundation.errors import UsageError

KINDS = {
    "acceptor": "classification",
    "transducer": "tagging",
    "captions": "captioning",
    "questions": "visual-questions",
    "masked": "masked-words",
}
"""The earlier names of tasks."""


def upgrade(layer: Layer, below: Layer | None = None) -> Layer:
    """Return the settings under their current names: `shape` is now `task`, and tasks have other names.

    `below` is the upgrade layer that this one overrides: an `acceptor` over a regression stays a regression, as it
    kept its `output`.
    """
    if "shape" not in layer.values:
        return layer
    values = {name: value for name, value in layer.values.items() if name != "shape"}
    section = layer.values["shape"]
    if isinstance(section, Mapping):
        section = _task(dict(section), below)
    values["task"] = _merge_sections(section, values["task"]) if "task" in values else section
    places = {
        (("task", *path[1:]) if path[:1] == ("shape",) else path): location for path, location in layer.places.items()
    }
    return Layer(values, places)


def _merge_sections(earlier: Any, present: Any) -> Any:
    """Return the settings of `shape` and of `task` as one section."""
    if isinstance(earlier, Mapping) and isinstance(present, Mapping) and not set(earlier) & set(present):
        return {**earlier, **present}
    raise UsageError("`shape` is the earlier name of `task`. Give each setting once, under `task`.")


def _task(section: dict[str, Any], below: Layer | None) -> dict[str, Any]:
    kind = section.get("kind")
    held = below.values.get("task") if below else None
    regression = isinstance(held, Mapping) and held.get("kind") == "regression"
    if regression and kind == "acceptor" and not {"output", "class_weights"} & set(section):
        section["kind"] = kind = "regression"
    if isinstance(kind, str) and kind in KINDS:
        section["kind"] = KINDS[kind]
    output = section.get("output")
    if output in ("classes", "number") and section.get("kind") in (None, "classification"):
        del section["output"]
        section["kind"] = "classification" if output == "classes" else "regression"
        if output == "number":
            section.pop("class_weights", None)
    return section
