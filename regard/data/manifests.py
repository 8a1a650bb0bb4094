"""Manifests: files that name sounds or pictures with their texts, in columns counted from 1."""

from collections.abc import Iterator
from pathlib import Path

from regard.data.lines import read_lines
from regard.data.tables import table_rows
from regard.foundation.errors import RegardError

SOUND_ENDINGS = (".wav", ".flac", ".ogg")
PICTURE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp")
TABLES = (".csv", ".tsv", ".xlsx", ".parquet")
"""Endings of manifests that are tables; all others but JSON have columns separated by tabs, without quotation marks."""


def manifest_rows(path: str, *, header: bool, last: int, settings: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the location and the columns of each row that is not empty, without the header.

    Args:
        path: The manifest.
        header: Whether its first row names the columns.
        last: The last column that is needed; raises for a row with fewer columns.
        settings: The settings that choose the columns, for messages.
    """
    ending = Path(path.removesuffix(".gz")).suffix.lower()
    lines = ((number, line.split("\t")) for number, line in enumerate(read_lines(path), start=1))
    rows = table_rows(path) if ending in TABLES else lines
    for index, (number, columns) in enumerate(rows):
        if not any(cell.strip() for cell in columns) or (index == 0 and header):
            continue
        if len(columns) < last:
            separated = "" if ending in TABLES and ending != ".tsv" else "tab-separated "
            raise RegardError(
                f"{path}:{number} has {len(columns)} {separated}columns, but column {last} is needed. Correct the "
                f"line, or set {settings}."
            )
        yield f"{path}:{number}", columns
