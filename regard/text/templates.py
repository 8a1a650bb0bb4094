"""Delexicalisation: values of a record become placeholders in the record and in its texts, and values again in outputs.

A model that reads and writes placeholders needs no example of a name to write it. It cannot adapt a value to its
sentence either, and it does not see what a value is (Wen et al., 2015).
"""

import re
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase
from typing import Self

from regard.text.mentions import Mention, Writing, find_mentions, split_note, write_value

PLACEHOLDERS = tuple(f"{Writing.SAME}{letter}" for letter in ascii_uppercase)
"""Words that stand for values; further values of a record stay as they are."""
_PLACEHOLDER = re.compile(rf"\b({'|'.join(Writing)})([A-Z])\b")


@dataclass(frozen=True)
class Template:
    """A record with placeholders, and the values that they stand for."""

    fields: list[tuple[str, ...]]
    """The parts of each field; all parts but names of properties are values."""
    values: dict[str, str]
    """The value of each placeholder, without a note in parentheses, which stays in the record."""

    @classmethod
    def of(cls, fields: list[tuple[str, ...]]) -> Self:
        """Replace the values of a record by placeholders: equal values by the same, in the order of the record."""
        places: dict[str, str] = {}
        for parts in fields:
            for value in _values(parts):
                if value not in places and len(places) < len(PLACEHOLDERS):
                    places[value] = PLACEHOLDERS[len(places)]
        shown = {value: f"{place} {split_note(value)[1]}".strip() for value, place in places.items()}
        renamed = [
            (*(shown.get(part, part) for part in parts[:-2]), parts[-2], shown.get(parts[-1], parts[-1]))
            for parts in fields
        ]
        return cls(renamed, {place: split_note(value)[0] for value, place in places.items()})

    @cached_property
    def _letters(self) -> dict[str, str]:
        """The last letter of the placeholder of each value; of equal values without notes, that of the first."""
        letters: dict[str, str] = {}
        for place, value in self.values.items():
            letters.setdefault(value, place[-1])
        return letters

    def insert_placeholders(self, text: str) -> str:
        """Replace the values in a text by placeholders that say how the text writes them."""
        found, end = "", 0
        for mention in find_mentions(text, list(self._letters)):
            found += text[end : mention.start] + self._placeholder(mention)
            end = mention.end
            if end == len(text) and text.endswith("."):  # the end of the sentence, too
                end -= 1
            if text[end : end + 1].isalnum():  # 21.2m
                found += " "
        return found + text[end:]

    def _placeholder(self, mention: Mention) -> str:
        return f"{mention.writing}{self._letters[mention.value]}"

    def insert_values(self, text: str) -> str:
        """Replace the placeholders in a text by their values, written as the placeholders say."""

        def written(found: re.Match[str]) -> str:
            value = self.values.get(f"{Writing.SAME}{found[2]}")
            if value is None:
                return found[0]
            value = write_value(value, Writing(found[1]))
            return value[:-1] if value.endswith(".") and text[found.end() :].startswith(".") else value

        return _PLACEHOLDER.sub(written, text)


def _values(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of a field: subject and object of a triple, or the value of a field with a name."""
    return (*parts[:-2], parts[-1])
