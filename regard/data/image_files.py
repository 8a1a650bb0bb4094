"""Images in a folder with their captions, questions or labels in files."""

from collections.abc import Iterable, Iterator

from regard.config.media_corpora import ImageFiles
from regard.data.archives import Listing
from regard.data.lines import read_lines
from regard.data.manifests import manifest_rows
from regard.data.pictures import list_pictures
from regard.foundation.errors import RegardError
from regard.text.joined import TAB


def read_captions(corpus: ImageFiles) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the location and (the name of an image, one of its captions); raises if an image does not exist."""
    there = Listing(corpus.images, list_pictures(corpus.images))
    for path, (location, image, question, texts, split) in _rows(corpus):
        found = there.find(image, path)
        if found is None:
            raise RegardError(
                f"{location} has a caption for `{image[:100]}`, but {corpus.images} has no such picture. Correct the "
                "name, "
                "or remove the line."
            )
        for text in texts if corpus.split is None or split == corpus.split else ():
            if not text.strip():
                raise RegardError(f"{location} has no caption for `{image}`. Write one, or remove the line.")
            name = f"{corpus.images.rstrip('/')}/{found}"
            yield location, (name if question is None else f"{name}{TAB}{question.replace(TAB, ' ')}", text)


def check_captions(corpora: Iterable[ImageFiles]) -> None:
    """Raise if a folder has images that no file of the corpora gives a caption for."""
    named: dict[str, set[str | None]] = {}
    files: dict[str, list[str]] = {}
    there: dict[str, list[str]] = {}
    for corpus in corpora:
        there.setdefault(corpus.images, list_pictures(corpus.images))
        listing = Listing(corpus.images, there[corpus.images])
        named.setdefault(corpus.images, set()).update(listing.find(row[1], path) for path, row in _rows(corpus))
        files.setdefault(corpus.images, []).extend(corpus.captions)
    for location, known in named.items():
        missing = [name for name in there[location] if name not in known]
        if missing:
            several = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            raise RegardError(
                f"{location} has pictures without a caption: {missing[0]}{several}. Name them in "
                f"{', '.join(dict.fromkeys(files[location]))}, or remove them."
            )


Row = tuple[str, str, str | None, list[str], str | None]
"""The location of a row, its image, its question or `None`, its captions, and its split or `None`."""


def _rows(corpus: ImageFiles) -> Iterator[tuple[str, Row]]:
    """Yield each file and its rows."""
    for path in corpus.captions:
        rows = _json(corpus, path) if path.removesuffix(".gz").endswith((".jsonl", ".json")) else _columns(corpus, path)
        yield from ((path, row) for row in rows)


def _columns(corpus: ImageFiles, path: str) -> Iterator[Row]:
    last = max(corpus.image_column, corpus.caption_column, corpus.question_column or 0, corpus.split_column or 0)
    for location, columns in manifest_rows(
        path, header=corpus.header, last=last, settings="image_column and caption_column"
    ):
        split = columns[corpus.split_column - 1] if corpus.split_column else None
        caption = columns[corpus.caption_column - 1]
        question = columns[corpus.question_column - 1] if corpus.question_column else None
        yield location, columns[corpus.image_column - 1].strip(), question, [caption], split


def _json(corpus: ImageFiles, path: str) -> Iterator[Row]:
    from regard.data.json_fields import json_sort, parse_json

    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        record = parse_json(line, place)
        if not isinstance(record, dict):
            raise RegardError(f"{place} is {json_sort(record)}, but every line must be a JSON object.")
        for name in (corpus.image_field, corpus.question_field, corpus.caption_field, corpus.split_field):
            if name is not None and name not in record:
                known = ", ".join(str(key) for key in list(record)[:10]) or "none"
                raise RegardError(
                    f"{place} has no field `{name}` (its fields: {known}). Set image_field and caption_field to its "
                    "names."
                )
        image, captions = record[corpus.image_field], record[corpus.caption_field]
        texts = captions if isinstance(captions, list) else [captions]
        question = record[corpus.question_field] if corpus.question_field else None
        for value in (image, *texts, question or ""):
            if not isinstance(value, str):
                raise RegardError(f"{place} has {json_sort(value)} where a string is needed. Correct the line.")
        if not texts:
            raise RegardError(f"{place} has no caption for `{image}`. Write one, or remove the line.")
        split = None if corpus.split_field is None else str(record[corpus.split_field])
        yield place, image, question, texts, split
