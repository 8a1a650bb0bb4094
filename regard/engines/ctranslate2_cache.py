"""Cache of the exported model inside a run: created atomically, and again when the weights change."""

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
FORM = 5
"""Version of the export; older ones are created again."""


def cached_model(run: Run, quantize: str) -> Path:
    """Return the directory of a run's model for CTranslate2, exporting it if it is missing or out of date."""
    place = run.directory / "engines" / f"ctranslate2-{quantize}"
    mark = _current_state(run)
    if is_exported(run, quantize):
        return place
    library()
    from regard.formats.to_ctranslate2 import check_cell, write_ctranslate2

    check_cell(run.config.model)
    aside = _make_directory(place)
    try:
        note(f"Exporting {run.directory} for CTranslate2 ({quantize}); this is done once.")
        write_ctranslate2(run, aside, quantize)
        files = {file.name: _stamp(file) for file in aside.iterdir()}
        durable.write(aside / NOTE, json.dumps(mark | {"facts": facts_of(run, run.config), "files": files}))
        return _move_into_place(aside, place)
    except BaseException:
        _remove(aside)
        raise


def is_exported(run: Run, quantize: str) -> bool:
    """Return whether the export of a run exists and is up to date; if not, `cached_model` imports torch."""
    mark = _current_state(run)
    known = _recorded_state(run.directory / "engines" / f"ctranslate2-{quantize}")
    return known is not None and {key: known.get(key) for key in mark} == mark


def cached_facts(place: Path) -> Facts:
    """Return the facts of the run of an export."""
    return Facts(*(_recorded_state(place) or {})["facts"])


def _current_state(run: Run) -> dict[str, Any]:
    """Return what the export depends on, without reading it: file stamps of the weights, and the tokenizers."""
    path = run.weights
    return {
        "form": FORM,
        "weights": [str(path.relative_to(run.directory)), *_stamp(path)],
        "config": _stamp(run.directory / "config.yaml"),
        "tokenizers": run.info.get("tokenizers"),
    }


def _recorded_state(place: Path) -> dict[str, Any] | None:
    """Return the recorded state of an intact export; `None` if it is missing or damaged."""
    try:
        mark: dict[str, Any] = json.loads((place / NOTE).read_text(encoding="utf-8"))
        whole = all(_stamp(place / name) == stamp for name, stamp in mark["files"].items())
        return mark if whole and mark["facts"] else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _stamp(file: Path) -> list[int]:
    """Return the size and modification time of a file."""
    facts = file.stat()
    return [facts.st_size, facts.st_mtime_ns]


def _make_directory(place: Path) -> Path:
    """Return a new temporary directory next to the place; if the run is read-only, one that is removed at exit."""
    aside = place.with_name(f".{place.name}.aside-{os.getpid()}")
    try:
        _remove(aside)
        aside.mkdir(parents=True)
    except OSError:
        import tempfile

        aside = Path(tempfile.mkdtemp(prefix="regard-"))
        register(_remove, aside)
    return aside


def _move_into_place(aside: Path, place: Path) -> Path:
    """Move the directory to its place and return it; if another process was faster, return the existing one."""
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
