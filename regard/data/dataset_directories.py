"""Directories of the Hugging Face `datasets` library, read with pyarrow.

Three layouts are known: what `Dataset.save_to_disk` writes (`state.json` and Arrow files), what `DatasetDict` writes
(`dataset_dict.json` and a directory for each split), and the Parquet files of a repository on the hub
(`data/train-00000-of-00002.parquet`).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config.text_corpora import DatasetDirectories
from regard.data.tables import format_cell
from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command
from regard.text.joined import TAB

STATE, SPLITS = "state.json", "dataset_dict.json"
PAIRED = "translation"
"""The usual name of a column whose values have a text for each language."""
_SHARD = re.compile(r"^(?P<split>.+?)(-\d+-of-\d+)?\.parquet$")
_ROWS = 1024


def read_datasets(corpus: DatasetDirectories) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the location of each row, and its source and target; two source texts are separated by a tab."""
    for directory in corpus.dataset:
        for path in split_files(Path(directory), corpus.split):
            yield from _read_file(corpus, path)


def split_files(directory: Path, split: str) -> list[Path]:
    """Return the files of a split in order; raises if there is no such split, or no dataset."""
    if not directory.is_dir():
        raise RegardError(f"{directory} is not a directory. Name the directory of a dataset, or a table of its own.")
    if (directory / SPLITS).is_file():
        names = _strings(_read_json(directory / SPLITS).get("splits"))
        if split not in names:
            raise _no_split(directory, split, names)
        directory = directory / split
    if (directory / STATE).is_file():
        return _saved_files(directory)
    shards: dict[str, list[Path]] = {}
    for path in sorted(directory.rglob("*.parquet")):
        found = _SHARD.match(path.name)
        name = found["split"] if found else path.stem
        shards.setdefault(path.parent.name if name.isdecimal() else name, []).append(path)
    if not shards:
        raise RegardError(
            f"{directory} is not a dataset: it has no {STATE}, no {SPLITS} and no Parquet files. Write it with "
            "`save_to_disk` of the library `datasets`, or name another directory."
        )
    if split not in shards:
        raise _no_split(directory, split, list(shards))
    folders = sorted({str(path.parent.relative_to(directory)) for path in shards[split]})
    if len(folders) > 1:
        raise RegardError(
            f"{directory} has several datasets with the split `{split}` ({', '.join(folders[:10])}). Name the "
            "directory of one of them."
        )
    return shards[split]


def _no_split(directory: Path, split: str, known: list[str]) -> RegardError:
    return RegardError(
        f"{directory} has no split `{split}` (it has {', '.join(known[:12]) or 'none'}). Set split to one of these."
    )


def _saved_files(directory: Path) -> list[Path]:
    """Return the Arrow files that `state.json` lists."""
    listed = _read_json(directory / STATE).get("_data_files")
    names = _strings([entry.get("filename") for entry in listed if isinstance(entry, dict)]) if listed else []
    if not names:
        raise RegardError(f"{directory / STATE} lists no files. Write the dataset again with `save_to_disk`.")
    for name in names:
        if Path(name).name != name or not (directory / name).is_file():
            raise RegardError(f"{directory / name}, a file of the dataset, does not exist. Download it again.")
    return [directory / name for name in names]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RegardError(f"{path} cannot be read as JSON ({error}). Download the dataset again.") from error
    if not isinstance(content, dict):
        raise RegardError(f"{path} is not a JSON object. Download the dataset again.")
    return content


def _strings(values: Any) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []


def _read_file(corpus: DatasetDirectories, path: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise RegardError(f"Reading {path} needs pyarrow. Type `{install_command('tables')}`.") from None
    number = 0
    try:
        is_parquet = path.suffix == ".parquet"
        file: Any = (
            pyarrow.parquet.ParquetFile(path) if is_parquet else pyarrow.ipc.open_stream(pyarrow.memory_map(str(path)))
        )
        schema = file.schema_arrow if is_parquet else file.schema
        labels = _class_labels(schema)
        wanted = [name for name in (corpus.source, corpus.second, corpus.target) if name is not None]
        columns = [_find_column(schema, name, path) for name in wanted]
        needed = list(dict.fromkeys(column.name for column in columns))
        for batch in file.iter_batches(batch_size=_ROWS, columns=needed) if is_parquet else file:
            texts = [_texts(batch.column(column.name), column, labels.get(column.name)) for column in columns]
            for *sources, target in zip(*texts, strict=True):
                number += 1
                yield f"{path}, row {number:,},", (TAB.join(sources), target)
    except RegardError:
        raise
    except Exception as error:  # pyarrow's errors have no common parent
        raise RegardError(
            f"{path} cannot be read after row {number:,} ({type(error).__name__}: {str(error)[:200]}). Write or "
            "download the dataset again."
        ) from error


@dataclass(frozen=True)
class _Column:
    """A column of a file, or a field of a column that is a record."""

    name: str
    field: str | None = None


def _find_column(schema: Any, name: str, path: Path) -> _Column:
    """Find a column by its name, a field of a record by `COLUMN.FIELD`, or a language of the column `translation`."""
    import pyarrow

    records = {
        field.name: [inner.name for inner in field.type] for field in schema if pyarrow.types.is_struct(field.type)
    }
    if name in schema.names and name not in records:
        return _Column(name)
    for column, _, inner in (name.partition("."), (PAIRED, "", name)):
        if inner in records.get(column, ()):
            return _Column(column, inner)
    known = [
        shown
        for column in schema.names
        for shown in ([f"{column}.{inner}" for inner in records.get(column, ())] or [column])
    ]
    raise RegardError(
        f"{path} has no column called `{name}` (it has {', '.join(known[:20]) or 'none'}). Set source and target to "
        "two of these."
    )


def _texts(values: Any, column: _Column, labels: list[str] | None) -> list[str]:
    """Return the values of a column as texts of one line each; the number of a class as its name."""
    rows = values.to_pylist()
    if column.field is not None:
        rows = [row[column.field] if row is not None else None for row in rows]
    show: Callable[[Any], str] = format_cell
    if labels is not None:
        names: dict[int, str] = {-1: "", **dict(enumerate(labels))}
        show = lambda value: format_cell(names.get(value, value))  # noqa: E731
    return list(map(show, rows))


def _class_labels(schema: Any) -> Mapping[str, list[str]]:
    """Return the names of classes by column, which `datasets` keeps with the schema; -1 stands for no label."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        return {
            name: _strings(feature.get("names"))
            for name, feature in features.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
        }
    except (KeyError, ValueError, TypeError, AttributeError):
        return {}
