"""Normalisation of text before it is split into tokens.

The steps, in this order:

1. lone surrogates (half characters, which UTF-8 cannot represent) become U+FFFD;
2. the Unicode normal form of the configuration: NFC, NFKC or none;
3. lower case, if configured (and the normal form again, which lower-casing can change);
4. every run of whitespace becomes one space, and is removed at both ends;
5. `▁` (U+2581), with which tokens mark the start of a word, becomes `_`.

Steps 2 to 5 are a normaliser of the `tokenizers` library and are saved inside `tokenizer.json`. It adds one
space before the text, so that the first word looks like all others; `Tokenizer.normalise` omits that space.
"""

import re
from typing import TYPE_CHECKING

from tokenizers import Regex, normalizers

if TYPE_CHECKING:
    from regard.config.text import Tokenizer as Settings

WORD_START = "▁"
_SURROGATE = re.compile("[\ud800-\udfff]")
_WHITESPACE = r"[\s\x1c-\x1f\x85]+"
"""Everything at which Python's `str.split` splits: Unicode white space and the four separators of ASCII."""


def without_surrogates(text: str) -> str:
    """Return the text, of the same length, with U+FFFD for each lone surrogate."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def normaliser(settings: "Settings") -> normalizers.Normalizer:
    """Return the normaliser of steps 2 to 5, which also adds the space before the text."""
    forms: dict[str, list[normalizers.Normalizer]] = {
        "nfc": [normalizers.NFC()],
        "nfkc": [normalizers.NFKC()],
        "none": [],
    }
    form = forms[settings.unicode]
    lower = [normalizers.Lowercase(), *form] if settings.lower else []
    return normalizers.Sequence(
        [
            *form,
            *lower,
            normalizers.Replace(Regex(_WHITESPACE), " "),
            normalizers.Strip(),
            normalizers.Replace(WORD_START, "_"),
            normalizers.Prepend(" "),
        ]
    )
