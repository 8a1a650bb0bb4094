"""Delexicalisation: values of a record become placeholders in the record and in its texts, and values again in outputs.

A model that reads and writes placeholders needs no example of a name to write it. It cannot adapt a value to its
sentence either, and it does not see what a value is (Wen et al., 2015).
"""

import re
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase
from typing import Self

PLACEHOLDERS = tuple(f"ENTITY{letter}" for letter in ascii_uppercase)
"""Words that stand for values; further values of a record stay as they are."""


@dataclass(frozen=True)
class Template:
    """A record with placeholders, and the values that they stand for."""

    fields: list[tuple[str, ...]]
    """The parts of each field; all parts but names of properties are values."""
    values: dict[str, str]
    """The value of each placeholder."""

    @classmethod
    def of(cls, fields: list[tuple[str, ...]]) -> Self:
        """Replace the values of a record by placeholders: equal values by the same, in the order of the record."""
        places: dict[str, str] = {}
        for parts in fields:
            for value in _values(parts):
                if value not in places and len(places) < len(PLACEHOLDERS):
                    places[value] = PLACEHOLDERS[len(places)]
        renamed = [
            (*(places.get(part, part) for part in parts[:-2]), parts[-2], places.get(parts[-1], parts[-1]))
            for parts in fields
        ]
        return cls(renamed, {place: value for value, place in places.items()})

    @cached_property
    def _pattern(self) -> re.Pattern[str] | None:
        """Matches every value as whole words, the longest first."""
        longest_first = sorted(self.values.values(), key=len, reverse=True)
        parts = (_whole_words(value) for value in longest_first)
        return re.compile("|".join(parts), re.IGNORECASE) if self.values else None

    def insert_placeholders(self, text: str) -> str:
        """Replace the values in a text by their placeholders, whatever their case."""
        if self._pattern is None:
            return text
        places = {value.casefold(): place for place, value in self.values.items()}
        return self._pattern.sub(lambda found: places.get(found[0].casefold(), found[0]), text)

    def insert_values(self, text: str) -> str:
        """Replace the placeholders in a text by their values."""
        return re.sub(r"ENTITY[A-Z]", lambda found: self.values.get(found[0], found[0]), text)


def _values(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values of a field: subject and object of a triple, or the value of a field with a name."""
    return (*parts[:-2], parts[-1])


def _whole_words(value: str) -> str:
    """Return a regular expression of a value that does not match within a word."""
    before = r"(?<!\w)" if value[:1].isalnum() else ""
    after = r"(?!\w)" if value[-1:].isalnum() else ""
    return before + re.escape(value) + after
