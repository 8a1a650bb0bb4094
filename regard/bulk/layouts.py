"""Layouts of files: where the sources are, and where the translations go.

A layout reads rows with a source each, and writes the same rows with their translations. A row that cannot be read has
a problem and an empty source.
"""

import gzip
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from regard.bulk.json_sources import FIELD, JsonSources, TextSources
from regard.data.lines import LONGEST_LINE, RawLine, read_raw_lines
from regard.data.tables import looks_like_header
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.installation import install_command

INTO = "translation"
"""Default name of the field of translations."""

WRITE_LINES = 2048
"""Lines of one member of a compressed output."""
BATCH_ROWS = 2048
"""Rows of a Parquet file that are read at once."""

BYTE_ORDER_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


class Row(NamedTuple):
    """A row of a shard."""

    source: str
    problem: str | None = None
    """Why the source cannot be read, in a sentence."""
    content: Any = None
    """What the layout needs to write the row."""
    position: int = 0
    """Bytes of the file up to its end."""
    is_header: bool = False


Translate = Callable[[Row], str]
"""From the next row to its translation."""


class Layout(ABC):
    """Reads sources, and writes translations next to them."""

    def __init__(self, field: str | None = None, into: str | None = None, sources: JsonSources | None = None) -> None:
        self.field, self.into = field, into or INTO
        self.sources = sources or TextSources()
        """What the run reads from a line of JSON."""

    @abstractmethod
    def rows(self, path: Path, skip: int = 0) -> Iterator[Row]:
        """Yield the rows of a file after the first `skip`; raises if the file cannot be read."""

    @abstractmethod
    def write(self, source: Path, target: Path, translate: Translate, *, compress: bool) -> None:
        """Write the rows of a file with their translations."""


class LineLayout(Layout):
    """A file of lines, plain or compressed: a row is a line."""

    def rows(self, path: Path, skip: int = 0) -> Iterator[Row]:
        """Yield the lines of a file; invalid UTF-8 and lines that are too long are problems of a row."""
        lines = read_raw_lines(path)
        first = next(lines, None)
        if first is None:
            return
        if encoding := BYTE_ORDER_MARKS.get(first.content[:2]):
            raise RegardError(
                f"{path} is encoded in {encoding}. Convert it, for example with `iconv -f {encoding} -t UTF-8`."
            )
        first = first._replace(content=first.content.removeprefix(b"\xef\xbb\xbf"))
        head = self.header(path, first)
        if head is not None:
            yield head
        else:
            if skip == 0:
                yield self._row(first)
            skip = max(skip - 1, 0)
        for line in islice(lines, skip, None):
            yield self._row(line)

    def _row(self, line: RawLine) -> Row:
        try:
            text = line.content.decode()
        except UnicodeDecodeError as error:
            text = line.content.decode(errors="backslashreplace")
            problem = f"It is not valid UTF-8 (byte 0x{line.content[error.start]:02x} at {error.start + 1})."
            return self.broken(text, problem, line.position)
        if not line.is_whole:
            problem = f"It is longer than {LONGEST_LINE >> 20} MB, which is not a line of text."
            return self.broken(text[:1000], problem, line.position)
        return self.parse(text, line.position)

    def header(self, path: Path, first: RawLine) -> Row | None:
        """Return the header of a file, if its first line is one; raises if a field is missing."""
        return None

    @abstractmethod
    def parse(self, line: str, position: int) -> Row:
        """Return the row of a line."""

    def broken(self, line: str, problem: str, position: int) -> Row:
        """Return the row of a line that cannot be read."""
        return Row("", problem, line, position)

    @abstractmethod
    def format(self, row: Row, translation: str) -> str:
        """Return the line of a row with its translation."""

    def write(self, source: Path, target: Path, translate: Translate, *, compress: bool) -> None:
        """Write lines; a compressed file has one member for every `WRITE_LINES` lines."""
        rows = self.rows(source)
        with target.open("wb") as file:
            while some := list(islice(rows, WRITE_LINES)):
                lines = [self.format(row, self.into if row.is_header else translate(row)) for row in some]
                data = "".join(f"{line}\n" for line in lines).encode(errors="backslashreplace")
                file.write(gzip.compress(data, mtime=0) if compress else data)
            if compress and file.tell() == 0:
                file.write(gzip.compress(b"", mtime=0))


class TextLayout(LineLayout):
    """Lines of text: each becomes its translation."""

    def __init__(self, field: str | None = None, into: str | None = None, sources: JsonSources | None = None) -> None:
        super().__init__()

    def parse(self, line: str, position: int) -> Row:
        """Return the line as a source."""
        return Row(line, None, None, position)

    def format(self, row: Row, translation: str) -> str:
        """Return the translation."""
        return translation


class TsvLayout(LineLayout):
    """Cells separated by tabs, without quotation marks; a header is a first line that has the name of the field."""

    _column = 0
    _place: int | None = None

    def header(self, path: Path, first: RawLine) -> Row | None:
        """Find the columns of source and translation."""
        cells = first.content.decode(errors="replace").split("\t")
        self._column, self._place = 0, None
        if (self.field or "").isdecimal():
            self._column = int(self.field or 0) - 1
            if not 0 <= self._column < len(cells):
                raise RegardError(f"{path} has {len(cells)} columns, so there is no column {self.field}. Use --field.")
            return None
        name = self.field or FIELD
        if name not in cells:
            if self.field is None and not looks_like_header(cells):
                return None
            raise RegardError(
                f"{path} has no column `{name}` (its first line: {', '.join(cells[:10])}). Name the column of sources "
                "with --field, or give its number."
            )
        self._column = cells.index(name)
        self._place = cells.index(self.into) if self.into in cells else None
        return Row("", None, cells, first.position, is_header=True)

    def parse(self, line: str, position: int) -> Row:
        """Return the cell of the source."""
        cells = line.split("\t")
        if not line:
            return Row("", None, [], position)
        if self._column >= len(cells):
            return Row(
                "", f"It has {len(cells)} columns, but the source is column {self._column + 1}.", cells, position
            )
        return Row(cells[self._column], None, cells, position)

    def broken(self, line: str, problem: str, position: int) -> Row:
        """Return the row of a line that cannot be read, with its cells."""
        return Row("", problem, line.split("\t"), position)

    def format(self, row: Row, translation: str) -> str:
        """Return the cells with the translation as the last one, or in the column of its name."""
        cells = list(row.content)
        if not cells:
            return ""
        if self._place is not None and self._place < len(cells):
            cells[self._place] = translation
        else:
            cells.append(translation)
        return "\t".join(cells)


class JsonLayout(LineLayout):
    """JSON lines: objects with a field of the source, or records. The content of a row is its line and its value."""

    def parse(self, line: str, position: int) -> Row:
        """Return the source of the line."""
        if not line.strip():
            return Row("", None, (line, None), position)
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            return self.broken(line, f"It is not valid JSON: {str(error)[:100]}.", position)
        try:
            source = self.sources.source_of(line, value, self.field)
        except RegardError as error:
            return Row("", str(error), (line, value), position)
        problem = _unicode_problem(source)
        return Row("" if problem else source, problem, (line, value), position)

    def broken(self, line: str, problem: str, position: int) -> Row:
        """Return the row of a line that is not JSON."""
        return Row("", problem, (line, None), position)

    def format(self, row: Row, translation: str) -> str:
        """Return the line with one more field; the others stay as they are, character by character.

        A record that is a list of triples becomes the field `source` of an object.
        """
        line, value = row.content
        if value is None and row.problem is None:
            return str(line)  # an empty line
        added = f"{json.dumps(self.into, ensure_ascii=False)}: {json.dumps(translation, ensure_ascii=False)}"
        if isinstance(value, list) and row.problem is None and self.into != FIELD:
            return f'{{"{FIELD}": {line.strip()}, {added}}}'
        if not isinstance(value, dict):
            return "{" + added + "}"
        if self.into in value:
            return json.dumps(value | {self.into: translation}, ensure_ascii=False)
        return str(line).strip()[:-1].rstrip() + (", " if value else "") + added + "}"


class ParquetLayout(Layout):
    """A Parquet file: the translation is a column."""

    def rows(self, path: Path, skip: int = 0) -> Iterator[Row]:
        """Yield the values of the column of sources."""
        with _parquet_file(path) as file:
            name = self._checked_field(path, file)
            size, total = path.stat().st_size, max(file.metadata.num_rows, 1)
            number = 0
            try:
                for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=[name]):
                    if number + len(batch) <= skip:
                        number += len(batch)
                        continue
                    for value in batch.column(0).to_pylist():
                        number += 1
                        if number > skip:
                            yield Row(value or "", _unicode_problem(value or ""), None, size * number // total)
            except Exception as error:
                raise _damaged(path, error) from error

    def write(self, source: Path, target: Path, translate: Translate, *, compress: bool) -> None:
        """Write the row groups of the file, each with one more column."""
        pyarrow, parquet = _library()
        with _parquet_file(source) as file:
            name = self._checked_field(source, file)
            schema = file.schema_arrow
            at = schema.get_field_index(self.into)
            column = pyarrow.field(self.into, pyarrow.string())
            schema = schema.append(column) if at < 0 else schema.set(at, column)
            with parquet.ParquetWriter(str(target), schema, compression="zstd") as writer:
                for group in range(file.num_row_groups):
                    table = file.read_row_group(group)
                    rows = (Row(value or "", _unicode_problem(value or "")) for value in table.column(name).to_pylist())
                    values = pyarrow.array([translate(row) for row in rows], pyarrow.string())
                    table = table.append_column(column, values) if at < 0 else table.set_column(at, column, values)
                    writer.write_table(table, row_group_size=max(len(table), 1))

    def _checked_field(self, path: Path, file: Any) -> str:
        """Return the name of the column of sources; raises if there is none, or if it holds no texts."""
        name = self.field or FIELD
        schema = file.schema_arrow
        if name not in schema.names:
            known = ", ".join(schema.names[:10]) or "none"
            raise RegardError(f"{path} has no column `{name}` (its columns: {known}). Name one with --field.")
        kind = str(schema.field(name).type)
        if "string" not in kind:
            raise RegardError(f"The column `{name}` of {path} holds {kind}, not texts. Name another with --field.")
        return name


def _library() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise RegardError(f"Parquet files need pyarrow. Install it: {install_command('tables')}") from None
    return pyarrow, parquet


def _parquet_file(path: Path) -> Any:
    _, parquet = _library()
    if not path.is_file():
        raise RegardError(f"{path} does not exist any more. Restore it.")
    try:
        return parquet.ParquetFile(str(path))
    except Exception as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> RegardError:
    return RegardError(f"{path} cannot be read as Parquet ({str(error)[:100]}). Write or download it again.")


def _unicode_problem(text: str) -> str | None:
    """Return the problem of a text with half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "It is not valid Unicode: it has half of a surrogate pair."
    return None


LAYOUTS: dict[str, type[Layout]] = {"text": TextLayout, "tsv": TsvLayout, "jsonl": JsonLayout, "parquet": ParquetLayout}
"""Layouts by name."""
ENDINGS = {".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}
"""Names of layouts by the ending of a file; files with other endings are lines of text."""
FOREIGN = (".csv", ".xlsx", ".zip", ".bz2", ".xz", ".zst", ".7z", ".tar", ".tgz", ".arrow")
"""Endings of files that are not read."""


def layout_name(path: Path, asked: str | None = None) -> str:
    """Return the name of the layout of a file; raises if its ending is that of another format."""
    if asked is not None:
        if asked not in LAYOUTS:
            raise UsageError(f"--format is {', '.join(LAYOUTS)}, not `{asked}`.")
        return asked
    ending = Path(path.name.removesuffix(".gz")).suffix.lower()
    if ending in FOREIGN:
        raise UsageError(
            f"{path} ends in {ending}, which is not a format of bulk translation. Convert it to .txt, .tsv, .jsonl "
            "(each also .gz) or .parquet."
        )
    return ENDINGS.get(ending, "text")
