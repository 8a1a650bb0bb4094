"""Parts of a source that an output repeats unchanged: as whole words, each as often as in the source.

The model decides when to write an item. Its attention to the source, if it has any, decides which one: the unwritten
item with the most attention. Once the text so far can only be the start of an item, the rest of it is copied.
"""

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.search.constraints import Constraints, encode_phrase, writings
from regard.search.forbidden import joins, spelling
from regard.search.kept_parts import (
    BYTE,
    JOINING,
    SEPARATORS,
    SIGNED,
    SIGNS,
    Stretch,
    is_address,
    is_glued,
    is_in_word,
    tokens_of,
)
from regard.search.phrases import Tokens
from regard.search.rules import Free, one_of
from regard.search.spare_digits import SpareDigits, runs_of_digits, trailing_digits
from regard.text.specials import EOS
from regard.text.tokenizer import Tokenizer


class Writing(NamedTuple):
    """One way to write a kept item."""

    tokens: Tokens
    certain: int
    """The index of the token from which on the text can only be the item."""
    spaced: bool
    """Whether it begins with a space."""


class Item(NamedTuple):
    """One occurrence of something that is kept."""

    text: str
    positions: tuple[int, ...]
    """Its tokens in the source."""
    writings: tuple[Writing, ...]
    """Its tokenizations; the first begins with a space, so that it can follow any text."""

    @classmethod
    def of(cls, text: str, positions: Sequence[int], ways: Sequence[Tokens], pieces: "Pieces") -> "Item":
        """Build an item with these tokenizations, the first of which begins with a space."""
        writings = [Writing(tokens, pieces.certain(tokens), way == 0) for way, tokens in enumerate(ways)]
        return cls(text, tuple(positions), tuple(writings))


class Pieces:
    """The text of each token of a vocabulary, and which tokens may follow a text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        spelt = spelling(tokenizer)
        self.texts = [piece if isinstance(piece, str) else chr(piece[0]) for piece in spelt]
        self.edges = [piece if isinstance(piece, str) else BYTE for piece in spelt]
        """The same, with a placeholder for single bytes, whose text depends on the bytes around them."""
        self.with_digits = torch.tensor([any(map(str.isdigit, text)) for text in self.texts])
        self.digits = {
            token: piece for token, piece in enumerate(spelt) if isinstance(piece, str) and any(map(str.isdigit, piece))
        }
        """The tokens that contain digits, with their texts; without single bytes, which may be part of a character."""
        self.blank = torch.tensor([text.isspace() for text in self.texts])
        self._separate: dict[str, Tensor] = {}

    def certain(self, tokens: Tokens) -> int:
        """Return the index of the first token after which the text has more than letters, or is complete.

        Signs do not count either, since they may be dashes.
        """
        for number in range(len(tokens)):
            text = self.text(tokens[: number + 1])
            if text.strip(SIGNS) and not text.isalpha():
                return number
        return len(tokens) - 1

    def text(self, tokens: Tokens) -> str:
        """Return the text of some tokens, without the space before it."""
        return "".join(self.texts[token] for token in tokens).strip()

    def separate(self, before: str) -> Tensor:
        """Return a mask of V that is true at tokens that may follow a text without extending its last word."""
        alike = before if is_address(before) else before[-2:]
        alike = re.sub(r"\d", "0", re.sub(r"[^\W\d_]", "a" if joins(before[-1]) else r"\g<0>", alike))
        if alike not in self._separate:
            self._separate[alike] = torch.tensor([not is_glued(alike, text) for text in self.edges])
        return self._separate[alike]


class Copying(NamedTuple):
    """The items that have been written, and those that may have begun."""

    length: int
    """The number of generated tokens."""
    done: frozenset[int]
    open: tuple[tuple[int, int, int], ...]
    """(item, writing, number of its tokens at the end of the output) of partially written items."""
    ended: int
    """The item that the output ends with unless the next token continues a longer one; -1 for none."""
    sealed: bool
    """Whether the output ends with an item, or with one and a character that could join it to a number."""
    tail: str
    """The item that the output ends with, or else its last characters."""
    focus: int
    """The item with the most attention; -1 if unknown."""
    near: bool
    """Whether no other source token has more attention; true if unknown."""
    digits: str = ""
    """The digits at the end of the output that belong to no item."""


class Kept(Free):
    """The output contains each item as a whole word, as often as it is among them."""

    def __init__(
        self,
        items: Sequence[Item],
        pieces: Pieces,
        *,
        length: int,
        spare: Collection[str] | None = None,
        adjacent: bool = False,
        free: int = 0,
    ) -> None:
        """Keep the items of a source of `length` tokens, without the end symbol.

        Digits outside items must form one of the `spare` numbers; if it is `None`, any digits are allowed. With
        `adjacent` numbers may follow each other. The first `free` tokens of an output are not restricted.
        """
        self.items, self.pieces, self.length = tuple(items), pieces, length
        self.spare = None if spare is None else SpareDigits(spare, pieces.digits)
        self.adjacent, self.free = adjacent, free
        self.lengths = [len(item.writings[0].tokens) for item in self.items]
        self.needs = sum(max(len(writing.tokens) for writing in item.writings) for item in self.items)

    @property
    def start(self) -> Copying:
        """Nothing has been written."""
        return Copying(0, frozenset(), (), -1, False, "", -1, True)

    def looked(self, state: Copying, attention: Tensor) -> Copying:
        """Return the state updated with the attention to each source token (S) at the step of the next token."""
        left = self._left(state)
        if not left or self._copied(state):
            return state
        weights = [float(attention[list(self.items[item].positions)].sum()) for item in left]
        most = max(weights)
        others = attention[: self.length].clone()  # without the end symbol
        others[[place for item in self.items for place in item.positions]] = 0.0
        focus = self._first_of_each(state)[self.items[left[weights.index(most)]].text]
        return state._replace(focus=focus, near=most >= float(others.max()))

    def after(self, state: Copying, token: int) -> Copying:
        """Return the state after one more token."""
        following = [
            (item, way, count + 1)
            for item, way, count in state.open
            if self.items[item].writings[way].tokens[count] == token
        ]
        longer = [copy for copy in following if self._is_certain(copy)]
        done = state.done | {state.ended} if state.ended >= 0 and not longer else state.done
        begun = longer or following + [
            (item, way, 1)
            for item, way, writing in self._beginnings(state._replace(done=done))
            if writing.tokens[0] == token
        ]
        if any(map(self._is_certain, begun)):  # from here on it is copied
            permitted = self._permitted(state._replace(done=done))
            begun = [copy for copy in begun if copy[0] in permitted] or begun
        whole = [copy for copy in begun if copy[2] == len(self._writing(copy).tokens)]
        ended = whole[0][0] if whole else -1
        open_ = tuple(copy for copy in begun if copy not in whole and (not whole or self._is_certain(copy)))
        text = self.pieces.edges[token]
        of_item = bool(whole) or any(map(self._is_certain, begun))
        digits = ""
        if self.spare is not None and not of_item and token in self.pieces.digits:
            digits = trailing_digits(state.digits + self.pieces.digits[token])
        tail = self.items[ended].text if whole else re.sub(r"\s+\Z", " ", state.tail + text)[-2:]
        sealed = bool(whole) or (state.ended >= 0 and not longer and text in SEPARATORS)
        return Copying(state.length + 1, done, open_, ended, sealed, tail, state.focus, True, digits)

    def allowed(self, state: Copying, left: int, size: int) -> Tensor | None:
        """Allow the next token of an item that has certainly begun, otherwise all tokens that violate nothing."""
        if state.length < self.free:
            return None
        copied = self._copied(state)
        going_on = one_of([self._writing(copy).tokens[copy[2]] for copy in copied], size)
        if copied and state.ended < 0:
            return going_on
        missing = sum(self.lengths[item] for item in self._left(state))
        unfinished = self.spare is not None and not self.spare.is_whole(state.digits)
        if missing and left <= missing and not unfinished:
            return one_of(sorted(self._forced(state)), size)
        right, wrong = self._starts(state)
        mask = self.pieces.separate(state.tail).clone() if state.sealed else torch.ones(size, dtype=torch.bool)
        if self.spare is not None:
            room = left - missing
            spare = self.spare.following(state.digits, room, apart=self.adjacent or not _ends_in_digit(state.tail))
            if unfinished and spare:
                return one_of(spare, size)
            mask &= ~self.pieces.with_digits | one_of([*right, *spare], size)
        if state.tail.endswith(" "):  # never two spaces
            mask &= ~self.pieces.blank
        mask[sorted(wrong - right)] = False
        mask |= going_on
        mask[EOS] = not missing
        return mask

    def met(self, state: Copying) -> int:
        """Return the number of written tokens of items."""
        begun = max((count for _, _, count in state.open), default=0)
        return sum(self.lengths) - sum(self.lengths[item] for item in self._left(state)) + begun

    def wanted(self, state: Copying) -> Sequence[int]:
        """Return the tokens that continue an item, or start the item with the most attention."""
        permitted = self._permitted(state)
        going_on = {self._writing(copy).tokens[copy[2]] for copy in state.open if copy[0] in permitted}
        if going_on or not state.near:
            return sorted(going_on)
        return sorted(self.items[item].writings[0].tokens[0] for item in permitted if self._is_apart(state, item))

    def _forced(self, state: Copying) -> set[int]:
        """Return the tokens that continue an item, or else start one, when there is room for nothing else."""
        permitted = self._permitted(state)
        if state.open:  # there is no room to begin another one instead
            open_ = [copy for copy in state.open if copy[0] in permitted] or state.open
            return {self._writing(copy).tokens[copy[2]] for copy in open_}
        return {self.items[item].writings[0].tokens[0] for item in permitted}

    def _left(self, state: Copying) -> list[int]:
        """Return the items not yet written."""
        return [item for item in range(len(self.items)) if item not in state.done and item != state.ended]

    def _permitted(self, state: Copying) -> list[int]:
        """Return the items that may come next: the one with the most attention, or else the first of each text."""
        left = self._left(state)
        if state.focus in left:
            return [state.focus]
        return list(self._first_of_each(state).values())

    def _first_of_each(self, state: Copying) -> dict[str, int]:
        """Return the first unwritten item of each text, since items with equal texts are interchangeable."""
        return {self.items[item].text: item for item in reversed(self._left(state))}

    def _beginnings(self, state: Copying) -> list[tuple[int, int, Writing]]:
        """Return the tokenizations of unwritten items that may begin here."""
        return [
            (item, way, writing)
            for item in self._first_of_each(state).values()
            for way, writing in enumerate(self.items[item].writings)
            if writing.spaced or not _joins_item(state.tail, self.items[item].text)
        ]

    def _starts(self, state: Copying) -> tuple[set[int], set[int]]:
        """Return the tokens that certainly belong to an item that may come now, and to one that may not.

        An item whose first letters are already written may always continue, so that they are not left incomplete.
        """
        permitted = self._permitted(state)
        right: set[int] = set()
        wrong: set[int] = set()
        begun = [(item, self._writing((item, way, count)), count) for item, way, count in state.open]
        for item, writing, count in [*begun, *((item, writing, 0) for item, _, writing in self._beginnings(state))]:
            if count >= writing.certain:
                written = self.pieces.text(writing.tokens[:count])
                fits = written or (item in permitted and self._is_apart(state, item))
                (right if fits else wrong).add(writing.tokens[count])
        return right, wrong

    def _is_apart(self, state: Copying, item: int) -> bool:
        """Return whether an item can come now without forming one number with another (`10 000`)."""
        return self.adjacent or not (self.items[item].text[0].isdigit() and _ends_in_digit(state.tail))

    def _writing(self, copy: tuple[int, int, int]) -> Writing:
        return self.items[copy[0]].writings[copy[1]]

    def _is_certain(self, copy: tuple[int, int, int]) -> bool:
        return copy[2] > self._writing(copy).certain

    def _copied(self, state: Copying) -> list[tuple[int, int, int]]:
        """Return the partially written items that are certain."""
        return [copy for copy in state.open if self._is_certain(copy)]


def _joins_item(before: str, item: str) -> bool:
    """Return whether an item directly after a text would read as something else: `-9` after `k` is `k-9`."""
    if is_glued(before, item):
        return True
    return bool(before and SIGNED.match(item)) and (is_in_word(before[-1]) or before[-1] in JOINING)


def _ends_in_digit(text: str) -> bool:
    return text.rstrip()[-1:].isdigit()


def kept_rule(
    source: str,
    kept: Sequence[Stretch],
    offsets: Sequence[tuple[int, int]],
    constraints: Constraints,
    pieces: Pieces,
) -> Kept:
    """Return the rule that an output repeats the `kept` parts of its source, whose tokens have the spans `offsets`.

    If numbers are kept, all digits of the output belong to them, to other numbers of the source, or to constraints.
    """
    tokenizer = pieces.tokenizer
    for part in kept:
        if (written := tokenizer.normalise(part.text)) != part.text:
            raise UsageError(f'"{part.text}" cannot be kept, since the tokenizer normalises it to "{written}".')
    items = [Item.of(part.text, tokens_of(part, offsets), writings(part.text, tokenizer), pieces) for part in kept]
    prefix = tokenizer.normalise(constraints.prefix or "")
    starts, ends = [*(part.start for part in kept), len(source)], [0, *(part.end for part in kept)]
    others = [source[end:start] for start, end in zip(starts, ends, strict=True)]
    has_numbers = any(map(str.isdigit, "".join(part.text for part in kept)))
    spare = runs_of_digits(" ".join([*others, *map(tokenizer.normalise, others), prefix, *constraints.require]))
    return Kept(
        items,
        pieces,
        length=len(offsets),
        spare=spare if has_numbers else None,
        adjacent=any(not other.strip() for other in others[1:-1]),
        free=len(encode_phrase(prefix, tokenizer)) if prefix else 0,
    )
