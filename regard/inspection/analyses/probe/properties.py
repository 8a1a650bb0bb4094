"""What a corpus says of its words: a column of a treebank, a morphological feature, or a column of a table."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from regard.data.conllu import Sentence, Word, read_conllu
from regard.data.lines import read_lines
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress, reported
from regard.inspection.corpus import match_tokens
from regard.text.tokenizer import Tokenizer

COLUMNS = ("upos", "xpos", "deprel")
"""What every word of a treebank has; any other name is that of a morphological feature."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A sentence whose words have labels; words without one are left out."""

    ids: list[int]
    """Its tokens, without special ones."""
    words: list[str]
    labels: list[str]
    tokens: list[list[int]]
    """The places of each word's tokens."""


@dataclass(frozen=True, slots=True)
class Given:
    """A sentence with a label, or none, for each word."""

    sentence: Sentence
    labels: list[str | None]


def is_table(path: Path | str) -> bool:
    """Whether a corpus is a table of words and labels rather than a treebank, by its name."""
    return Path(path).name.removesuffix(".gz").endswith(".tsv")


def read_labelled(
    path: Path | str,
    wanted: str,
    tokenizer: Tokenizer,
    *,
    longest: int,
    most: int | None = None,
    progress: Progress | None = None,
) -> tuple[list[Labelled], int]:
    """The sentences with a labelled word and at most `longest` tokens, up to `most`; and how many were too long."""
    given = read_table(path, wanted) if is_table(path) else _treebank(path, wanted)
    found: list[Labelled] = []
    left_out = 0
    for labelled in reported(islice(given, most), "reading", progress, most):
        matched = match_tokens(labelled.sentence, tokenizer)
        if len(matched.ids) > longest:
            left_out += 1
            continue
        kept = [index for index, label in enumerate(labelled.labels) if label is not None]
        found.append(
            Labelled(
                matched.ids,
                [labelled.sentence.words[index].form for index in kept],
                [label for label in labelled.labels if label is not None],
                [matched.tokens[index] for index in kept],
            )
        )
    if not any(sentence.labels for sentence in found):
        raise UsageError(f"No word of {path} has the property `{wanted}`: {_offers(path)}")
    return found, left_out


def _treebank(path: Path | str, wanted: str) -> Iterator[Given]:
    for sentence in read_conllu(path):
        yield Given(sentence, [_label(word, wanted) for word in sentence.words])


def _label(word: Word, wanted: str) -> str | None:
    if wanted in COLUMNS:
        label = {"upos": word.upos, "xpos": word.xpos, "deprel": word.relation}[wanted]
        return None if label == "_" else label
    return word.features.get(wanted)


def _offers(path: Path | str) -> str:
    """Return the properties that the file offers."""
    if is_table(path):
        return "name one of its columns by its number, counted from 1 (the first holds the words)."
    words = (word for sentence in islice(read_conllu(path), 1000) for word in sentence.words)
    features = Counter(feature for word in words for feature in word.features)
    return f"use one of {', '.join([*COLUMNS, *(name for name, _ in features.most_common(30))])}."


def read_table(path: Path | str, wanted: str) -> Iterator[Given]:
    """The sentences of a table with a word and its labels on each line, a blank line between sentences.

    `wanted` is the number of a column, counted from 1; a label `_` is none.
    """
    column = 2 if wanted == "label" else int(wanted) if wanted.isdigit() else 0
    if column < 2:
        raise UsageError(
            f"`{wanted}` is no column of labels of {path}: give the number of one, counted from 1 (2 is the column "
            "after the word)."
        )
    for number, rows in _blocks(read_lines(path)):
        words: list[Word] = []
        labels: list[str | None] = []
        start = 0
        for index, row in enumerate(rows, start=number):
            fields = row.split("\t")
            if len(fields) < column or not fields[0].strip():
                raise RegardError(
                    f"{path}:{index} has {len(fields)} tab-separated columns: a word and its labels were expected, the "
                    f"label asked for in column {column}."
                )
            form = fields[0].strip()
            words.append(Word(form, start, start + len(form), "_", "_", "_", {}, -1, "_"))
            labels.append(None if fields[column - 1] in ("_", "") else fields[column - 1])
            start += len(form) + 1
        yield Given(Sentence(" ".join(word.form for word in words), words, number), labels)


def _blocks(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Lines between blank ones, with the number of the first."""
    block: list[str] = []
    first = 1
    for number, line in enumerate(lines, start=1):
        if line.strip():
            first = first if block else number
            block.append(line)
        elif block:
            yield first, block
            block = []
    if block:
        yield first, block
