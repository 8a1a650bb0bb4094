"""Interpretation of command-line arguments: runs, settings, files, or text."""

import os
import re
from pathlib import Path

from regard.foundation.errors import RegardError, UsageError

Given = Path | str
"""A file (`-` is standard input), or text given on the command line."""

_SETTING = re.compile(r"\w+(\.\w+)*=")
_ENDING = re.compile(r"\S+\.([a-z][a-z0-9]{0,5}|TXT|CSV|TSV)")
"""A word without spaces that ends like a file name."""


def split_arguments(arguments: list[str]) -> tuple[list[Path], list[Given], list[str]]:
    """Return runs, files or texts, and settings: a run is a directory; a setting has a `=` and is not a file."""
    runs: list[Path] = []
    given: list[Given] = []
    overrides: list[str] = []
    for argument in arguments:
        if (argument and os.path.isdir(argument)) or (not runs and "=" not in argument):  # noqa: PTH112
            runs.append(Path(argument))
        elif is_setting(argument):
            overrides.append(argument)
        else:
            given.append(file_or_text(argument))
    if not runs:
        raise UsageError("Name a run. For example: regard translate runs/mine in.txt")
    return runs, given, overrides


def is_setting(argument: str) -> bool:
    """Return whether an argument is a setting, key.path=value, and not a file."""
    return bool(_SETTING.match(argument)) and not os.path.exists(argument)  # noqa: PTH110


def file_or_text(argument: str) -> Given:
    """Return an existing file as a path and anything else as text; what looks like the name of a file must be one.

    `os.path.exists` is used because it is false, and raises nothing, for a text that is too long for a file name.
    """
    if argument == "-" or (argument and os.path.exists(argument)):  # noqa: PTH110
        return Path(argument)
    if _looks_like_file(argument):
        shown = argument if len(argument) <= 100 else argument[:99] + "…"
        raise RegardError(
            f"{shown} does not exist. Check the path (it is relative to where the command runs). If it is text, not "
            "the name of a file, give it on standard input."
        )
    try:
        argument.encode()
    except UnicodeEncodeError:
        raise UsageError("The text on the command line is not valid UTF-8. Give it in a UTF-8 file instead.") from None
    return argument


def _looks_like_file(argument: str) -> bool:
    """Return whether a word has an ending such as `.txt`, or is a path into a directory that exists."""
    if argument.split() != [argument]:
        return False
    first = re.split(r"[/\\]", argument, maxsplit=1)[0]
    into = first != argument and (first in ("", ".", "..", "~") or os.path.isdir(first))  # noqa: PTH112
    return into or bool(_ENDING.fullmatch(argument))
