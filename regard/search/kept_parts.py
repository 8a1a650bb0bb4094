"""Which parts of a source an output repeats unchanged: addresses, numbers, placeholders, or own patterns."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from regard.foundation.errors import UsageError
from regard.search.forbidden import joins

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
SIGNED = re.compile(rf"[{SIGNS}]\.?\d")
"""The start of a number with a sign, or with the point of `.5`."""
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
    if BYTE in (last, first) or (is_in_word(last) and is_in_word(first)):
        return True
    if first.isdigit() and last in JOINING and _JOINED_BEHIND.search(before[-3:]):
        return True
    if _JOINED_BEFORE.match(after) and (last.isdigit() or _BEFORE_SEPARATOR.search(before[-2:])):
        return True
    return (is_address(before) and after[0] in IN_ADDRESSES) or (is_address(after) and before[-1] in IN_ADDRESSES)


def is_in_word(character: str) -> bool:
    """Return whether a character can be part of a word."""
    return character == "_" or joins(character)


@lru_cache(maxsize=1000)
def is_address(text: str) -> bool:
    """Return whether a whole text is a URL or an e-mail address."""
    return re.fullmatch(KEEP["urls"], text) is not None


def tokens_of(part: Stretch, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Return the indices of the source tokens, given by their character spans, of a kept part."""
    return [
        index for index, (start, end) in enumerate(offsets) if start < end and start < part.end and end > part.start
    ]
