"""Where a text mentions the values of a record, and how it writes them.

Texts seldom write a value exactly as a record does: `610.0` is 610, `1999-05-06` is May 6th, 1999 or 6 May 1999,
`Asphalt` is asphalt in a sentence, `Doña Ana County` is Dona Ana County, and `United States` is the U.S.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip
_NOTE = re.compile(r"(.*\S)\s*\(([^()]*)\)")
_ISO_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_NUMBER = re.compile(r"[-−]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_NUMBER_IN_TEXT = re.compile(r"(?<![\w.,/:])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\d/:]|[.,]\d)")
_PLACE = re.compile(r"([A-Z][\w' -]+), [A-Z][\w'. -]+")
_NAME_WITH_NOUN = re.compile(r"([A-Z][\w' -]+) [a-z]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_FOLDED = str.maketrans("–—−‐’‘`´“”øØłŁđĐıİ", "----''''\"\"oOlLdDiI")


class Writing(StrEnum):
    """How a text writes a value; the first part of a placeholder."""

    SAME = "ENTITY"
    """As the record does, or nearly."""
    LOWER = "LOWER"
    """In lower case."""
    SHORT = "SHORT"
    """A part that is enough: `Antioch` of `Antioch, California`, `English` of `English language`, `610` of `610.0`."""
    DATE = "DATE"
    """A date in English words."""


@dataclass(frozen=True)
class Mention:
    """A place of a text that mentions a value."""

    start: int
    end: int
    value: str
    writing: Writing


def split_note(value: str) -> tuple[str, str]:
    """Return a value without its note, and the note in words: `Ann` and `(singer)` of `Ann (singer)`."""
    found = _NOTE.fullmatch(value)
    return (found[1], f"({_CAMEL.sub(' ', found[2]).lower()})") if found and found[2].strip() else (value, "")


def write_value(value: str, writing: Writing) -> str:
    """Return a value as a text writes it."""
    if writing is Writing.LOWER:
        return value.lower()
    if writing is Writing.SHORT:
        return short_form(value) or value
    if writing is Writing.DATE and (day := _date(value)):
        return f"{day.day} {MONTHS[day.month - 1]} {day.year}"
    return value


def find_mentions(text: str, values: Sequence[str]) -> list[Mention]:
    """Return the mentions of values in a text, in order and without overlaps; long mentions are preferred.

    Short forms of a value, such as initials, are only looked for if its full form is not there.
    """
    folded = fold(text)
    kept: list[Mention] = []
    for find in (_find_full, _find_short):
        missing = [value for value in values if not any(mention.value == value for mention in kept)]
        mentions = [mention for value in missing for mention in find(text, folded, value)]
        for mention in sorted(mentions, key=lambda mention: mention.start - mention.end):
            if all(mention.end <= other.start or other.end <= mention.start for other in kept):
                kept.append(mention)
    return sorted(kept, key=lambda mention: mention.start)


def find_missing(text: str, values: Sequence[str]) -> list[str]:
    """Return the values that a text does not mention; part of a longer mention is no mention."""
    mentioned = {mention.value for mention in find_mentions(text, values)}
    return [value for value in values if value not in mentioned]


def fold(text: str) -> str:
    """Return a text of the same length without accents, and with plain dashes and quotes."""
    return "".join(unicodedata.normalize("NFD", letter)[0] for letter in text.translate(_FOLDED))


def _find_full(text: str, folded: str, value: str) -> Iterator[Mention]:
    if day := _date(value):
        yield from (Mention(*found.span(), value, Writing.DATE) for found in _date_pattern(day).finditer(folded))
    if _NUMBER.fullmatch(value):
        number = _number(value)
        for found in _NUMBER_IN_TEXT.finditer(folded):
            if _number(found[0]) == number:
                short = value.endswith(".0") and not found[0].endswith(".0")
                yield Mention(*found.span(), value, Writing.SHORT if short else Writing.SAME)
        return
    for found in _words_pattern(value).finditer(folded):
        lower = text[slice(*found.span())].islower() and not value.islower()
        yield Mention(*found.span(), value, Writing.LOWER if lower else Writing.SAME)


def _find_short(text: str, folded: str, value: str) -> Iterator[Mention]:
    if not _NUMBER.fullmatch(value) and (short := short_form(value)):
        yield from (Mention(*found.span(), value, Writing.SHORT) for found in _words_pattern(short).finditer(folded))
    if pattern := _initials_pattern(value):
        yield from (Mention(*found.span(), value, Writing.SAME) for found in pattern.finditer(folded))


def short_form(value: str) -> str | None:
    """Return the part of a value that is enough: a name before its comma or without its last word, a whole number."""
    if _NUMBER.fullmatch(value):
        return value.removesuffix(".0") if value.endswith(".0") else None
    found = _PLACE.fullmatch(value) or _NAME_WITH_NOUN.fullmatch(value)
    return found[1] if found else None


@lru_cache(maxsize=20_000)
def _words_pattern(value: str) -> re.Pattern[str]:
    """Return a pattern of the words of a value, whatever is between them but letters and digits."""
    folded = fold(value)
    words = re.findall(r"\w+", folded)
    if not words:
        return re.compile(re.escape(folded))
    pattern = words[0]
    for before, word in itertools.pairwise(words):
        pattern += (r"\W{0,3}" if len(before) == len(word) == 1 else r"\W{1,3}") + word  # A.C. or AC
    begin, end = (re.escape(rest) for rest in (folded[: folded.index(words[0])], folded[folded.rindex(words[-1]) :]))
    end = end.removeprefix(re.escape(words[-1]))
    return re.compile(rf"(?:{begin})?(?<!\w){pattern}(?!\w)(?:{end})?", re.IGNORECASE)  # $5 million or 5 million


@lru_cache(maxsize=20_000)
def _initials_pattern(value: str) -> re.Pattern[str] | None:
    """Return a pattern of the initials of a name: US, U.S. or USA for `United States`."""
    words = fold(value).split()
    if len(words) < 2 or not all(re.fullmatch(r"[A-Z][a-z]+", word) for word in words):
        return None
    return re.compile(r"(?<!\w)" + r"\.? ?".join(word[0] for word in words) + r"(?:\.?A)?(?!\w)(?:\.(?!$))?")


@lru_cache(maxsize=20_000)
def _date_pattern(day: date) -> re.Pattern[str]:
    """Return a pattern of a date in English words."""
    month = f"{MONTHS[day.month - 1][:3]}(?:{MONTHS[day.month - 1][3:]}|\\.)?"
    number = rf"0?{day.day}(?:st|nd|rd|th)?"
    first = rf"(?:the )?{number} (?:of )?{month}|{month} (?:the )?{number}"
    return re.compile(rf"(?<!\w)(?:{first})(?:,? | ?, | of | in ){day.year:04}(?!\w)", re.IGNORECASE)


@lru_cache(maxsize=20_000)
def _date(value: str) -> date | None:
    found = _ISO_DATE.fullmatch(value)
    try:
        return date(*map(int, found.groups())) if found else None
    except ValueError:
        return None


def _number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))
