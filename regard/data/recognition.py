"""Inspect a file of examples: its columns, which of them are source and target, and which task they suggest."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from regard.data.lines import read_lines
from regard.data.tables import looks_like_header, table_rows
from regard.foundation.errors import RegardError, UsageError

LOOKED_AT = 5000
"""Number of examples that are inspected."""
TASKS = ("translation", "classification", "regression", "tagging")
TABLES = (".csv", ".tsv", ".xlsx", ".parquet")

_SOURCES = ("source", "src", "input", "text", "sentence", "raw", "question", "review", "words")
TARGETS = ("target", "tgt", "trg", "label", "output", "class", "category", "score", "tags", "clean", "answer")
"""Common names of target columns."""
_IDENTIFIERS = ("id", "index", "number", "nr", "no", "key")
_NAME = re.compile(r"[^\W\d][^\W\d]*([ _-][^\W\d]+){0,2}")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True)
class Examples:
    """The columns of a file of examples, or two parallel files as two columns."""

    files: list[str]
    kind: str
    """`table`, `jsonl`, `conllu` or `paired`."""
    names: list[str]
    """Names of the columns; numbers where there is no header."""
    columns: list[list[str]]
    """The values of each column, for the inspected examples."""
    header: bool = True
    complete: bool = True
    """Whether all examples were inspected."""

    def column(self, name: str) -> list[str]:
        """Return the values of a column."""
        if name not in self.names:
            raise UsageError(
                f"{self.files[0]} has no column {name[:60]}. It has {', '.join(self.names)}; name one of these."
            )
        return self.columns[self.names.index(name)]

    @property
    def count(self) -> int:
        """Number of inspected examples."""
        return len(self.columns[0]) if self.columns else 0


def read_examples(files: Sequence[str], *, header: bool | None = None) -> Examples:
    """Read the first examples of a table, a file of JSON lines, a CoNLL-U file, or two parallel files."""
    for path in files:
        if not Path(path).exists():
            raise UsageError(f"{path} does not exist. Check the path (it is relative to where the command runs).")
        if Path(path).is_dir():
            raise UsageError(f"{path} is a directory. Name a file of examples in it.")
        if not Path(path).is_file():
            raise UsageError(f"{path} is not a file. Training reads examples more than once: save them first.")
    if len(files) == 2:
        return _parallel(list(files))
    if len(files) != 1:
        raise UsageError("Name one file of examples, or two parallel ones.")
    path = files[0]
    ending = Path(path.removesuffix(".gz")).suffix.lower()
    if ending in TABLES:
        found = _table(path, header)
    elif ending in (".jsonl", ".json"):
        found = _json_lines(path)
    elif ending == ".conllu":
        next(read_lines(path), None)
        return Examples([path], "conllu", ["words", "tags"], [[], []])
    else:
        raise UsageError(
            f"{path} has an unknown ending. Name a file that ends in {', '.join(TABLES)}, .jsonl or .conllu, or two "
            "parallel text files."
        )
    if not found.count:
        raise RegardError(f"{path} has no examples. Name a file with a few hundred.")
    return found


def choose_columns(
    examples: Examples, source: str | None = None, target: str | None = None, *, targets: Sequence[str] = TARGETS
) -> tuple[str, str] | None:
    """Return the source and target columns, from options and column names; `None` if they are ambiguous.

    `targets` are common names of target columns.
    """
    for name in (source, target):
        if name is not None:
            examples.column(name)
    if source is not None and source == target:
        raise UsageError(f"--source and --target are both {source}. Name two different columns.")
    rest = [name for name in examples.names if name.lower() not in _IDENTIFIERS] or examples.names
    target = target or next((name for name in rest if name.lower() in targets and name != source), None)
    source = source or next((name for name in rest if name.lower() in _SOURCES and name != target), None)
    others = [name for name in rest if name not in (source, target)]
    if source is None and (len(others) == 1 or (target is None and len(others) == 2)):
        source = others.pop(0)
    if target is None and len(others) == 1:
        target = others.pop(0)
    return (source, target) if source is not None and target is not None else None


def recognise_task(sources: Sequence[str], targets: Sequence[str]) -> tuple[str, str]:
    """Return the task that examples suggest, and the reason in a few words."""
    texts = [text.strip() for text in targets if text.strip()]
    distinct = set(texts)
    if (
        texts
        and all(_NUMBER.fullmatch(text) for text in texts)
        and (len(distinct) > 10 or any("." in text for text in distinct))
    ):
        return "regression", f"every target is a number, {len(distinct):,} different ones"
    counts = [(len(source.split()), len(other.split())) for source, other in zip(sources, targets, strict=True)]
    tags = {tag for text in texts for tag in text.split()}
    words = {word for text in sources for word in text.split()}
    aligned = bool(counts) and all(source_words == other for source_words, other in counts)
    if (
        aligned
        and sum(source_words for source_words, _ in counts) >= 2 * len(counts)
        and len(tags) <= min(100, len(words) / 2)
    ):
        return "tagging", f"as many tags as words in every example, {len(tags):,} different ones"
    short = all(len(text.split()) <= 3 and len(text) <= 40 for text in distinct)
    if 1 < len(distinct) <= 50 and short and len(texts) >= 4 * len(distinct):
        return "classification", f"{len(distinct):,} different targets in {len(texts):,} examples"
    return "translation", "targets are texts"


def _table(path: str, header: bool | None) -> Examples:
    rows = [cells for _, cells in islice(table_rows(path), LOOKED_AT + 2)]
    if not rows:
        return Examples([path], "table", [], [])
    first = rows[0]
    if header is None:
        header = path.removesuffix(".gz").endswith(".parquet") or _is_header(first, rows[1:])
    if header and len(set(first)) < len(first):
        raise RegardError(f"{path} has two columns of the same name in its header. Rename one of them.")
    body = rows[1:] if header else rows
    for number, cells in enumerate(body, start=1):
        if len(cells) != len(first):
            raise RegardError(
                f"Example {number:,} of {path} has {len(cells)} columns, but the first row has {len(first)}. "
                "Correct it: a text that contains the separator must be in double quotes."
            )
    names = list(first) if header else [str(number) for number in range(1, len(first) + 1)]
    kept = body[:LOOKED_AT]
    columns = [[cells[index] for cells in kept] for index in range(len(first))]
    return Examples([path], "table", names, columns, header=header, complete=len(kept) == len(body))


def _is_header(first: list[str], body: list[list[str]]) -> bool:
    """Return whether a first row names the columns: short different words that do not occur again below them."""
    if looks_like_header(first):
        return True
    if len(set(first)) < len(first) or not all(_NAME.fullmatch(cell.strip()) for cell in first):
        return False
    return not any(cell in {cells[index] for cells in body if index < len(cells)} for index, cell in enumerate(first))


def _json_lines(path: str) -> Examples:
    records: list[dict[str, object]] = []
    complete = True
    for number, line in enumerate(read_lines(path), start=1):
        if len(records) >= LOOKED_AT:
            complete = False
            break
        if line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if not isinstance(record, dict):
                raise RegardError(f"{path}:{number} is not a JSON object. Write one object per line.")
            records.append(record)
    names = [
        name
        for name in (records[0] if records else {})
        if all(isinstance(record.get(name), str | int | float) for record in records)
    ]
    nested = [name for name in (records[0] if records else {}) if isinstance(records[0][name], dict | list)]
    if len(names) < 2 and nested:
        raise RegardError(
            f"The field {nested[0][:60]} of {path} is nested. `regard new` needs two fields with texts or numbers: "
            "write them as fields of the outer object."
        )
    columns = [
        [str(value) if isinstance(value := record[name], str) else json.dumps(value) for record in records]
        for name in names
    ]
    return Examples([path], "jsonl", names, columns, complete=complete)


def _parallel(files: list[str]) -> Examples:
    columns = [list(islice(read_lines(path), LOOKED_AT + 1)) for path in files]
    if len(columns[0]) != len(columns[1]):
        raise RegardError(
            f"{files[0]} and {files[1]} have different numbers of lines. Line n of one must belong to line n of "
            "the other."
        )
    complete = len(columns[0]) <= LOOKED_AT
    kept = [column[:LOOKED_AT] for column in columns]
    if not kept[0]:
        raise RegardError(f"{files[0]} has no examples. Name files with a few hundred.")
    return Examples(files, "paired", ["source", "target"], kept, complete=complete)
