"""Names of our special tokens in a `vocab.json`, in which every name must be unique.

Padding, end and unknown have the names that `transformers` looks for. A Marian vocabulary may contain pieces with the
name of a special token (`<s>` is common); then the one that `transformers` needs by name keeps it, and the other
becomes `<regard:…>`.
"""

from collections.abc import Sequence

from regard.foundation.errors import RegardError
from regard.text.specials import EOS, PAD, SPECIALS, UNK

NAMED = (SPECIALS[PAD], SPECIALS[EOS], SPECIALS[UNK])
"""The names that `transformers` looks for."""


def unique_names(vocabulary: Sequence[str]) -> list[str]:
    """Return unique names of the tokens of a vocabulary, special ones first."""
    pieces = set(vocabulary[len(SPECIALS) :])
    specials = [special if special in NAMED or special not in pieces else _rename(special) for special in SPECIALS]
    names = [
        *specials,
        *(_rename(piece) if piece in NAMED else piece for piece in vocabulary[len(SPECIALS) :]),
    ]
    if len(set(names)) != len(names):
        twice = next(name for index, name in enumerate(names) if name in names[:index])
        raise RegardError(f"Two tokens of the vocabulary are called `{twice}`, which a vocab.json does not allow.")
    return names


def has_special_names(tokens: Sequence[str]) -> bool:
    """Return whether a vocabulary begins with our special tokens, as `unique_names` writes them."""
    first = tokens[: len(SPECIALS)]
    return len(first) == len(SPECIALS) and all(
        token in (special, _rename(special)) for token, special in zip(first, SPECIALS, strict=True)
    )


def restore_names(tokens: Sequence[str]) -> list[str]:
    """Return the vocabulary before `unique_names`."""
    named = {_rename(name): name for name in NAMED}
    return [*SPECIALS, *(named.get(token, token) for token in tokens[len(SPECIALS) :])]


def _rename(special: str) -> str:
    return f"<regard:{special.strip('<>')}>"
