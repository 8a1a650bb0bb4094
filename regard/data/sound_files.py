"""Manifests of sounds: columns or JSON lines with the name of a sound and its text or label."""

from collections.abc import Iterator

from regard.config.media_corpora import SoundFiles, SpokenWords, SyntheticSpeech
from regard.data.archives import Listing
from regard.data.lines import read_lines
from regard.data.manifests import SOUND_ENDINGS, manifest_rows
from regard.data.sounds import list_sounds
from regard.data.spoken_words import read_spoken_words
from regard.data.synthetic_speech import read_synthetic_speech
from regard.foundation.errors import RegardError

Row = tuple[str, str, str]
"""The location of a row, the name of its sound within the folder, and its text."""


def read_sounds(corpus: SoundFiles | SpokenWords | SyntheticSpeech) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the location and (the name of a sound, its text) of every example of a corpus of sounds."""
    if isinstance(corpus, SoundFiles):
        yield from read_manifest(corpus)
        return
    pairs = read_spoken_words(corpus) if isinstance(corpus, SpokenWords) else read_synthetic_speech(corpus)
    for number, pair in enumerate(pairs, start=1):
        yield f"{corpus.name}, number {number:,},", pair


def read_manifest(corpus: SoundFiles) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the location and (the path of a sound, its text) of each line; raises if a sound is missing."""
    there = Listing(corpus.sounds, list_sounds(corpus.sounds))
    for path in corpus.manifest:
        is_json = path.removesuffix(".gz").endswith((".jsonl", ".json"))
        for location, name, text in _read_json(corpus, path) if is_json else _read_columns(corpus, path):
            found = there.find(name, path)
            if found is None:
                known = ", ".join(ending.removeprefix(".").upper() for ending in SOUND_ENDINGS)
                is_first = location.endswith(":1") and not is_json and not corpus.header
                header = "; if it names the columns, set header: true" if is_first else ""
                raise RegardError(
                    f"{location} names `{name[:100]}`, but {corpus.sounds} has no such sound ({known}). Correct the "
                    f"name, or remove the line{header}."
                )
            if not text.strip():
                raise RegardError(f"{location} has no text for `{name}`. Write one, or remove the line.")
            yield location, (f"{corpus.sounds.rstrip('/')}/{found}", text)


def _read_columns(corpus: SoundFiles, path: str) -> Iterator[Row]:
    last = max(corpus.sound_column, corpus.text_column)
    for location, columns in manifest_rows(
        path, header=corpus.header, last=last, settings="sound_column and text_column"
    ):
        yield location, columns[corpus.sound_column - 1].strip(), columns[corpus.text_column - 1]


def _read_json(corpus: SoundFiles, path: str) -> Iterator[Row]:
    from regard.data.json_fields import json_sort, parse_json

    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        place = f"{path}:{number}"
        record = parse_json(line, place)
        if not isinstance(record, dict):
            raise RegardError(f"{place} is {json_sort(record)}, but every line must be a JSON object.")
        for name in (corpus.sound_field, corpus.text_field):
            if name not in record:
                known = ", ".join(str(key) for key in list(record)[:10]) or "none"
                raise RegardError(
                    f"{place} has no field `{name}` (its fields: {known}). Set sound_field and text_field to its names."
                )
            if not isinstance(record[name], str) and (name == corpus.sound_field or not _is_number(record[name])):
                raise RegardError(f"{place}: field `{name}` is {json_sort(record[name])}, but it must be a string.")
        yield place, record[corpus.sound_field], str(record[corpus.text_field])


def _is_number(value: object) -> bool:
    """Return whether a value is an integer, which may be a label."""
    return isinstance(value, int) and not isinstance(value, bool)
