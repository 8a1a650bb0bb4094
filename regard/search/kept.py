"""Parts of a source that an output repeats unchanged: as whole words, each as often as in the source.

The model decides when to write an item. Its attention to the source, if it has any, decides which one: the unwritten
item with the most attention. Once the text so far can only be the start of an item, the rest of it is copied.
"""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.search.constraints import Constraints, encode_phrase, writings
from regard.search.forbidden import joins, spelling
from regard.search.phrases import Tokens
from regard.search.rules import Free, one_of
from regard.search.spare_digits import SpareDigits, runs_of_digits, trailing_digits
from regard.text.specials import EOS
from regard.text.tokenizer import Tokenizer

OPENING = r"\s(\[{<>=~\"'„“”‚‘«»$€£¥#"
"""Characters that may precede a sign, in the syntax of a regular expression's character class."""
KEEP = {
    "urls": r"(?:https?://|www\.)[^\s<>\"']*[^\s<>\"'.,;:!?)\]]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
    "numbers": rf"(?:(?:(?<=[{OPENING}])|^)[+\-−±]?\.?)?\d+(?:[.,:/'’-]\d+)*(?:[eE][+-]?\d+)?",
    "placeholders": r"\{\{?\w+\}?\}|%\(\w+\)[sd]|%[sd]\b|<[^<>\s]+>|\$\{\w+\}",
}
"""The named patterns of `keep`; any other value is a regular expression."""

SEPARATORS = ".,:/'’-"
"""Characters that join two numbers into one."""
SIGNS = "+−±.-"
"""Characters that belong to the number after them: signs, and the point of `.5`."""
JOINING = SEPARATORS + SIGNS
_JOINED_BEHIND = re.compile(rf"(?:\d[{SEPARATORS}]|(?:^|[{OPENING}])[{SIGNS}]|[+\-−±]\.|\d[eE][+-])\Z")
"""The end of a text that a digit belongs to: `8.` and ` -`, but not the hyphen of `k-`."""
_JOINED_BEFORE = re.compile(rf"[{SEPARATORS}]\d")
_BEFORE_SEPARATOR = re.compile(rf"(?:\d[eE]|(?:^|[{OPENING}])[+\-−±])\Z")
"""What belongs to a separator and a digit after it: the `1e` of `1e-5`, and the sign of `-.5`."""
_SIGNED = re.compile(rf"[{SIGNS}]\.?\d")
IN_ADDRESSES = "/@-_=&#%~+"
"""Characters that make an address longer."""
BYTE = "\0"
"""Placeholder for one byte of an incomplete character; no kept item is directly next to it."""


class Stretch(NamedTuple):
    """A part of a source that is kept: characters `start` to `end`."""

    text: str
    start: int
    end: int


def find_kept(source: str, kinds: Sequence[str]) -> list[Stretch]:
    """Return the parts of a source that are kept, in order.

    Only whole words and numbers are kept. Of the kinds with a name, what is part of a word (the `10` of `10km` or the
    `3` of `A3`) is left out, since other languages write such words differently. A match of a regular expression is
    never left out: it is extended to the whole word or number. Parts that overlap are kept as one.
    """
    found: list[tuple[int, int]] = []
    for kind in kinds:
        try:
            matches = [_trimmed(source, *match.span()) for match in re.finditer(KEEP.get(kind, kind), source)]
        except re.error as error:
            raise UsageError(
                f"`{kind}` is neither {', '.join(KEEP)} nor a regular expression that can be read ({error})."
            ) from None
        for start, end in matches:
            whole = _extended(source, start, end)
            if start < end and (kind not in KEEP or whole == (start, end)):
                found.append(whole)
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return [Stretch(source[start:end], start, end) for start, end in merged]


def _trimmed(source: str, start: int, end: int) -> tuple[int, int]:
    """Shrink a span to exclude white space at its ends."""
    while start < end and source[start].isspace():
        start += 1
    while start < end and source[end - 1].isspace():
        end -= 1
    return start, end


def _extended(source: str, start: int, end: int) -> tuple[int, int]:
    """Extend a span to whole words and numbers."""
    while 0 < start < end and is_glued(source[:start], source[start:end]):
        start -= 1
    while start < end < len(source) and is_glued(source[start:end], source[end:]):
        end += 1
    return start, end


def is_glued(before: str, after: str) -> bool:
    """Return whether the end of one text and the start of another read as one word, number or address."""
    if not before or not after:
        return False
    last, first = before[-1], after[0]
    if BYTE in (last, first) or (_in_word(last) and _in_word(first)):
        return True
    if first.isdigit() and last in JOINING and _JOINED_BEHIND.search(before[-3:]):
        return True
    if _JOINED_BEFORE.match(after) and (last.isdigit() or _BEFORE_SEPARATOR.search(before[-2:])):
        return True
    return (_is_address(before) and after[0] in IN_ADDRESSES) or (_is_address(after) and before[-1] in IN_ADDRESSES)


def _in_word(character: str) -> bool:
    return character == "_" or joins(character)


@lru_cache(maxsize=1000)
def _is_address(text: str) -> bool:
    return re.fullmatch(KEEP["urls"], text) is not None


def tokens_of(one: Stretch, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Return the indices of the source tokens, given by their character spans, of a kept part."""
    return [place for place, (start, end) in enumerate(offsets) if start < end and start < one.end and end > one.start]


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
        alike = before if _is_address(before) else before[-2:]
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
        self.needs = sum(max(len(one.tokens) for one in item.writings) for item in self.items)

    @property
    def start(self) -> Copying:
        """Nothing has been written."""
        return Copying(0, frozenset(), (), -1, False, "", -1, True)

    def looked(self, state: Copying, attention: Tensor) -> Copying:
        """Return the state updated with the attention to each source token (S) at the step of the next token."""
        left = self._left(state)
        if not left or self._copied(state):
            return state
        weights = [float(attention[list(self.items[one].positions)].sum()) for one in left]
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
        longer = [one for one in following if self._is_certain(one)]
        done = state.done | {state.ended} if state.ended >= 0 and not longer else state.done
        begun = longer or following + [
            (item, way, 1)
            for item, way, writing in self._beginnings(state._replace(done=done))
            if writing.tokens[0] == token
        ]
        if any(map(self._is_certain, begun)):  # from here on it is copied
            permitted = self._permitted(state._replace(done=done))
            begun = [one for one in begun if one[0] in permitted] or begun
        whole = [one for one in begun if one[2] == len(self._writing(one).tokens)]
        ended = whole[0][0] if whole else -1
        open_ = tuple(one for one in begun if one not in whole and (not whole or self._is_certain(one)))
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
        going_on = one_of([self._writing(one).tokens[one[2]] for one in copied], size)
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
        going_on = {self._writing(one).tokens[one[2]] for one in state.open if one[0] in permitted}
        if going_on or not state.near:
            return sorted(going_on)
        return sorted(self.items[one].writings[0].tokens[0] for one in permitted if self._is_apart(state, one))

    def _forced(self, state: Copying) -> set[int]:
        """Return the tokens that continue an item, or else start one, when there is room for nothing else."""
        permitted = self._permitted(state)
        if state.open:  # there is no room to begin another one instead
            open_ = [one for one in state.open if one[0] in permitted] or state.open
            return {self._writing(one).tokens[one[2]] for one in open_}
        return {self.items[one].writings[0].tokens[0] for one in permitted}

    def _left(self, state: Copying) -> list[int]:
        """Return the items not yet written."""
        return [one for one in range(len(self.items)) if one not in state.done and one != state.ended]

    def _permitted(self, state: Copying) -> list[int]:
        """Return the items that may come next: the one with the most attention, or else the first of each text."""
        left = self._left(state)
        if state.focus in left:
            return [state.focus]
        return list(self._first_of_each(state).values())

    def _first_of_each(self, state: Copying) -> dict[str, int]:
        """Return the first unwritten item of each text, since items with equal texts are interchangeable."""
        return {self.items[one].text: one for one in reversed(self._left(state))}

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

    def _writing(self, one: tuple[int, int, int]) -> Writing:
        return self.items[one[0]].writings[one[1]]

    def _is_certain(self, one: tuple[int, int, int]) -> bool:
        return one[2] > self._writing(one).certain

    def _copied(self, state: Copying) -> list[tuple[int, int, int]]:
        """Return the partially written items that are certain."""
        return [one for one in state.open if self._is_certain(one)]


def _joins_item(before: str, item: str) -> bool:
    """Return whether an item directly after a text would read as something else: `-9` after `k` is `k-9`."""
    if is_glued(before, item):
        return True
    return bool(before and _SIGNED.match(item)) and (_in_word(before[-1]) or before[-1] in JOINING)


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
    for one in kept:
        if (written := tokenizer.normalise(one.text)) != one.text:
            raise UsageError(f'"{one.text}" cannot be kept, since the tokenizer normalises it to "{written}".')
    items = [Item.of(one.text, tokens_of(one, offsets), writings(one.text, tokenizer), pieces) for one in kept]
    prefix = tokenizer.normalise(constraints.prefix or "")
    starts, ends = [*(one.start for one in kept), len(source)], [0, *(one.end for one in kept)]
    others = [source[end:start] for start, end in zip(starts, ends, strict=True)]
    has_numbers = any(map(str.isdigit, "".join(one.text for one in kept)))
    spare = runs_of_digits(" ".join([*others, *map(tokenizer.normalise, others), prefix, *constraints.require]))
    return Kept(
        items,
        pieces,
        length=len(offsets),
        spare=spare if has_numbers else None,
        adjacent=any(not other.strip() for other in others[1:-1]),
        free=len(encode_phrase(prefix, tokenizer)) if prefix else 0,
    )
