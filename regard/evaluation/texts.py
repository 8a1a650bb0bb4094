"""Files of sentences, one a line, that belong together line by line."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.data.lines import read_lines
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress

if TYPE_CHECKING:
    from regard.tasks.loaded import LoadedRun

CHUNK = 500
"""Sentences translated before the bar moves: enough to sort by length."""


def read_texts(path: Path) -> list[str]:
    """Return the lines of a file, of which there must be at least one."""
    lines = list(read_lines(path, whole=True))
    if not lines:
        raise RegardError(f"{path} is empty: at least one line is wanted.")
    return lines


def read_aligned(*paths: Path) -> list[list[str]]:
    """Return the lines of several files; numbers of lines that differ are refused."""
    found = [read_texts(path) for path in paths]
    for path, lines in zip(paths, found, strict=True):
        if len(lines) != len(found[0]):
            raise UsageError(
                f"{paths[0]} has {len(found[0]):,} lines, but {path} has {len(lines):,}: line by line they must belong "
                "together."
            )
    return found


def named_files(given: Sequence[str]) -> dict[str, Path]:
    """Return files by the names given to them as NAME=FILE; a name must be there, and only once."""
    found: dict[str, Path] = {}
    for each in given:
        name, equals, path = each.partition("=")
        if not (name and equals and path):
            raise UsageError(f"`{each}` names no file. Write it as NAME=FILE, for example mine=out.de.")
        if name in found:
            raise UsageError(f"Two systems are called `{name}`. Give each a name of its own.")
        found[name] = Path(path)
    return found


def translated(
    translator: "LoadedRun", sources: Sequence[str], *, beam: int | None = None, progress: Progress | None = None
) -> list[str]:
    """Return what a run makes of each source, on one line each, as `regard translate` writes it."""
    outputs: list[str] = []
    for start in range(0, len(sources), CHUNK):
        outputs += translator.translate(list(sources[start : start + CHUNK]), beam=beam)
        if progress:
            progress("translating", len(outputs), len(sources))
    return [" ".join(output.splitlines()) for output in outputs]
