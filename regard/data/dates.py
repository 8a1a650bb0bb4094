"""Free-form dates in many languages with their normal form (ISO 8601), by the locale data of Babel.

Texts are such as people write, as long as the text alone determines the day:

- years are 1900 to 2099 and have four digits, also where a locale's short form has two;
- all-numeric dates that begin with the year are read year, month, day everywhere; of others, those whose order
  differs between the chosen languages (03/04/2018) occur only where it cannot be mistaken: the day is above 12 or
  equals the month;
- a month name that means different months in different chosen languages (Polish and Croatian `listopada`) is not used;
- one weekday in ten is wrong, as people make mistakes; the rest of the date counts.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from regard.config.data import Generated
from regard.foundation.errors import RegardError

LANGUAGES = tuple(
    "en de fr es it pt ca ro nl sv da nb fi et lv lt pl cs sk sl hu ru uk bg el tr id vi ja zh ko".split()  # noqa: SIM905
)
FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)

_SKELETONS = ("yMMMd", "yMMMEd", "yMMMMd", "yMd", "yMEd")
_FREE = (
    "d MMMM y",
    "dd MMMM y",
    "d MMMM, y",
    "d MMM y",
    "dd MMM y",
    "d-MMM-y",
    "MMMM d, y",
    "MMM d, y",
    "MMM d y",
    "y MMMM d",
    "d LLLL y",
    "EEEE d MMMM y",
    "EEEE dd MMMM y",
    "EEE d MMM y",
)
"""Orders that people use regardless of their locale; for languages whose months have names."""
_ISO_LIKE = ("y-MM-dd", "y/MM/dd", "y.MM.dd")
_ORDINALS = {
    "en": (
        {"one": "st", "two": "nd", "few": "rd", "other": "th"},
        ("MMMM d#, y", "d# MMMM y", "'the' d# 'of' MMMM, y"),
    ),
    "fr": ({"one": "er"}, ("d# MMMM y", "EEEE d# MMMM y")),
    "sv": ({"one": ":a", "other": ":e"}, ("'den' d# MMMM y",)),
}
"""Suffix of each of Babel's ordinal forms, and patterns with `#` in its place."""
_PATIENCE = 10_000
_WRONG_WEEKDAY, _LOWER, _UPPER = 0.1, 0.12, 0.08


@dataclass(frozen=True)
class _Language:
    """A locale with the patterns that its dates are written in."""

    code: str
    locale: Any
    patterns: tuple[str, ...]


def dates(corpus: Generated) -> Iterator[tuple[str, str]]:
    """Yield distinct texts of dates, each with its day in the form `2018-05-09`."""
    languages = [_language(code) for code in corpus.languages or LANGUAGES]
    unclear_orders, unclear_months = _unclear_orders(languages), _unclear_months(languages)
    generator = random.Random(f"dates {corpus.seed}")
    seen: set[str] = set()
    failures = 0
    while len(seen) < corpus.size:
        language = generator.choice(languages)
        pattern = generator.choice(language.patterns)
        day = FIRST + timedelta(days=generator.randrange((LAST - FIRST).days + 1))
        clear = day.day > 12 or day.day == day.month or _shape(pattern) not in unclear_orders
        if not clear or (_names_month(pattern) and (language.code, day.month) in unclear_months):
            continue
        text = _vary_case(_format_date(day, pattern, language, generator), generator)
        if text in seen:
            failures += 1
            if failures > _PATIENCE:
                raise RegardError(
                    f"{', '.join(language.code for language in languages)} give only about {len(seen):,} different "
                    f"dates, but size is {corpus.size:,}. Make size smaller, or name more languages."
                )
            continue
        failures = 0
        seen.add(text)
        yield text, day.isoformat()


def _language(code: str) -> _Language:
    """Return the locale of a code with its patterns: the locale's own, common skeletons, free orders and ordinals."""
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError as error:
        raise RegardError(
            "The generated corpus `dates` needs Babel. Install it with `python -m pip install babel`."
        ) from error
    try:
        locale = Locale.parse(code.replace("-", "_"))
    except (UnknownLocaleError, ValueError, TypeError) as error:
        raise RegardError(
            f"The corpus `dates` does not support the language `{code}`. Use codes such as en, de or ja."
        ) from error
    patterns = [str(form.pattern) for form in locale.date_formats.values()]
    patterns += [
        str(locale.datetime_skeletons[name].pattern) for name in _SKELETONS if name in locale.datetime_skeletons
    ]
    patterns += _ISO_LIKE
    if not _numbered_months(locale):
        patterns += _FREE
        patterns += _ORDINALS.get(locale.language, ({}, ()))[1]
    whole = [re.sub(r"y+", "y", pattern) for pattern in patterns if _fields(pattern) in ("ymd", "mdy", "dmy")]
    return _Language(code, locale, tuple(dict.fromkeys(whole)))


def _numbered_months(locale: Any) -> bool:
    """Return whether a locale numbers its months (`5月`, `tháng 5`) instead of naming them."""
    names = [name for width in ("wide", "abbreviated") for name in locale.months["format"][width].values()]
    return any(character.isdigit() for name in names for character in name)


def _fields(pattern: str) -> str:
    """Return the order of year, month and day in a pattern, such as `dmy`."""
    letters = re.sub(r"'[^']*'", "", pattern).replace("L", "M")
    return "".join(letter.lower() for letter in re.sub(r"(.)\1+", r"\1", letters) if letter in "yMd")


def _names_month(pattern: str) -> bool:
    return "MMM" in pattern or "LLL" in pattern


def _shape(pattern: str) -> str:
    """Return the shape of an all-numeric date: its separators, and whether the year comes first."""
    if _names_month(pattern):
        return ""
    return (
        re.sub(r"[Ec]+[,.]?|'[^']*'|\s", "", pattern)
        .replace("MM", "M")
        .replace("dd", "d")
        .replace("M", "d")
        .strip(".,()")
    )


def _unclear_orders(languages: list[_Language]) -> set[str]:
    """Return the shapes of numeric dates whose order differs between the languages."""
    orders = defaultdict(set)
    for language in languages:
        for pattern in language.patterns:
            orders[_shape(pattern)].add(_fields(pattern))
    return {shape for shape, found in orders.items() if shape and len(found) > 1}


def _unclear_months(languages: list[_Language]) -> set[tuple[str, int]]:
    """Return the (language, month) pairs whose name means another month in another language."""
    meanings = defaultdict(set)
    names = [
        (language.code, month, name.casefold().strip("."))
        for language in languages
        for context in language.locale.months.values()
        for width in ("wide", "abbreviated")
        for month, name in context.get(width, {}).items()
    ]
    for _, month, name in names:
        meanings[name].add(month)
    return {(code, month) for code, month, name in names if len(meanings[name]) > 1}


def _format_date(day: date, pattern: str, language: _Language, generator: random.Random) -> str:
    """Format a day with a pattern of a language."""
    if "#" in pattern:
        suffix = _ORDINALS[language.locale.language][0].get(language.locale.ordinal_form(day.day))
        pattern = pattern.replace("#", f"'{suffix}'" if suffix else "")
    text = " ".join(str(_parse_pattern(pattern).apply(day, language.locale)).split())
    if generator.random() < _WRONG_WEEKDAY:
        for width in ("wide", "abbreviated"):
            names = language.locale.days["format"][width]
            if text.startswith(names[day.weekday()]):
                return str(names[generator.randrange(7)]) + text.removeprefix(names[day.weekday()])
    return text


@lru_cache(maxsize=4096)
def _parse_pattern(pattern: str) -> Any:
    from babel.dates import parse_pattern

    return parse_pattern(pattern)


def _vary_case(text: str, generator: random.Random) -> str:
    """Return the text, sometimes all in lower or upper case."""
    chance = generator.random()
    if chance < _LOWER:
        return text.lower()
    return text.upper() if chance < _LOWER + _UPPER else text
