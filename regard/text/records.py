"""Records as text: JSON objects and lists of triples, linearised with field markers.

A field of an object has two parts, its name and its value; a triple has three: subject, property and object. In the
tokens of a record `<s>` begins every field, and `<sep>` stands between its parts.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.foundation.errors import RegardError
from regard.text.specials import BOS, SEP, SPECIALS
from regard.text.templates import Template
from regard.text.tokenizer import Encoded, Kind, Tokenizer

if TYPE_CHECKING:
    from regard.text.packed_rows import PackedRows

Fields = list[tuple[str, ...]]
"""The parts of each field as plain text."""

MOST_SHOWN = 80
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class _BadRecord(Exception):
    """What is wrong with a record, as the end of a sentence that begins with its place."""


class DuplicateField(_BadRecord):
    """A JSON object has two fields of the same name, of which `json` would keep the last."""


@dataclass(frozen=True)
class RecordForm:
    """Where the record is in a JSON object of a corpus."""

    record_field: str | None = None
    """The field that holds the record; `None` if the object itself is the record."""
    text_field: str | None = None
    """The field that holds the text, which is not part of the record."""

    def record_of(self, value: object) -> object:
        """Return the record of an example, or a record itself unchanged."""
        if not isinstance(value, Mapping):
            return value
        if self.record_field is not None and self.record_field in value:
            return value[self.record_field]
        return {name: inner for name, inner in value.items() if name != self.text_field}


def unique_fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the JSON object of (name, value) pairs; raises `DuplicateField`."""
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise DuplicateField(f"has the field `{twice[:MOST_SHOWN]}` twice. Write its values as a list, or remove one.")
    return record


def format_record(record: object) -> str:
    """Return the JSON text of a record, which is the raw source of an example; raises for other types.

    Numbers and arrays of NumPy and pandas, dates and times are accepted.
    """
    try:
        return json.dumps(record, ensure_ascii=False, default=_plain_value)
    except (TypeError, ValueError, RecursionError) as error:
        raise RegardError(f"The record cannot be written as JSON ({error}). Give texts and numbers.") from None


def _plain_value(value: object) -> object:
    """Return a value of another library as one that JSON has."""
    for method in ("tolist", "isoformat"):
        if hasattr(value, method):
            return getattr(value, method)()
    raise TypeError(f"{type(value).__name__} is not a type of JSON")


def record_problem(source: str, form: RecordForm | None = None) -> str | None:
    """Return what is wrong with a raw source, as the end of a sentence that begins with its place, or `None`."""
    try:
        _parse(source, form or RecordForm())
    except _BadRecord as problem:
        return str(problem)
    return None


def parse_record(source: str, form: RecordForm | None = None) -> Fields:
    """Return the fields of a record given as JSON text; the error for an invalid one quotes it."""
    try:
        return _parse(source, form or RecordForm())
    except _BadRecord as problem:
        shown = source if len(source) <= MOST_SHOWN else f"{source[: MOST_SHOWN - 1]}…"
        raise RegardError(f"The record `{shown}` {problem}") from None


def _parse(source: str, form: RecordForm) -> Fields:
    try:
        record = form.record_of(json.loads(source, object_pairs_hook=unique_fields))
    except (ValueError, RecursionError) as error:
        raise _BadRecord(
            f'is not JSON ({error}). Write an object such as {{"name": "Ann", "born": 1970}}, or a list of triples.'
        ) from None
    fields = _object_fields(record) if isinstance(record, Mapping) else _triple_fields(record)
    if not fields:
        raise _BadRecord("has no field with a value. Leave it out.")
    return fields


def _object_fields(record: Mapping[str, object]) -> Fields:
    """Return (name, value) of every field; a list gives one field for each value, and null, NaN and "" give none."""
    fields: Fields = []
    for name, value in record.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Mapping | list):
                raise _BadRecord(
                    f"has a nested field: `{name}` contains {'a list' if isinstance(one, list) else 'an object'}. "
                    f'Write its values as fields of their own, such as "{name} first" and "{name} second".'
                )
            if text := _value(one):
                fields.append((readable_name(name), text))
    return fields


def _triple_fields(record: object) -> Fields:
    if not isinstance(record, list):
        raise _BadRecord("is neither a JSON object nor a list of triples. Write one of these.")
    fields: Fields = []
    for number, triple in enumerate(record, start=1):
        if not isinstance(triple, list) or len(triple) != 3 or any(isinstance(one, Mapping | list) for one in triple):
            raise _BadRecord(
                f"has an item that is not a triple: number {number} is `{json.dumps(triple)[:MOST_SHOWN]}`. Write "
                '["subject", "property", "object"], three texts or numbers.'
            )
        subject, name, value = map(_value, triple)
        if not (subject and name and value):
            raise _BadRecord(f"has a triple with an empty part: number {number}. Fill it in, or leave the triple out.")
        fields.append((readable_value(subject), readable_name(name), readable_value(value)))
    return fields


def _value(value: object) -> str:
    """Return a value as text on one line; empty for null, and for NaN, which pandas has in place of missing values."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return " ".join((value if isinstance(value, str) else json.dumps(value)).split())


def readable_name(name: str) -> str:
    """Return the name of a field as words: `birth_date` and `birthDate` as `birth date`."""
    words = _CAMEL.sub(" ", name.replace("_", " ")).split()
    return " ".join(word if word.isupper() else word.lower() for word in words)


def readable_value(value: str) -> str:
    """Return the subject or object of a triple as text: without underscores and surrounding double quotes."""
    return " ".join(value.strip().strip('"').replace("_", " ").split()) or value


def linearise(fields: Fields) -> str:
    """Return the parts of all fields as one text without markers, from which a vocabulary is learned."""
    return " ".join(part for field in fields for part in field)


class RecordTokenizer(Tokenizer):
    """A tokenizer of any kind for records given as JSON text.

    Character spans are those of `linearise(fields)`, and each marker is a word of its own. With `delexicalised`, values
    become placeholders (see `regard.text.templates`).
    """

    def __init__(self, tokenizer: Tokenizer, form: RecordForm, *, delexicalised: bool = False) -> None:
        self.one = tokenizer
        """The tokenizer of names and values."""
        self.form = form
        self.delexicalised = delexicalised

    @cached_property
    def size(self) -> int:
        """Number of tokens, special ones included."""
        return self.one.size

    @cached_property
    def kind(self) -> Kind:
        """Its kind."""
        return self.one.kind

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that determines its behaviour."""
        return self.one.fingerprint

    @cached_property
    def vocabulary(self) -> list[str]:
        """All tokens, in the order of their ids."""
        return self.one.vocabulary

    @cached_property
    def merges(self) -> list[tuple[str, str]]:
        """Merges of byte-pair encoding."""
        return self.one.merges

    def normalise(self, text: str) -> str:
        """Return the text after tokenising and detokenising."""
        return self.one.normalise(text)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids."""
        return self.one.decode(ids)

    def save(self, path: Path) -> None:
        """Write the tokenizer of names and values."""
        self.one.save(path)

    def fields(self, source: str) -> Fields:
        """Return the fields of a record as the model reads them; none of an empty text, which stays empty."""
        if not source.strip():
            return []
        fields = parse_record(source, self.form)
        return Template.of(fields).fields if self.delexicalised else fields

    def encode(self, text: str) -> Encoded:
        """Return the tokens of a record."""
        whole = Encoded([], [], [], [])
        begin = word = 0
        for parts in self.fields(text):
            for index, part in enumerate(parts):
                marker = SEP if index else BOS
                found = self.one.encode(part)
                whole.ids.extend([marker, *found.ids])
                whole.tokens.extend([SPECIALS[marker], *found.tokens])
                whole.offsets.append((begin, begin))
                whole.offsets.extend((first + begin, last + begin) for first, last in found.offsets)
                whole.words.extend([word, *(number + word + 1 for number in found.words)])
                word = whole.words[-1] + 1
                begin += len(part) + 1
        return whole

    def encode_packed(self, texts: Sequence[str]) -> "PackedRows":
        """Return the ids of many texts in one array."""
        from regard.text.packed_rows import PackedRows

        return PackedRows.of(self.encode_batch(texts))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return only the ids."""
        rows = [self.fields(text) for text in texts]
        ids = iter(self.one.encode_batch([part for fields in rows for parts in fields for part in parts]))
        found: list[list[int]] = []
        for fields in rows:
            row: list[int] = []
            for parts in fields:
                for index, _ in enumerate(parts):
                    row += [SEP if index else BOS, *next(ids)]
            found.append(row)
        return found


def record_form(corpus: Any) -> RecordForm:
    """Return where the records of a corpus are; an object itself if the corpus does not say."""
    return RecordForm(getattr(corpus, "record_field", None), getattr(corpus, "text_field", None))
