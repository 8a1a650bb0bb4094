"""Corpora whose examples are lines: paired files, tab-separated columns, JSON lines, and labelled lines.

They are read in chunks of whole lines. A chunk is bytes until its examples are needed, so that another process can
decode and parse it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from regard.config.text_corpora import JsonLines, LabelledLines, PairedFiles, TsvFiles
from regard.data.alignment import first_misaligned
from regard.data.json_fields import field_of, label_text_of, parse_json, references_of, text_of
from regard.data.lines import LineBlock, paired_blocks, read_blocks, read_lines
from regard.data.pair import Pair
from regard.data.tables import looks_like_header
from regard.foundation.errors import RegardError
from regard.text.joined import TAB

LineCorpus: TypeAlias = PairedFiles | TsvFiles | JsonLines | LabelledLines
Numbered: TypeAlias = Iterator[tuple[int, Pair]]
"""Examples, each with the number of its line."""


@dataclass(frozen=True, slots=True)
class LineChunk:
    """Consecutive lines of a corpus."""

    corpus: LineCorpus
    blocks: tuple[LineBlock, ...]
    """The lines; of paired files the source lines and as many target lines."""
    width: int = 0
    """Tab-separated columns: how many the first line of the file has."""

    def place(self, number: int) -> str:
        """Return the location of a line, for messages."""
        return f"{self.blocks[-1].path}:{number}"

    def pairs(self) -> Iterator[Pair]:
        """Yield its examples."""
        return (pair for _, pair in self.numbered())

    def numbered(self) -> Numbered:
        """Yield its examples, each with the number of its line."""
        match self.corpus:
            case PairedFiles():
                source, target = self.blocks
                return enumerate(map(Pair, source.lines(), target.lines()), start=target.first)
            case TsvFiles() as corpus:
                return _parse_columns(corpus, self.blocks[0], self.width)
            case JsonLines() as corpus:
                return _parse_json_lines(corpus, self.blocks[0])
            case LabelledLines():
                return _parse_labelled(self.blocks[0])


def line_chunks(corpus: LineCorpus) -> Iterator[LineChunk]:
    """Yield the chunks of a corpus in order; they depend on nothing but its files."""
    match corpus:
        case PairedFiles():
            for source, target in zip(corpus.source, corpus.target, strict=True):
                yield from _paired_chunks(corpus, source, target)
        case TsvFiles():
            for path in corpus.tsv:
                width = 0
                for block in read_blocks(path):
                    width = width or next((line.count(TAB) + 1 for line in block.lines() if line), 0)
                    yield LineChunk(corpus, (block,), width)
        case JsonLines():
            yield from (LineChunk(corpus, (block,)) for path in corpus.jsonl for block in read_blocks(path))
        case LabelledLines():
            yield from (LineChunk(corpus, (block,)) for path in corpus.labelled for block in read_blocks(path))


def _paired_chunks(corpus: PairedFiles, source: str, target: str) -> Iterator[LineChunk]:
    counts = [0, 0]
    for left, right in paired_blocks(source, target):
        counts = [counts[0] + (left.count if left else 0), counts[1] + (right.count if right else 0)]
        if left and right:
            yield LineChunk(corpus, (left, right))
    if counts[0] != counts[1]:
        line = first_misaligned(read_lines(source), read_lines(target))
        raise RegardError(
            f"{source} has {counts[0]:,} lines, but {target} has {counts[1]:,}, so they are not aligned. "
            f"Line {line:,} is the first that looks wrong (by lengths, numbers, punctuation). Compare them there."
        )


def _parse_columns(corpus: TsvFiles, block: LineBlock, width: int) -> Numbered:
    sources = [column - 1 for column in (corpus.source_column, corpus.second_column) if column is not None]
    target, last = corpus.target_column - 1, max(*sources, corpus.target_column - 1) + 1
    single = sources[0] if len(sources) == 1 else None
    for number, line in enumerate(block.lines(), start=block.first):
        columns = line.split("\t")
        if not line or (number == 1 and corpus.header):
            continue
        if len(columns) < last:
            raise RegardError(
                f"{block.path}:{number} has {len(columns)} tab-separated columns, but column {last} is needed. Correct "
                "the line, or set source_column and target_column."
            )
        if len(columns) != width:
            raise RegardError(
                f"{block.path}:{number} has {len(columns)} tab-separated columns, but the first line has {width}. An "
                "extra or missing tab shifts the columns, so that a text is taken for a label or a translation. "
                "Correct the wrong line."
            )
        if number == 1 and corpus.header is None:
            _refuse_header(block.path, [columns[column] for column in (*sources, target)])
        text = columns[single] if single is not None else TAB.join(columns[column] for column in sources)
        yield number, Pair(text, columns[target])


def _refuse_header(path: str, cells: list[str]) -> None:
    """Raise if the first line looks like a header and the configuration does not set `header`."""
    if looks_like_header(cells):
        raise RegardError(
            f"{path}:1 looks like a header ({', '.join(cells)}), which would be read as an example. Set header: true "
            "to skip it, or header: false if it is an example."
        )


def _parse_json_lines(corpus: JsonLines, block: LineBlock) -> Numbered:
    names = [name for name in (corpus.source_field, corpus.second_field) if name is not None]
    for number, line in enumerate(block.lines(), start=block.first):
        if not line.strip():
            continue
        place = f"{block.path}:{number}"
        record = parse_json(line, place)
        sources = [text_of(field_of(record, name, place), name, place) for name in names]
        value = field_of(record, corpus.target_field, place)
        parts = [source.replace(TAB, " ") for source in sources] if corpus.texts > 1 else sources
        for target in references_of(value, corpus.target_field, place) if isinstance(value, list) else [value]:
            yield number, Pair(TAB.join(parts), label_text_of(target, corpus.target_field, place))


def _parse_labelled(block: LineBlock) -> Numbered:
    for number, line in enumerate(block.lines(), start=block.first):
        if not line.strip():
            continue
        label, *rest = line.split(maxsplit=1)
        if not rest:
            raise RegardError(
                f"{block.path}:{number} has only one word, `{label[:40]}`, but a label and a text are needed. Correct "
                "the line."
            )
        yield number, Pair(rest[0].replace(TAB, " "), label)
