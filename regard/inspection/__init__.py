"""Analyses of a trained model, and the pages, pictures and tables that show them.

    import regard
    from regard import inspection

    trace = regard.load("runs/mine").trace("source text")
    inspection.attention(trace).save("page.html")

`inspection.NAME` is the function `NAME` of `regard/inspection/analyses/NAME/compute.py`; it is imported when it is
first used, and no other analysis with it. `regard.inspection.registry` lists them all.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

MORE = {
    "attribute_corpus": "attribute.over_corpus",
    "contributions_corpus": "contributions.over_corpus",
    "identify_corpus": "identify.identification",
    "lens_corpus": "lens.over_corpus",
    "patch_corpus": "patch.over_corpus",
    "patch_pairs": "patch.pairs",
    "report": "all.compute",
}
"""Functions that are not called like their analysis, and where they are."""


def __getattr__(name: str) -> Any:
    """Import an analysis when it is first used."""
    if name not in MORE and name not in _analyses():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = MORE.get(name, f"{name}.compute")
    return getattr(import_module(f"regard.inspection.analyses.{module}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_analyses(), *MORE])


def _analyses() -> list[str]:
    """Return the names of the analyses: the folders that have a computation."""
    folders = import_module("regard.inspection.analyses").__path__
    return [found.parent.name for folder in folders for found in Path(folder).glob("*/compute.py")]
