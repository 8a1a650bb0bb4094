"""Places that a command writes to in the end, looked at before it begins: an hour's work is not to be lost there."""

import os
from pathlib import Path

from regard.foundation.errors import UsageError


def check_places(*paths: Path | None) -> None:
    """Refuse files that could not be written later; `None` is no file."""
    for path in paths:
        if path is None:
            continue
        if path.is_dir():
            raise UsageError(f"{path} is a directory: name a file in it.")
        if not path.parent.is_dir():
            raise UsageError(f"{path} cannot be written: there is no directory {path.parent}. Make it first.")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise UsageError(f"{path} cannot be written: you have no permission. Name another place.")
