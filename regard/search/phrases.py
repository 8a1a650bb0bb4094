"""Rules over tokens: outputs that begin so, that are one of these, that contain these."""

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
        """How many tokens have been said."""
        return 0

    def after(self, state: int, token: int) -> int:
        """One more."""
        return state + 1

    def allowed(self, state: int, left: int, size: int) -> Tensor | None:
        """The next token of the prefix; behind it, everything."""
        return one_of([self.tokens[state]], size) if state < len(self.tokens) else None


class Only(Free):
    """The output is one of these: a path through their trie, whose cost does not depend on how many there are.

    (Cao et al., 2021.)
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
        """One branch further."""
        branch: dict[int, Any] = state.get(token, {})
        return branch

    def allowed(self, state: dict[int, Any], left: int, size: int) -> Tensor:
        """The branches."""
        return one_of(list(state), size)


class Required(Free):
    """The output contains each of some phrases, each in one of several ways of writing it.

    The state is how far each writing of each phrase has come; `None` stands for a phrase that has been said. A phrase
    may be said at any time, and must be as soon as there is just room for what is left to say.
    """

    def __init__(self, phrases: Sequence[Sequence[Tokens]]) -> None:
        self.phrases = [tuple(phrase) for phrase in phrases]
        self.lengths = [min(map(len, phrase)) for phrase in self.phrases]
        self.needs = sum(max(map(len, phrase)) for phrase in self.phrases)

    @property
    def start(self) -> tuple[tuple[int, ...] | None, ...]:
        """Nothing has been said."""
        return tuple((0,) * len(phrase) for phrase in self.phrases)

    def after(self, state: tuple[tuple[int, ...] | None, ...], token: int) -> tuple[tuple[int, ...] | None, ...]:
        """Each phrase one token further, or thrown back."""
        behind: list[tuple[int, ...] | None] = []
        for phrase, reached in zip(self.phrases, state, strict=True):
            if reached is None:
                behind.append(None)
                continue
            now = tuple(_further(one, place, token) for one, place in zip(phrase, reached, strict=True))
            said = any(place == len(one) for one, place in zip(phrase, now, strict=True))
            behind.append(None if said else now)
        return tuple(behind)

    def missing(self, state: tuple[tuple[int, ...] | None, ...]) -> int:
        """Tokens still to be said: all of the phrases not yet said, but for the one that has come furthest."""
        whole, begun = 0, 0
        for phrase, length, reached in zip(self.phrases, self.lengths, state, strict=True):
            if reached is not None:
                whole += length
                rest = min(len(one) - place for one, place in zip(phrase, reached, strict=True))
                begun = max(begun, length - rest)
        return whole - begun

    def allowed(self, state: tuple[tuple[int, ...] | None, ...], left: int, size: int) -> Tensor | None:
        """Everything but the end while something is missing and there is room; then only what brings it nearer."""
        unsaid = [length for length, reached in zip(self.lengths, state, strict=True) if reached is not None]
        if not unsaid:
            return None
        if left > sum(unsaid):
            return ~one_of([EOS], size)
        return one_of(self.wanted(state), size)

    def met(self, state: tuple[tuple[int, ...] | None, ...]) -> int:
        """Required tokens said."""
        return sum(self.lengths) - self.missing(state)

    def wanted(self, state: tuple[tuple[int, ...] | None, ...]) -> Sequence[int]:
        """Next tokens of the phrases not yet said, so far as they leave less missing."""
        following = {
            one[place]
            for phrase, reached in zip(self.phrases, state, strict=True)
            if reached is not None
            for one, place in zip(phrase, reached, strict=True)
        }
        missing = self.missing(state)
        return sorted(token for token in following if self.missing(self.after(state, token)) < missing)


def _further(phrase: Tokens, place: int, token: int) -> int:
    """How much of a phrase stands at the end, when one more token follows its first `place`."""
    said = (*phrase[:place], token)
    return next(length for length in range(len(said), -1, -1) if said[len(said) - length :] == phrase[:length])
