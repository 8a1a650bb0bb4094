"""Output files: checked before a command begins, and written in the format of their ending."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from regard.foundation.errors import UsageError


def check_places(*paths: Path | None) -> None:
    """Raise if a file cannot be written later, so that no work is lost; `None` is ignored."""
    for path in paths:
        if path is None:
            continue
        if path.is_dir():
            raise UsageError(f"{path} is a directory. Name a file in it.")
        if not path.parent.is_dir():
            raise UsageError(f"{path} cannot be written: there is no directory {path.parent}. Create it first.")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise UsageError(f"{path} cannot be written: you have no permission. Name another place.")


def check_ending(path: Path | None, endings: Iterable[str]) -> None:
    """Raise if the ending of a file is not a known format."""
    if path is not None and path.suffix.lower() not in endings:
        raise UsageError(f"The ending of {path} is not a known format. Use one of {', '.join(endings)}.")


def write_by_ending(path: Path, found: Any, forms: Mapping[str, Callable[[Path], None]]) -> None:
    """Write a result: `.json` and `.txt` from its `facts()` and its text, other endings by their own function."""
    from regard.foundation import durable

    ending = path.suffix.lower()
    if ending in forms:
        forms[ending](path)
    elif ending == ".json":
        durable.write(path, json.dumps(found.facts(), indent=2, ensure_ascii=False) + "\n")
    else:
        durable.write(path, f"{found}\n")
