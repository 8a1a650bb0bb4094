"""Reading of corpora: pairs of raw sentences from files of several formats, or generated ones."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from regard.config.data import Corpus, Elsewhere, Generated, ReaderFiles
from regard.config.media_corpora import ImageFiles, SoundFiles, SpokenWords, SyntheticSpeech
from regard.config.text_corpora import (
    BabiFiles,
    ColumnFiles,
    ConlluFiles,
    DatasetDirectories,
    GapSentences,
    JsonLines,
    JsonTexts,
    LabelledLines,
    PairedFiles,
    RecordFiles,
    TableFiles,
    TextFiles,
    TsvFiles,
)
from regard.data.line_corpora import line_chunks
from regard.data.pair import Pair
from regard.foundation.errors import RegardError
from regard.text.joined import TAB

__all__ = ["READERS", "Pair", "describe", "group_references", "read", "read_located"]


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
        case PairedFiles() | TsvFiles() | JsonLines() | LabelledLines():
            for chunk in line_chunks(corpus):
                yield from ((chunk.place(number), pair) for number, pair in chunk.numbered())
        case TableFiles() | RecordFiles() | DatasetDirectories():
            yield from _read_rows(corpus)
        case ConlluFiles() | ColumnFiles():
            from regard.data.tagged import read_tagged

            yield from ((location, Pair(*pair)) for location, pair in read_tagged(corpus))
        case TextFiles() | JsonTexts():
            from regard.data.documents import read_documents

            yield from _number_pairs(corpus, (Pair(text, "") for text in read_documents(corpus)))
        case GapSentences():
            from regard.data.gap_sentences import read_gap_sentences

            yield from _number_pairs(corpus, (Pair(*pair) for pair in read_gap_sentences(corpus)))
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


def _read_rows(corpus: TableFiles | RecordFiles | DatasetDirectories) -> Iterator[tuple[str, Pair]]:
    """Yield the pairs of a table with named columns, of a dataset, or of a corpus of records."""
    if isinstance(corpus, TableFiles):
        from regard.data.tables import read_table

        found = read_table(corpus)
    elif isinstance(corpus, DatasetDirectories):
        from regard.data.dataset_directories import read_datasets

        found = read_datasets(corpus)
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


def even_sample(pairs: Sequence[Pair], most: int) -> Sequence[Pair]:
    """Return about `most` examples, spread evenly over all; those of one source stay together."""
    if len(pairs) <= most:
        return pairs
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.source, []).append(pair)
    sources = list(groups.values())
    count = max(1, round(len(sources) * most / len(pairs)))
    return [pair for number in range(count) for pair in sources[number * len(sources) // count]]


def group_references(pairs: Iterable[Pair]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the distinct sources of examples in their order, and all targets of each as its references."""
    found: dict[str, list[str]] = {}
    for pair in pairs:
        found.setdefault(pair.source, []).append(pair.target)
    return list(found), [tuple(references) for references in found.values()]
