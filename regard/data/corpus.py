"""Corpora in: pairs of raw sentences from files of several sorts, or generated on the spot."""

import json
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from regard.config.data import Corpus, Elsewhere, Generated, JsonLines, PairedFiles, TsvFiles
from regard.data.alignment import first_misaligned
from regard.data.lines import read_lines
from regard.errors import RegardError


class Pair(NamedTuple):
    """A source sentence and its target, as raw text."""

    source: str
    target: str


def read(corpus: Corpus) -> Iterator[Pair]:
    """The pairs of a corpus, one after another; what is wrong with a file is told by name and line."""
    empty = True
    for pair in _pairs(corpus):
        empty = False
        yield pair
    if empty:
        raise RegardError(f"{describe(corpus)} holds no pairs: the corpus is empty.")


def describe(corpus: Corpus) -> str:
    """A corpus in a few words, for messages."""
    match corpus:
        case PairedFiles():
            return f"{', '.join(corpus.source)} with {', '.join(corpus.target)}"
        case TsvFiles():
            return ", ".join(corpus.tsv)
        case JsonLines():
            return ", ".join(corpus.jsonl)
        case Generated():
            return f"the generated corpus `{corpus.generate}`"
        case Elsewhere():
            return f"the corpus of {corpus.imported}"


def _pairs(corpus: Corpus) -> Iterator[Pair]:
    match corpus:
        case PairedFiles():
            return _paired(corpus)
        case TsvFiles():
            return _tsv(corpus)
        case JsonLines():
            return _json(corpus)
        case Generated():
            from regard.data.generated import generate

            return (Pair(*pair) for pair in generate(corpus))
        case Elsewhere():
            raise RegardError(
                f"The model of {corpus.imported} was trained elsewhere, and its corpus is not here: "
                "name one of your own under data.train."
            )


def _paired(corpus: PairedFiles) -> Iterator[Pair]:
    for source, target in zip(corpus.source, corpus.target, strict=True):
        counts = [0, 0]
        for source_line, target_line in zip_longest(read_lines(source), read_lines(target)):
            counts[0] += source_line is not None
            counts[1] += target_line is not None
            if source_line is not None and target_line is not None:
                yield Pair(source_line, target_line)
        if counts[0] != counts[1]:
            line = first_misaligned(read_lines(source), read_lines(target))
            raise RegardError(
                f"{source} has {counts[0]:,} lines, but {target} has {counts[1]:,}: they are not aligned. "
                f"Line {line:,} is the first that looks wrong (by lengths, numbers, punctuation): compare them there."
            )


def _tsv(corpus: TsvFiles) -> Iterator[Pair]:
    source, target = corpus.source_column - 1, corpus.target_column - 1
    for path in corpus.tsv:
        for number, line in enumerate(read_lines(path), start=1):
            if not line:
                continue
            columns = line.split("\t")
            if len(columns) <= max(source, target):
                raise RegardError(
                    f"{path}:{number} has {len(columns)} tab-separated columns, but column {max(source, target) + 1} "
                    "is wanted: mend the line, or set source_column and target_column."
                )
            yield Pair(columns[source], columns[target])


def _json(corpus: JsonLines) -> Iterator[Pair]:
    for path in corpus.jsonl:
        for number, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise RegardError(f"{path}:{number} is not valid JSON ({error}).") from error
            yield Pair(*_fields(record, (corpus.source_field, corpus.target_field), f"{path}:{number}"))


def _fields(record: object, names: Iterable[str], place: str) -> Iterator[str]:
    """The named strings of a JSON object."""
    if not isinstance(record, dict):
        raise RegardError(f"{place} is no JSON object, but {_sort(record)}: one object a line is wanted.")
    for name in names:
        if name not in record:
            known = ", ".join(str(key) for key in list(record)[:10]) or "none"
            raise RegardError(
                f"{place} has no field `{name}` (its fields: {known}): set source_field and target_field to those."
            )
        if not isinstance(record[name], str):
            raise RegardError(f"{place}: field `{name}` is {_sort(record[name])}, but a string is wanted.")
        yield record[name]


def _sort(value: object) -> str:
    """The JSON name of a value's sort."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
