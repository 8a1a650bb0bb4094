"""The exported model of a run, kept inside it: made once, made anew when the weights change, whole or not there."""

import json
import os
import sys
from atexit import register
from pathlib import Path
from typing import Any

from regard import durable
from regard.interop.facts import Facts, facts_of
from regard.run import Run

NOTE = "regard.json"
FORM = 3
"""Changes when the export itself does, so that older ones are made anew."""


def cached_model(run: Run, quantize: str) -> Path:
    """The directory of a run's model for CTranslate2; exported now, if it is not there or is of other weights."""
    place = run.directory / "engines" / f"ctranslate2-{quantize}"
    mark = _mark(run)
    known = _marked(place)
    if known is not None and {key: known.get(key) for key in mark} == mark:
        return place
    aside = _room(place)
    try:
        from regard.interop.to_ctranslate2 import write_ctranslate2

        print(f"Exporting {run.directory} for CTranslate2 ({quantize}); this is done once.", file=sys.stderr)
        write_ctranslate2(run, aside, quantize)
        durable.write(aside / NOTE, json.dumps(mark | {"facts": facts_of(run, run.config)}))
        return _put(aside, place)
    except BaseException:
        _remove(aside)
        raise


def cached_facts(place: Path) -> Facts:
    """The facts of the run that an export is of."""
    return Facts(*(_marked(place) or {})["facts"])


def _mark(run: Run) -> dict[str, Any]:
    """What the export depends on, without reading it: the weights' file, and all that run.json says of tokenizers."""
    path = run.weights
    facts = path.stat()
    config = run.directory / "config.yaml"
    return {
        "form": FORM,
        "weights": [str(path.relative_to(run.directory)), facts.st_size, facts.st_mtime_ns],
        "config": [config.stat().st_size, config.stat().st_mtime_ns],
        "tokenizers": run.info.get("tokenizers"),
    }


def _marked(place: Path) -> dict[str, Any] | None:
    try:
        mark = json.loads((place / NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = isinstance(mark, dict) and "facts" in mark and (place / "model.bin").is_file()
    return mark if whole else None


def _room(place: Path) -> Path:
    """A new directory beside the place; where the run cannot be written, one that ends with this process."""
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
    """The directory in its place; where another process has been quicker, or nothing can be moved, as it stands."""
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
