"""Reading of corpora: pairs of raw sentences from files of several formats, or generated ones."""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from regard.config.data import Corpus, Elsewhere, Generated, ReaderFiles
from regard.config.media_corpora import ImageFiles, SoundFiles, SpokenWords, SyntheticSpeech
from regard.config.text_corpora import (
    BabiFiles,
    ColumnFiles,
    ConlluFiles,
    JsonLines,
    JsonTexts,
    LabelledLines,
    PairedFiles,
    RecordFiles,
    TableFiles,
    TextFiles,
    TsvFiles,
)
from regard.data.alignment import first_misaligned
from regard.data.lines import read_lines
from regard.foundation.errors import RegardError
from regard.text.joined import TAB


class Pair(NamedTuple):
    """A source and its target as raw text; several source texts are separated by tabs, an image is its name."""

    source: str
    target: str


def read(corpus: Corpus) -> Iterator[Pair]:
    """Yield the pairs of a corpus; errors in a file are reported with its name and line."""
    return (pair for _, pair in read_located(corpus))


def read_located(corpus: Corpus) -> Iterator[tuple[str, Pair]]:
    """Yield each pair with its location: file and line, or the corpus and a number."""
    empty = True
    for found in _pairs(corpus):
        empty = False
        yield found
    if empty:
        raise RegardError(f"{describe(corpus)} has no pairs: the corpus is empty.")


def describe(corpus: Corpus) -> str:
    """Return a short description of a corpus, for messages."""
    return corpus.name


def _pairs(corpus: Corpus) -> Iterator[tuple[str, Pair]]:
    match corpus:
        case PairedFiles():
            yield from _read_paired(corpus)
        case TableFiles() | RecordFiles():
            yield from _read_rows(corpus)
        case TsvFiles():
            yield from _read_tsv(corpus)
        case JsonLines():
            yield from _read_json(corpus)
        case LabelledLines():
            yield from _read_labelled(corpus)
        case ConlluFiles() | ColumnFiles():
            from regard.data.tagged import read_tagged

            yield from ((location, Pair(*pair)) for location, pair in read_tagged(corpus))
        case TextFiles() | JsonTexts():
            from regard.data.documents import read_documents

            yield from _number_pairs(corpus, (Pair(text, "") for text in read_documents(corpus)))
        case BabiFiles():
            from regard.data.stories import stories

            pairs = (Pair(f"{story}{TAB}{question}", answer) for story, question, answer in stories(corpus))
            yield from _number_pairs(corpus, pairs)
        case ImageFiles() | SoundFiles() | SpokenWords() | SyntheticSpeech():
            yield from _named_files(corpus)
        case ReaderFiles():
            yield from _read_by_extension(corpus)
        case Generated():
            from regard.data.generated import generate

            yield from _number_pairs(corpus, (Pair(*pair) for pair in generate(corpus)))
        case Elsewhere():
            raise RegardError(
                f"The model of {corpus.imported} was trained elsewhere, so its corpus is not available. "
                "Name one of your own under data.train."
            )


def _read_rows(corpus: TableFiles | RecordFiles) -> Iterator[tuple[str, Pair]]:
    """Yield the pairs of a table with named columns, or of a corpus of records."""
    if isinstance(corpus, TableFiles):
        from regard.data.tables import read_table

        found = read_table(corpus)
    else:
        from regard.data.record_files import read_records

        found = read_records(corpus)
    yield from ((location, Pair(*pair)) for location, pair in found)


def _named_files(corpus: ImageFiles | SoundFiles | SpokenWords | SyntheticSpeech) -> Iterator[tuple[str, Pair]]:
    """Yield the pairs of a corpus whose sources are names of images or sounds."""
    if isinstance(corpus, ImageFiles):
        from regard.data.image_files import read_captions

        found = read_captions(corpus)
    else:
        from regard.data.sound_files import read_sounds

        found = read_sounds(corpus)
    yield from ((location, Pair(*pair)) for location, pair in found)


Reader = Callable[..., Iterable[tuple[str, str]]]
"""(path, **options) → the (source, target) pairs of a file."""

READERS: dict[str, Reader] = {}
"""Corpus formats that extensions add, by name."""


def _read_by_extension(corpus: ReaderFiles) -> Iterator[tuple[str, Pair]]:
    """Yield the pairs of files that an extension reads, checking each."""
    for path in corpus.paths:
        if not Path(path).exists():
            raise RegardError(f"{path} does not exist. Check the path (it is relative to where the command runs).")
        number = 0
        try:
            for number, pair in enumerate(READERS[corpus.reader](path, **corpus.options), start=1):
                if not (
                    isinstance(pair, tuple | list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
                ):
                    raise RegardError(
                        f"{path}, example {number:,}: the reader {corpus.reader} must yield pairs of two texts, not "
                        f"{str(pair)[:80]!r}."
                    )
                yield f"{path}, example {number:,}", Pair(*pair)
        except RegardError:
            raise
        except Exception as error:
            raise RegardError(
                f"{path}: the reader {corpus.reader} failed after {number:,} examples ({type(error).__name__}: "
                f"{str(error)[:200]}). Correct the file or the extension."
            ) from error


def _number_pairs(corpus: Corpus, pairs: Iterable[Pair]) -> Iterator[tuple[str, Pair]]:
    return ((f"{describe(corpus)}, number {number:,},", pair) for number, pair in enumerate(pairs, start=1))


def _read_paired(corpus: PairedFiles) -> Iterator[tuple[str, Pair]]:
    for source, target in zip(corpus.source, corpus.target, strict=True):
        counts = [0, 0]
        for source_line, target_line in zip_longest(read_lines(source), read_lines(target)):
            counts[0] += source_line is not None
            counts[1] += target_line is not None
            if source_line is not None and target_line is not None:
                yield f"{target}:{counts[1]}", Pair(source_line, target_line)
        if counts[0] != counts[1]:
            line = first_misaligned(read_lines(source), read_lines(target))
            raise RegardError(
                f"{source} has {counts[0]:,} lines, but {target} has {counts[1]:,}, so they are not aligned. "
                f"Line {line:,} is the first that looks wrong (by lengths, numbers, punctuation). Compare them there."
            )


def _read_tsv(corpus: TsvFiles) -> Iterator[tuple[str, Pair]]:
    sources = [column for column in (corpus.source_column, corpus.second_column) if column is not None]
    last = max(*sources, corpus.target_column)
    for path in corpus.tsv:
        most = 0
        for number, line in enumerate(read_lines(path), start=1):
            columns = line.split("\t")
            most = most or (len(columns) if line else 0)
            if not line or (number == 1 and corpus.header):
                continue
            if len(columns) < last:
                raise RegardError(
                    f"{path}:{number} has {len(columns)} tab-separated columns, but column {last} is needed. Correct "
                    "the "
                    "line, or set source_column and target_column."
                )
            if len(columns) != most:
                raise RegardError(
                    f"{path}:{number} has {len(columns)} tab-separated columns, but the first line has {most}. An "
                    "extra or missing tab shifts the columns, so that a text is taken for a label or a translation. "
                    "Correct the wrong line."
                )
            if number == 1 and corpus.header is None:
                _refuse_header(path, [columns[column - 1] for column in (*sources, corpus.target_column)])
            text = TAB.join(columns[column - 1] for column in sources)
            yield f"{path}:{number}", Pair(text, columns[corpus.target_column - 1])


def _refuse_header(path: str, cells: list[str]) -> None:
    """Raise if the first line looks like a header and the configuration does not set `header`."""
    from regard.data.tables import looks_like_header

    if looks_like_header(cells):
        raise RegardError(
            f"{path}:1 looks like a header ({', '.join(cells)}), which would be read as an example. Set header: true "
            "to skip it, or header: false if it is an example."
        )


def _read_json(corpus: JsonLines) -> Iterator[tuple[str, Pair]]:
    for path in corpus.jsonl:
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                continue
            place = f"{path}:{number}"
            record = parse_json(line, place)
            names = [name for name in (corpus.source_field, corpus.second_field) if name is not None]
            sources = [_text(_field(record, name, place), name, place) for name in names]
            value = _field(record, corpus.target_field, place)
            parts = [source.replace(TAB, " ") for source in sources] if corpus.texts > 1 else sources
            for target in references_of(value, corpus.target_field, place) if isinstance(value, list) else [value]:
                yield place, Pair(TAB.join(parts), _label_text(target, corpus.target_field, place))


def _read_labelled(corpus: LabelledLines) -> Iterator[tuple[str, Pair]]:
    for path in corpus.labelled:
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                continue
            label, *rest = line.split(maxsplit=1)
            if not rest:
                raise RegardError(
                    f"{path}:{number} has only one word, `{label[:40]}`, but a label and a text are needed. Correct "
                    "the line."
                )
            yield f"{path}:{number}", Pair(rest[0].replace(TAB, " "), label)


def parse_json(line: str, place: str) -> object:
    """Return the JSON value of a line."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RegardError(f"{place} is not valid JSON ({error}).") from error


def _field(record: object, name: str, place: str) -> object:
    """Return a field of a JSON object."""
    if not isinstance(record, dict):
        raise RegardError(f"{place} is {json_sort(record)}, but every line must be a JSON object.")
    if name not in record:
        known = ", ".join(str(key) for key in list(record)[:10]) or "none"
        raise RegardError(
            f"{place} has no field `{name}` (its fields: {known}). Set source_field and target_field to two of these."
        )
    return record[name]


def _text(value: object, name: str, place: str) -> str:
    """Return a field that must be a string."""
    if not isinstance(value, str):
        raise RegardError(f"{place}: field `{name}` is {json_sort(value)}, but it must be a string.")
    return value


def references_of(value: object, name: str, place: str) -> list[str]:
    """Return the references of an example: a text, or a list with at least one text, none of which is empty."""
    found: list[str] = []
    references = value if isinstance(value, list) else [value]
    if not references:
        raise RegardError(f"{place}: field `{name}` is an empty list. Write at least one reference, or leave it out.")
    for number, reference in enumerate(references, start=1):
        which = f"reference {number} in field `{name}`" if isinstance(value, list) else f"field `{name}`"
        if not isinstance(reference, str):
            raise RegardError(f"{place}: {which} is {json_sort(reference)}, but it must be a string.")
        if not reference.strip():
            raise RegardError(f"{place}: {which} is empty. Write a text, or leave it out.")
        found.append(reference)
    return found


def group_references(pairs: Iterable[Pair]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the distinct sources of examples in their order, and all targets of each as its references."""
    found: dict[str, list[str]] = {}
    for pair in pairs:
        found.setdefault(pair.source, []).append(pair.target)
    return list(found), [tuple(references) for references in found.values()]


def _label_text(value: object, name: str, place: str) -> str:
    """Return a label or a target: a string, or a number or a boolean as JSON writes it, `1` or `2.5` or `true`."""
    if isinstance(value, str):
        return value
    if not isinstance(value, int | float):  # a boolean is an int
        raise RegardError(f"{place}: field `{name}` is {json_sort(value)}, but it must be a string or a number.")
    return json.dumps(value)


def json_sort(value: object) -> str:
    """Return the name of a value's JSON type, with an article."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
