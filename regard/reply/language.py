"""The language of messages: responses in one language do not answer messages in another."""

from collections import Counter
from collections.abc import Iterable
from functools import cache

from regard.text.languages import LanguageIdentifier

LANGUAGES = (
    *("ar", "bg", "cs", "da", "de", "el", "en", "es", "fi", "fr", "he", "hi", "hu", "id", "it", "ja", "ko", "nl", "no"),
    *("pl", "pt", "ro", "ru", "sv", "tr", "uk", "vi", "zh"),
)
FEWEST_LETTERS = 25
"""A shorter message says too little about its language."""
SURE = 0.95
"""Probability from which a language is believed."""


@cache
def _identifier() -> LanguageIdentifier:
    return LanguageIdentifier(LANGUAGES)


def identify_language(text: str) -> str | None:
    """Return the language of a message; `None` if it is too short or the language is not clear."""
    if sum(map(str.isalpha, text)) < FEWEST_LETTERS:
        return None
    ranked = _identifier().rank(text)
    return ranked[0].language if ranked and ranked[0].confidence >= SURE else None


def main_language(texts: Iterable[str]) -> str | None:
    """Return the language of most messages; `None` if none is clear."""
    found = Counter(language for text in texts if (language := identify_language(text)) is not None)
    return found.most_common(1)[0][0] if found else None
