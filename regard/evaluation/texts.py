"""Parallel files of sentences, one per line."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.data.lines import read_lines
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress

if TYPE_CHECKING:
    from regard.tasks.loaded import LoadedRun

CHUNK = 500
"""Sentences per update of the progress bar: enough to sort by length."""


def read_texts(path: Path) -> list[str]:
    """Return the lines of a file; raises if it is empty."""
    lines = list(read_lines(path, whole=True))
    if not lines:
        raise RegardError(f"{path} is empty. It must have at least one line.")
    return lines


def read_aligned(*paths: Path) -> list[list[str]]:
    """Return the lines of several files; raises if their numbers of lines differ."""
    found = [read_texts(path) for path in paths]
    for path, lines in zip(paths, found, strict=True):
        if len(lines) != len(found[0]):
            raise UsageError(
                f"{paths[0]} has {len(found[0]):,} lines, but {path} has {len(lines):,}: line by line they must belong "
                "together."
            )
    return found


def named_files(given: Sequence[str]) -> dict[str, Path]:
    """Return files by name from arguments NAME=FILE; raises if a name is missing or occurs twice."""
    found: dict[str, Path] = {}
    for argument in given:
        name, equals, path = argument.partition("=")
        if not (name and equals and path):
            raise UsageError(f"`{argument}` names no file. Write it as NAME=FILE, for example mine=out.de.")
        if name in found:
            raise UsageError(f"Two systems are called `{name}`. Give each a different name.")
        found[name] = Path(path)
    return found


def translate_lines(
    translator: "LoadedRun", sources: Sequence[str], *, beam: int | None = None, progress: Progress | None = None
) -> list[str]:
    """Translate sources with a run; one line each, as `regard translate` writes them: long ones in parts."""
    from regard.search import Search

    outputs: list[str] = []
    for start in range(0, len(sources), CHUNK):
        outputs += translator.translate(list(sources[start : start + CHUNK]), Search(split=None), beam=beam)
        if progress:
            progress("translating", len(outputs), len(sources))
    return [" ".join(output.splitlines()) for output in outputs]
