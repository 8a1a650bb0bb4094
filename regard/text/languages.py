"""Languages: codes, names, and identification of the language of a text."""

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.foundation.errors import RegardError
from regard.foundation.installation import install_command

if TYPE_CHECKING:
    from collections.abc import Sequence

ALIASES = {"zh": "zh-Hans", "zt": "zh-Hant", "pb": "pt-BR"}
"""Short codes of LibreTranslate for codes with a script or a region."""


class Guess(NamedTuple):
    """A language that a text may be in."""

    language: str
    confidence: float
    """Probability among the languages considered, between 0 and 1."""


def find_code(code: str, known: Iterable[str]) -> str | None:
    """Return the spelling of a language code among the known ones; case and aliases do not matter."""
    by_name = {name.lower(): name for name in known}
    wanted = code.strip().lower()
    spellings = [wanted]
    for short, long in ALIASES.items():
        if wanted == short:
            spellings.append(long.lower())
        elif wanted == long.lower():
            spellings.append(short)
    return next((by_name[spelling] for spelling in spellings if spelling in by_name), None)


@lru_cache(maxsize=500)
def language_name(code: str) -> str:
    """Return the English name of a language; the code itself if it is unknown."""
    from babel import Locale, UnknownLocaleError

    try:
        locale = Locale.parse(ALIASES.get(code, code).replace("-", "_"))
        name: str | None = locale.get_display_name("en")
    except (UnknownLocaleError, ValueError, TypeError):
        return code
    return name or code


class LanguageIdentifier:
    """Identifies the language of texts among a few candidates, with py3langid."""

    def __init__(self, languages: Iterable[str]) -> None:
        try:
            from py3langid import langid
        except ImportError:
            raise RegardError(
                f"Identifying languages needs py3langid. Install it with `{install_command('serve')}`."
            ) from None
        self._model: Any = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
        supported = set(self._model.labels)
        self._codes: dict[str, str] = {}
        for code in languages:
            base = code.split("-")[0].lower()
            base = {"zt": "zh", "pb": "pt"}.get(base, base)
            if base in supported:
                self._codes.setdefault(base, code)
        if self._codes:
            self._model.set_languages(sorted(self._codes))

    def rank(self, text: str) -> "Sequence[Guess]":
        """Return the candidate languages of a text, most likely first; none if the text has no letters."""
        if not self._codes or not any(map(str.isalpha, text)):
            return []
        return [Guess(self._codes[base], float(share)) for base, share in self._model.rank(text[:2000])]
