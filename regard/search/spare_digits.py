"""Digits of an output outside kept items: only numbers of the source are allowed, such as the `10` of `10km`."""

from collections.abc import Collection, Mapping
from itertools import groupby


def runs_of_digits(text: str) -> set[str]:
    """Return the digits of a text, those that follow each other together."""
    runs = groupby(text, key=str.isdigit)
    return {"".join(run) for are_digits, run in runs if are_digits}


def trailing_digits(text: str) -> str:
    """Return the digits at the end of a text."""
    return text[len(text.rstrip("".join(filter(str.isdigit, set(text))))) :]


class SpareDigits:
    """The numbers of a source that are not kept, such as the `10` of `10km`: the only other numbers of an output.

    Any tokenization of a number is allowed that can be completed.
    """

    def __init__(self, numbers: Collection[str], tokens: Mapping[int, str]) -> None:
        """Allow these numbers; `tokens` are those of a vocabulary that have digits, with their texts."""
        self.numbers, self.tokens = frozenset(numbers), tokens
        self.longest = max(map(len, self.numbers), default=0)
        self._following: dict[str, list[tuple[int, bool, bool]]] = {}
        self._completable: dict[str, bool] = {"": True}

    def is_whole(self, digits: str) -> bool:
        """Return whether the digits at the end of an output need no more."""
        return not digits or digits in self.numbers

    def following(self, digits: str, room: int, *, apart: bool) -> list[int]:
        """Return the tokens with digits that may follow an output that ends in `digits` of no item.

        A number is begun only if there is `room` for all of it and, unless it is `apart` from the number before it,
        only inside a longer token.
        """
        found = []
        for token, continues, at_front in self._tokens(digits):
            begins = not continues
            if begins and (room <= self.longest or (at_front and not apart)):
                continue
            found.append(token)
        return found

    def _tokens(self, digits: str) -> list[tuple[int, bool, bool]]:
        """Tokens with digits that may follow, whether they continue a number, and whether they begin with one."""
        if digits not in self._following:
            self._following[digits] = [
                (token, text[0].isdigit() and bool(digits), text.lstrip()[:1].isdigit())
                for token, text in (self.tokens.items() if self.numbers else ())
                if self._fits(digits + text)
            ]
        return self._following[digits]

    def _fits(self, text: str) -> bool:
        """Return whether all digits of a text are spare numbers, the last of which may still be completed."""
        rest = trailing_digits(text)
        return runs_of_digits(text[: len(text) - len(rest)]) <= self.numbers and self._can_complete(rest)

    def _can_complete(self, digits: str) -> bool:
        """Return whether some tokens make a whole number of these digits."""
        if digits not in self._completable:
            longer = [number for number in self.numbers if number.startswith(digits) and number != digits]
            self._completable[digits] = digits in self.numbers or any(
                text.isdigit() and number.startswith(digits + text) and self._can_complete(digits + text)
                for number in longer
                for text in self.tokens.values()
            )
        return self._completable[digits]
