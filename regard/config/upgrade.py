"""Configurations that were written for earlier versions of Regard, in the words of this one."""

from collections.abc import Mapping
from typing import Any

from regard.config.document import Layer

KINDS = {
    "acceptor": "classification",
    "transducer": "tagging",
    "captions": "captioning",
    "questions": "visual-questions",
    "masked": "masked-words",
}
"""The earlier names of tasks."""


def upgraded(layer: Layer) -> Layer:
    """Return the same settings under their present names: `shape` is now `task`, and tasks have other names."""
    if "shape" not in layer.values or "task" in layer.values:
        return layer
    values = {("task" if name == "shape" else name): value for name, value in layer.values.items()}
    if isinstance(values["task"], Mapping):
        values["task"] = _task(dict(values["task"]))
    places = {(("task", *path[1:]) if path[:1] == ("shape",) else path): place for path, place in layer.places.items()}
    return Layer(values, places)


def _task(section: dict[str, Any]) -> dict[str, Any]:
    kind = section.get("kind")
    if isinstance(kind, str) and kind in KINDS:
        section["kind"] = KINDS[kind]
    output = section.get("output")
    if output in ("classes", "number") and section.get("kind") in (None, "classification"):
        del section["output"]
        section["kind"] = "classification" if output == "classes" else "regression"
        if output == "number":
            section.pop("class_weights", None)
    return section
