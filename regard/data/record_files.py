"""Corpora of records: JSON lines, and tables with one record per row."""

import json
from collections.abc import Iterator
from pathlib import Path

from regard.config.text_corpora import RecordFiles
from regard.data.lines import read_lines
from regard.data.tables import table_rows
from regard.foundation.errors import RegardError
from regard.text.records import DuplicateField, RecordForm, format_record, record_problem, unique_fields

Located = Iterator[tuple[str, tuple[str, str]]]
"""The location of each example, its record as JSON text, and its text."""

TABLES = (".csv", ".tsv", ".tab", ".xlsx", ".parquet")
"""Endings of files that are tables."""


def read_records(corpus: RecordFiles) -> Located:
    """Yield one example for every reference of every record of a corpus."""
    for path in corpus.records:
        is_table = Path(path.removesuffix(".gz")).suffix.lower() in TABLES
        yield from _read_table(corpus, path) if is_table else _read_json(corpus, path)


def _read_json(corpus: RecordFiles, path: str) -> Located:
    from regard.data.json_fields import json_sort, parse_json, references_of

    form = RecordForm(corpus.record_field, corpus.text_field)
    for number, line in enumerate(read_lines(path, whole=True), start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        try:
            example = parse_json(line, place, unique_fields)
        except DuplicateField as duplicate:
            raise RegardError(f"{place} {duplicate}") from None
        if not isinstance(example, dict):
            raise RegardError(f"{place} is {json_sort(example)}, but every line must be a JSON object.")
        for name in (corpus.record_field, corpus.text_field):
            if name is not None and name not in example:
                known = ", ".join(str(key) for key in list(example)[:10]) or "none"
                raise RegardError(
                    f"{place} has no field `{name}` (its fields: {known}). Set record_field and text_field to its "
                    "names, or correct the line."
                )
        source = format_record(form.record_of(example))
        if problem := record_problem(source):
            raise RegardError(f"{place} {problem}")
        for reference in references_of(example[corpus.text_field], corpus.text_field, place):
            yield place, (source, reference)


def _read_table(corpus: RecordFiles, path: str) -> Located:
    """Yield the rows of a table: all columns but the text are fields; empty cells are missing fields."""
    if corpus.record_field is not None:
        raise RegardError(f"{path} is a table, whose columns are the record. Remove record_field.")
    for place, row in _rows(path, corpus.text_field):
        text = row.pop(corpus.text_field)
        if not text.strip():
            raise RegardError(f"{place} has no text in column `{corpus.text_field}`. Write one, or remove the row.")
        source = json.dumps(row, ensure_ascii=False)
        if problem := record_problem(source):
            raise RegardError(f"{place} {problem}")
        yield place, (source, text)


def table_records(path: str) -> list[str]:
    """Return each row of a table that is not empty as the JSON text of a record."""
    return [json.dumps(row, ensure_ascii=False) for _, row in _rows(path)]


def _rows(path: str, text_field: str | None = None) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the place of each row of a table and its cells by the names of the columns, which are the first row."""
    rows = table_rows(path)
    _, names = next(rows, (0, []))
    shown = ", ".join(names[:12]) or "none"
    if text_field is not None and text_field not in names:
        raise RegardError(
            f"{path} has no column called `{text_field}` (its first row: {shown}). Set text_field to the column "
            "that holds the text."
        )
    if len(set(names)) < len(names):
        raise RegardError(f"{path} has two columns of the same name (its first row: {shown}). Rename one of them.")
    for number, cells in rows:
        place = f"{path}:{number}"
        if len(cells) != len(names):
            raise RegardError(
                f"{place} has {len(cells)} columns, but the first row has {len(names)}. Correct the row: a text that "
                "contains the separator must be in double quotes."
            )
        yield place, dict(zip(names, cells, strict=True))
