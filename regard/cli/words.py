"""What the words of a command that uses runs stand for."""

import re
from pathlib import Path

from regard.foundation.errors import UsageError


def told_apart(arguments: list[str]) -> tuple[list[Path], list[Path], list[str]]:
    """Runs, files and settings: a run is a directory, a setting has a `=` and is no file."""
    runs: list[Path] = []
    files: list[Path] = []
    overrides: list[str] = []
    for argument in arguments:
        path = Path(argument)
        if path.is_dir() or (not runs and "=" not in argument):
            runs.append(path)
        elif re.match(r"\w+(\.\w+)*=", argument) and not path.exists():
            overrides.append(argument)
        else:
            files.append(path)
    if not runs:
        raise UsageError("Which run? For example: regard translate runs/mine in.txt")
    return runs, files, overrides
