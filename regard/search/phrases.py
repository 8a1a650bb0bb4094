"""Rules over tokens: outputs with a prefix, outputs from a list, outputs that contain phrases."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from regard.search.rules import Free, one_of
from regard.text.specials import EOS

Tokens = tuple[int, ...]


class Prefix(Free):
    """The output begins with these tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.needs = len(tokens)

    @property
    def start(self) -> int:
        """The number of generated tokens."""
        return 0

    def after(self, state: int, token: int) -> int:
        """Return the number of tokens after one more."""
        return state + 1

    def allowed(self, state: int, left: int, size: int) -> Tensor | None:
        """Allow the next token of the prefix; after the prefix, every token."""
        return one_of([self.tokens[state]], size) if state < len(self.tokens) else None


class Only(Free):
    """The output is one of a list: a path through their trie (Cao et al., 2021).

    The cost does not depend on the length of the list.
    """

    def __init__(self, outputs: Sequence[Tokens]) -> None:
        self.trie: dict[int, Any] = {}
        self.needs = max(map(len, outputs))
        for tokens in outputs:
            node = self.trie
            for token in (*tokens, EOS):
                node = node.setdefault(token, {})

    @property
    def start(self) -> dict[int, Any]:
        """The root of the trie."""
        return self.trie

    def after(self, state: dict[int, Any], token: int) -> dict[int, Any]:
        """Return the next node of the trie."""
        branch: dict[int, Any] = state.get(token, {})
        return branch

    def allowed(self, state: dict[int, Any], left: int, size: int) -> Tensor:
        """Allow the children of the node."""
        return one_of(list(state), size)


class Required(Free):
    """The output contains each of some phrases, each in one of several tokenizations.

    The state is the number of matched tokens of each tokenization of each phrase; `None` marks a phrase that has been
    generated. A phrase may come at any time, and is forced once there is just enough room for the missing ones.
    """

    def __init__(self, phrases: Sequence[Sequence[Tokens]]) -> None:
        self.phrases = [tuple(phrase) for phrase in phrases]
        self.lengths = [min(map(len, phrase)) for phrase in self.phrases]
        self.needs = sum(max(map(len, phrase)) for phrase in self.phrases)

    @property
    def start(self) -> tuple[tuple[int, ...] | None, ...]:
        """No token is matched."""
        return tuple((0,) * len(phrase) for phrase in self.phrases)

    def after(self, state: tuple[tuple[int, ...] | None, ...], token: int) -> tuple[tuple[int, ...] | None, ...]:
        """Return how far each phrase is matched after one more token."""
        following: list[tuple[int, ...] | None] = []
        for phrase, reached in zip(self.phrases, state, strict=True):
            if reached is None:
                following.append(None)
                continue
            now = tuple(_further(variant, place, token) for variant, place in zip(phrase, reached, strict=True))
            complete = any(place == len(variant) for variant, place in zip(phrase, now, strict=True))
            following.append(None if complete else now)
        return tuple(following)

    def missing(self, state: tuple[tuple[int, ...] | None, ...]) -> int:
        """Return the number of missing tokens: those of all missing phrases, less the longest partial match."""
        whole, begun = 0, 0
        for phrase, length, reached in zip(self.phrases, self.lengths, state, strict=True):
            if reached is not None:
                whole += length
                rest = min(len(variant) - place for variant, place in zip(phrase, reached, strict=True))
                begun = max(begun, length - rest)
        return whole - begun

    def allowed(self, state: tuple[tuple[int, ...] | None, ...], left: int, size: int) -> Tensor | None:
        """Forbid the end symbol while a phrase is missing; once room is short, allow only tokens that make progress."""
        unsaid = [length for length, reached in zip(self.lengths, state, strict=True) if reached is not None]
        if not unsaid:
            return None
        if left > sum(unsaid):
            return ~one_of([EOS], size)
        return one_of(self.wanted(state), size)

    def met(self, state: tuple[tuple[int, ...] | None, ...]) -> int:
        """Return the number of required tokens that have been generated."""
        return sum(self.lengths) - self.missing(state)

    def wanted(self, state: tuple[tuple[int, ...] | None, ...]) -> Sequence[int]:
        """Return the next tokens of missing phrases that reduce the number of missing tokens."""
        following = {
            variant[place]
            for phrase, reached in zip(self.phrases, state, strict=True)
            if reached is not None
            for variant, place in zip(phrase, reached, strict=True)
        }
        missing = self.missing(state)
        return sorted(token for token in following if self.missing(self.after(state, token)) < missing)


def _further(phrase: Tokens, place: int, token: int) -> int:
    """Return the length of the phrase's longest prefix that ends with `token` after its first `place` tokens."""
    end = (*phrase[:place], token)
    return next(length for length in range(len(end), -1, -1) if end[len(end) - length :] == phrase[:length])
