"""Files of sentences, one a line, that belong together line by line."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from regard.data.lines import read_lines
from regard.data.progress import Progress
from regard.errors import RegardError, UsageError
from regard.translator import Translator

CHUNK = 500
"""Sentences translated before the bar moves: enough to sort by length."""


def read_texts(path: Path) -> list[str]:
    """The lines of a file, of which there must be at least one."""
    lines = list(read_lines(path))
    if not lines:
        raise RegardError(f"{path} is empty: at least one line is wanted.")
    return lines


def read_aligned(files: Mapping[str, Path]) -> dict[str, list[str]]:
    """The lines of several files by name; numbers of lines that differ are refused."""
    found = {name: read_texts(path) for name, path in files.items()}
    first, *others = files
    for other in others:
        if len(found[other]) != len(found[first]):
            raise UsageError(
                f"{files[first]} has {len(found[first]):,} lines, but {files[other]} has {len(found[other]):,}: "
                "line by line they must belong together."
            )
    return found


def translated(
    translator: Translator, sources: Sequence[str], *, beam: int | None = None, progress: Progress | None = None
) -> list[str]:
    """What a run makes of each source, on one line each, as `regard translate` writes it."""
    outputs: list[str] = []
    for start in range(0, len(sources), CHUNK):
        outputs += translator.translate(list(sources[start : start + CHUNK]), beam=beam)
        if progress:
            progress("translating", len(outputs), len(sources))
    return [" ".join(output.splitlines()) for output in outputs]
