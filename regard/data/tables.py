"""Tables with named columns: CSV, TSV, XLSX and Parquet."""

import csv
import datetime
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from regard.config.text_corpora import TableFiles
from regard.data.lines import read_lines
from regard.foundation.errors import RegardError
from regard.text.joined import TAB

DELIMITERS = (",", "\t", ";")
LONGEST_CELL = 1 << 22
"""In characters; the default limit of Python's csv module is too small for documents."""

Row = tuple[int, list[str]]
"""The number of a row's line in its file, counted from 1, and its cells."""

_WORDS = (
    "id source target src tgt trg text label sentence sentence1 sentence2 sentence_a sentence_b input output question "
    "answer context translation class category score tag tags word words title summary en de fr es it pt nl ru zh ja "
    "english german french spanish premise hypothesis review sentiment"
)
HEADER_WORDS = frozenset(_WORDS.split())
"""Common names of columns."""


def looks_like_header(cells: Iterable[str]) -> bool:
    """Return whether all of these cells are common names of columns."""
    names = [cell.strip().lower() for cell in cells]
    return len(set(names)) == len(names) > 1 and all(name in HEADER_WORDS for name in names)


def read_table(corpus: TableFiles) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the location of each row, and its source and target; two source texts are separated by a tab."""
    for path in corpus.table:
        rows = table_rows(path)
        try:
            first = next(rows)
        except StopIteration:
            continue
        chosen = _choose(corpus, path, first[1])
        for number, cells in rows if chosen.header else _chain(first, rows):
            if len(cells) != len(first[1]):
                raise RegardError(
                    f"{path}:{number} has {len(cells)} columns, but the first row has {len(first[1])}. Correct the "
                    "row: a text that contains the separator must be in double quotes."
                )
            source = TAB.join(cells[column] for column in chosen.sources)
            yield f"{path}:{number}", (source, cells[chosen.target])


def table_rows(path: str) -> Iterator[Row]:
    """Yield the rows of a table, including the header; the ending of the file name determines the format."""
    ending = Path(path.removesuffix(".gz")).suffix.lower()
    if ending == ".xlsx":
        yield from _xlsx(path)
    elif ending == ".parquet":
        yield from _parquet(path)
    elif ending in (".csv", ".tsv", ".tab", ".txt"):
        yield from _read_separated(path, "\t" if ending in (".tsv", ".tab") else None)
    else:
        raise RegardError(
            f"{path} ends in {ending or 'nothing'}, which is not a known table format. Name a file that ends in "
            ".csv, .tsv, .xlsx or .parquet."
        )


class _Columns:
    """Which columns of a file are read, and whether its first row is a header."""

    def __init__(self, sources: list[int], target: int, *, header: bool) -> None:
        self.sources, self.target, self.header = sources, target, header


def _choose(corpus: TableFiles, path: str, first: list[str]) -> _Columns:
    """Find the columns that a configuration names in the first row of a file."""
    wanted = [name for name in (corpus.source, corpus.second, corpus.target) if name is not None]
    shown = ", ".join(cell[:40] or "(empty)" for cell in first[:12])
    if corpus.header is not False and all(first.count(name) == 1 for name in wanted):
        return _Columns([first.index(name) for name in wanted[:-1]], first.index(wanted[-1]), header=True)
    if all(name.isdecimal() for name in wanted):
        for name in wanted:
            if not 1 <= int(name) <= len(first):
                raise RegardError(
                    f"{path} has {len(first)} columns, so there is no column {name}. Give numbers from 1 to "
                    f"{len(first)}."
                )
        if corpus.header is None:
            raise RegardError(
                f"{path} begins with the row `{shown}`, and columns are given by number. Set header: true if that row "
                "names the columns, or header: false if it is an example."
            )
        numbers = [int(name) - 1 for name in wanted]
        return _Columns(numbers[:-1], numbers[-1], header=corpus.header)
    missing = next((name for name in wanted if first.count(name) != 1), wanted[0])
    if corpus.header is False:
        raise RegardError(
            f"{path} has {len(first)} columns and no header (header: false), so `{missing}` names none of them. Give "
            f"source and target as numbers from 1 to {len(first)}."
        )
    problem = "has more than one column" if missing in first else "has no column"
    raise RegardError(
        f"{path} {problem} called `{missing}`: its first row is `{shown}`. Set source and target to names of that row, "
        "or, if it is an example, set header: false and give them as numbers, counted from 1."
    )


def _chain(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def _read_separated(path: str, delimiter: str | None) -> Iterator[Row]:
    """Return the rows of a CSV or TSV file; the separator of a CSV file is the commonest in its first line."""
    lines = read_lines(path, whole=True)
    if delimiter is None:
        head = next(read_lines(path, whole=True), "")
        outside = "".join(head.split('"')[::2])
        delimiter = max(DELIMITERS, key=outside.count)
    csv.field_size_limit(LONGEST_CELL)
    ended = (line + "\n" for line in lines)
    if delimiter == "\t" and not _is_quoted(path):
        reader = csv.reader(ended, delimiter=delimiter, strict=True, quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(ended, delimiter=delimiter, strict=True)
    start = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise RegardError(
                f"{path}:{start} is not a row of a table ({error}). Check its double quotes: one inside a quoted cell "
                "is written twice."
            ) from error
        if any(cell.strip() for cell in cells):
            yield start, [_one_line(cell) for cell in cells]
        start = reader.line_num + 1


def _is_quoted(path: str) -> bool:
    """Return whether the first line of a TSV file has a cell in double quotes, as spreadsheets write them."""
    head = next(read_lines(path, whole=True), "")
    return any(len(cell) > 1 and cell[0] == cell[-1] == '"' for cell in head.split("\t"))


def _xlsx(path: str) -> Iterator[Row]:
    """Return the rows of the first sheet of a workbook."""
    _check_exists(path)
    try:
        import openpyxl
    except ImportError:
        raise RegardError(
            f"Reading {path} needs openpyxl. Type `python -m pip install openpyxl`, or save the table as CSV."
        ) from None
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        width = 0
        for number, values in enumerate(book.worksheets[0].iter_rows(values_only=True), start=1):
            cells = [format_cell(value) for value in values]
            while cells and not cells[-1] and (not width or len(cells) > width):
                cells.pop()
            if cells and any(cells):
                width = width or len(cells)
                yield number, cells + [""] * (width - len(cells))
        book.close()
    except RegardError:
        raise
    except Exception as error:  # openpyxl raises many types of errors for damaged files
        raise RegardError(
            f"{path} cannot be read as an Excel workbook ({type(error).__name__}: {error}). Save it again, or as .csv."
        ) from error


def _parquet(path: str) -> Iterator[Row]:
    _check_exists(path)
    try:
        import pyarrow.parquet
    except ImportError:
        raise RegardError(
            f"Reading {path} needs pyarrow. Type `python -m pip install pyarrow`, or save the table as CSV."
        ) from None
    try:
        file = pyarrow.parquet.ParquetFile(path)
        yield 1, list(file.schema_arrow.names)
        number = 1
        for batch in file.iter_batches(batch_size=1024):
            columns = [column.to_pylist() for column in batch.columns]
            for values in zip(*columns, strict=True):
                number += 1
                yield number, [format_cell(value) for value in values]
        file.close()
    except RegardError:
        raise
    except Exception as error:  # pyarrow's errors have no common parent
        raise RegardError(
            f"{path} cannot be read as Parquet ({type(error).__name__}: {error}). Write it again, or convert it to CSV."
        ) from error


def _check_exists(path: str) -> None:
    if not Path(path).is_file():
        raise RegardError(f"{path} does not exist. Check the path (it is relative to where the command runs).")


def format_cell(value: Any) -> str:
    """Return a value of a spreadsheet as text: whole numbers without a point, dates in ISO 8601."""
    match value:
        case None:
            text = ""
        case bool():
            text = json.dumps(value)
        case float():
            whole = math.isfinite(value) and value.is_integer() and abs(value) < 1e15
            text = str(int(value)) if whole else repr(value)
        case datetime.datetime() if value.time() == datetime.time():
            text = value.date().isoformat()
        case datetime.date() | datetime.time():
            text = value.isoformat()
        case _:
            text = _one_line(str(value))
    return text


def _one_line(text: str) -> str:
    """Return a cell as one line: line breaks and tabs become spaces."""
    return " ".join(part for part in text.replace("\t", " ").splitlines()) if not text.isprintable() else text
