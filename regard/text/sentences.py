"""Sentence splitting; sentences that are too long are split further, and no character is lost.

A few rules that hold in many scripts: a sentence ends at a full stop, question or exclamation mark (with closing quotes
and brackets after it) before white space, and in scripts without spaces at every such mark. A full stop after an
abbreviation, an initial or a short number (`Dr.`, `J.`, `9. Mai`), or before a lower-case letter, does not end a
sentence. A line break always does.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_ABBREVIATIONS = """
    mr mrs ms dr prof st rev hon sgt capt lt jr sr vs etc cf ca approx nos vol fig figs eq eqs pp eds inc ltd corp dept
    jan feb apr jun jul aug sep sept oct nov dec
    bzw usw evtl ggf inkl exkl vgl nr str tel bd hrsg jh mio mrd abs geb gest hl dipl sog zzgl
    mme mlle cie sté tél sra srta ud uds pág págs núm avda sig sigg dott ecc pag dhr mevr bijv enz blz
    г гг ул им стр рис тыс млн
"""
ABBREVIATIONS = frozenset(_ABBREVIATIONS.split())
"""Abbreviations that rarely end a sentence; those that often do (`no.`, `Sun.`) are not listed."""

_CLOSING = "\"'”’»›“‘」』）)\\]｣》〉"
_SPACED_END = re.compile(rf"(?:[.!?…؟۔।॥።]+[{_CLOSING}]*)(\s+)|(\s*[\n\r\u2028\u2029]\s*)")
_UNSPACED_END = re.compile(rf"[。！？｡‼⁇⁈⁉]+[{_CLOSING}]*(\s*)")
_END = re.compile(f"{_SPACED_END.pattern}|{_UNSPACED_END.pattern}")
_LAST_WORD = re.compile(r"([^\s.(\[\"'„“«]+(?:\.[^\s.(\[\"'„“«]+)*)\.$")
_CLAUSE = re.compile(r"[;:,—–،؛；：，、][" + _CLOSING + r"]*\s*")
_SPACE = re.compile(r"\s+")


class Piece(NamedTuple):
    """A part of a text, and the white space after it."""

    text: str
    space: str


def sentences(text: str) -> list[Piece]:
    """Return the sentences of a text; concatenated with their spaces, they give the text."""
    body = text.lstrip()
    pieces = [Piece("", text[: len(text) - len(body)])] if len(body) < len(text) else []
    start = 0
    for match in _END.finditer(body):
        space = next((group for group in match.groups() if group is not None), "")
        end = match.end() - len(space)
        if end > start and _ends_sentence(body[start:end], space, body[match.end() : match.end() + 1]):
            pieces.append(Piece(body[start:end], space))
            start = match.end()
    if start < len(body):
        rest = body[start:].rstrip()
        pieces.append(Piece(rest, body[start + len(rest) :]))
    return pieces


def _ends_sentence(before: str, space: str, following: str) -> bool:
    """Return whether a sentence ends after a mark."""
    if "\n" in space or "\r" in space:
        return True
    if following.islower():
        return False
    if not before.endswith("."):
        return True
    last = _LAST_WORD.search(before[-60:])
    if last is None:
        return True
    word = last[1]
    initial = len(word) == 1 and word.isupper()
    short_number = word.isdecimal() and len(word) <= 2
    dotted = "." in word and all(len(part) <= 2 and part.isalpha() for part in word.split("."))  # z.B., e.g., U.S.
    return not (initial or short_number or dotted or word.casefold() in ABBREVIATIONS)


def pieces(text: str, fits: Callable[[str], bool]) -> list[Piece]:
    """Return the sentences of a text; those that do not fit are split at clauses, else between words, else anywhere."""
    return [part for sentence in sentences(text) for part in _cut(sentence, fits)]


def keep_whole(cut: Sequence[Piece], spans: Sequence[tuple[int, int]]) -> list[Piece]:
    """Merge neighbouring pieces of a text if one of the given character spans crosses the boundary between them."""
    whole: list[Piece] = []
    start = 0
    for piece in cut:
        if whole and any(first < start < last for first, last in spans):
            before = whole.pop()
            whole.append(Piece(before.text + before.space + piece.text, piece.space))
        else:
            whole.append(piece)
        start += len(piece.text) + len(piece.space)
    return whole


def _cut(piece: Piece, fits: Callable[[str], bool]) -> Iterator[Piece]:
    """Yield a piece, split into halves until all parts fit."""
    text = piece.text
    if len(text) < 2 or fits(text):
        yield piece
        return
    middle = len(text) // 2
    for mark in (_CLAUSE, _SPACE):
        places = [match.end() for match in mark.finditer(text, len(text) // 4) if match.end() <= len(text) * 3 // 4]
        if places:
            middle = min(places, key=lambda place: abs(place - middle))
            break
    left = text[:middle].rstrip()
    yield from _cut(Piece(left, text[len(left) : middle]), fits)
    yield from _cut(Piece(text[middle:], piece.space), fits)
