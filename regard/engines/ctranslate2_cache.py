"""The exported model of a run, kept inside it: made once, made anew when the weights change, whole or not there."""

import json
import os
from atexit import register
from pathlib import Path
from typing import Any

from regard.engines.facts import Facts, facts_of
from regard.formats.ctranslate2_library import library
from regard.foundation import durable
from regard.foundation.display import note
from regard.runs.run import Run

NOTE = "regard.json"
FORM = 4
"""Changes when the export itself does, so that older ones are made anew."""


def cached_model(run: Run, quantize: str) -> Path:
    """Return the directory of a run's model for CTranslate2; exported now, if it is not there or is of other weights."""
    place = run.directory / "engines" / f"ctranslate2-{quantize}"
    mark = _mark(run)
    known = _marked(place)
    if known is not None and {key: known.get(key) for key in mark} == mark:
        return place
    library()
    from regard.formats.to_ctranslate2 import check_cell, write_ctranslate2

    check_cell(run.config.model)
    aside = _room(place)
    try:
        note(f"Exporting {run.directory} for CTranslate2 ({quantize}); this is done once.")
        write_ctranslate2(run, aside, quantize)
        files = {file.name: _stamp(file) for file in aside.iterdir()}
        durable.write(aside / NOTE, json.dumps(mark | {"facts": facts_of(run, run.config), "files": files}))
        return _put(aside, place)
    except BaseException:
        _remove(aside)
        raise


def cached_facts(place: Path) -> Facts:
    """Return the facts of the run that an export is of."""
    return Facts(*(_marked(place) or {})["facts"])


def _mark(run: Run) -> dict[str, Any]:
    """Return what the export depends on, without reading it: the weights' file, and all that run.json says of tokenizers."""
    path = run.weights
    return {
        "form": FORM,
        "weights": [str(path.relative_to(run.directory)), *_stamp(path)],
        "config": _stamp(run.directory / "config.yaml"),
        "tokenizers": run.info.get("tokenizers"),
    }


def _marked(place: Path) -> dict[str, Any] | None:
    """Return what stands beside an export whose files are as they were written; nothing, where something is amiss."""
    try:
        mark: dict[str, Any] = json.loads((place / NOTE).read_text(encoding="utf-8"))
        whole = all(_stamp(place / name) == stamp for name, stamp in mark["files"].items())
        return mark if whole and mark["facts"] else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _stamp(file: Path) -> list[int]:
    """Return the size of a file, and when it was written."""
    facts = file.stat()
    return [facts.st_size, facts.st_mtime_ns]


def _room(place: Path) -> Path:
    """Return a new directory beside the place; where the run cannot be written, one that ends with this process."""
    aside = place.with_name(f".{place.name}.aside-{os.getpid()}")
    try:
        _remove(aside)
        aside.mkdir(parents=True)
    except OSError:
        import tempfile

        aside = Path(tempfile.mkdtemp(prefix="regard-"))
        register(_remove, aside)
    return aside


def _put(aside: Path, place: Path) -> Path:
    """Return the directory in its place; where another process has been quicker, or nothing can be moved, as it stands."""
    if aside.parent != place.parent:
        return aside
    for file in aside.iterdir():
        durable.flush(file)
    old = place.with_name(f".{place.name}.old-{os.getpid()}")
    try:
        if place.exists():
            place.rename(old)
        aside.rename(place)
        durable.flush(place.parent)
    except OSError:
        register(_remove, aside)
        return aside
    finally:
        _remove(old)
    return place


def _remove(directory: Path) -> None:
    import shutil

    shutil.rmtree(directory, ignore_errors=True)
