"""How our special tokens are named in a `vocab.json`, where every name may occur once.

Padding, end and unknown have the names that `transformers` looks for. A Marian vocabulary may have pieces of its own
that are written like one of the special tokens (`<s>` is common): of the two, the one that `transformers` needs by name
keeps it, and the other is written `<regard:…>`.
"""

from collections.abc import Sequence

from regard.foundation.errors import RegardError
from regard.text.specials import EOS, PAD, SPECIALS, UNK

NAMED = (SPECIALS[PAD], SPECIALS[EOS], SPECIALS[UNK])
"""The names that `transformers` looks for."""


def unique_names(vocabulary: Sequence[str]) -> list[str]:
    """Return the tokens of a vocabulary, special ones first, under names none of which occurs twice."""
    pieces = set(vocabulary[len(SPECIALS) :])
    specials = [special if special in NAMED or special not in pieces else _other(special) for special in SPECIALS]
    names = [*specials, *(_other(piece) if piece in NAMED else piece for piece in vocabulary[len(SPECIALS) :])]
    if len(set(names)) != len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise RegardError(f"Two tokens of the vocabulary are written `{twice}`, which a vocab.json cannot hold.")
    return names


def has_special_names(tokens: Sequence[str]) -> bool:
    """Return whether a vocabulary begins with our special tokens, as `unique_names` writes them."""
    first = tokens[: len(SPECIALS)]
    return len(first) == len(SPECIALS) and all(
        token in (special, _other(special)) for token, special in zip(first, SPECIALS, strict=True)
    )


def restored_names(tokens: Sequence[str]) -> list[str]:
    """Return the vocabulary that `unique_names` was given."""
    named = {_other(name): name for name in NAMED}
    return [*SPECIALS, *(named.get(token, token) for token in tokens[len(SPECIALS) :])]


def _other(special: str) -> str:
    return f"<regard:{special.strip('<>')}>"
