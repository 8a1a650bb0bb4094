"""Pictures in a folder with captions in files: which picture is said to show what, and what is missing."""

from collections.abc import Iterable, Iterator

from regard.config.data import ImageFiles
from regard.data.lines import read_lines
from regard.data.pictures import pictures_in
from regard.foundation.errors import RegardError
from regard.text.joined import TAB


def captioned(corpus: ImageFiles) -> Iterator[tuple[str, tuple[str, str]]]:
    """The place, and (a picture's name, one of its captions), line by line; a name that is not there is refused."""
    there = set(pictures_in(corpus.images))
    for place, image, question, texts, split in _rows(corpus):
        if image not in there:
            raise RegardError(
                f"{place} has a caption for `{image[:100]}`, but {corpus.images} has no such picture: mend the name, "
                "or leave the line out."
            )
        for text in texts if corpus.split is None or split == corpus.split else ():
            if not text.strip():
                raise RegardError(f"{place} has no caption for `{image}`: write one, or leave the line out.")
            name = f"{corpus.images.rstrip('/')}/{image}"
            yield place, (name if question is None else f"{name}{TAB}{question.replace(TAB, ' ')}", text)


def check_captions(corpora: Iterable[ImageFiles]) -> None:
    """Refuse folders with pictures that no file of any of the corpora says anything about."""
    named: dict[str, set[str]] = {}
    files: dict[str, list[str]] = {}
    for corpus in corpora:
        named.setdefault(corpus.images, set()).update(row[1] for row in _rows(corpus))
        files.setdefault(corpus.images, []).extend(corpus.captions)
    for place, known in named.items():
        silent = [name for name in pictures_in(place) if name not in known]
        if silent:
            several = f" and {len(silent) - 1:,} more" if len(silent) > 1 else ""
            raise RegardError(
                f"{place} has pictures without a caption: {silent[0]}{several}. Name them in "
                f"{', '.join(dict.fromkeys(files[place]))}, or take them out."
            )


Row = tuple[str, str, str | None, list[str], str | None]
"""Where a row stands, its picture, its question if it has one, its captions, and its part of the corpus."""


def _rows(corpus: ImageFiles) -> Iterator[Row]:
    """The rows of all files."""
    for path in corpus.captions:
        rows = _json(corpus, path) if path.removesuffix(".gz").endswith((".jsonl", ".json")) else _tabs(corpus, path)
        yield from rows


def _tabs(corpus: ImageFiles, path: str) -> Iterator[Row]:
    last = max(corpus.image_column, corpus.caption_column, corpus.question_column or 0, corpus.split_column or 0)
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip() or (number == 1 and corpus.header):
            continue
        columns = line.split("\t")
        if len(columns) < last:
            raise RegardError(
                f"{path}:{number} has {len(columns)} tab-separated columns, but column {last} is wanted: mend the "
                "line, or set image_column and caption_column."
            )
        split = columns[corpus.split_column - 1] if corpus.split_column else None
        caption = columns[corpus.caption_column - 1]
        question = columns[corpus.question_column - 1] if corpus.question_column else None
        yield f"{path}:{number}", columns[corpus.image_column - 1].strip(), question, [caption], split


def _json(corpus: ImageFiles, path: str) -> Iterator[Row]:
    from regard.data.corpus import json_sort, parsed

    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        record = parsed(line, place)
        if not isinstance(record, dict):
            raise RegardError(f"{place} is no JSON object, but {json_sort(record)}: one object a line is wanted.")
        for name in (corpus.image_field, corpus.question_field, corpus.caption_field, corpus.split_field):
            if name is not None and name not in record:
                known = ", ".join(str(key) for key in list(record)[:10]) or "none"
                raise RegardError(
                    f"{place} has no field `{name}` (its fields: {known}): set image_field and caption_field to those."
                )
        image, captions = record[corpus.image_field], record[corpus.caption_field]
        texts = captions if isinstance(captions, list) else [captions]
        question = record[corpus.question_field] if corpus.question_field else None
        for value in (image, *texts, question or ""):
            if not isinstance(value, str):
                raise RegardError(f"{place} has {json_sort(value)} where a string is wanted: mend the line.")
        if not texts:
            raise RegardError(f"{place} has no caption for `{image}`: write one, or leave the line out.")
        split = None if corpus.split_field is None else str(record[corpus.split_field])
        yield place, image, question, texts, split
