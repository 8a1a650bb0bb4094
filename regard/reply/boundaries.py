"""Scores of the places where a letter's greeting may end and where its ending may begin.

The rules of `greetings` and `letters` know the usual forms. What they leave open is decided here: a candidate is a
sum of a few features, and positive sums are taken. The features are evidence from words, so they also hold where line
breaks have been lost.
"""

import re
from functools import cache
from typing import NamedTuple

from regard.reply.greetings import begins_text, given_name, names_addressee

_FUNCTION_WORDS = re.compile(
    r"(?:a|am|an|are|as|be|been|but|by|can|could|did|do|does|from|get|had|has|have|he|her|here|him|his|how|i|if|in|is|it|"
    r"its|let|may|me|my|need|not|now|our|out|please|she|should|so|some|that|the|their|them|then|there|these|they|this|to|"
    r"us|was|we|were|what|when|where|which|who|will|with|would|you|your|about|after|any|before|just|like|make|more|no|on|"
    r"one|or|over|see|send|take|than|up|want|says|said|rsvp)$"
)
"""Words of sentences, which names, titles and addresses do not have."""
_LINKS = re.compile(r"(?:of|and|&|for|the|at|on|behalf|de|la|von|van|der|to|-|,|/|\||und|et|y|e)$", re.IGNORECASE)
"""Words within titles and names of companies."""
_CLOSING_WORDS = re.compile(
    r"\b(?:thanks|thank you|thx|thanx|regards|rgds|sincerely|cheers|wishes|love|truly|cordially|respectfully|"
    r"god bless|take care|keep in touch|stay in touch|see you soon|see ya|love ya|onward|peace|best|be well|"
    r"good luck)\b",
    re.IGNORECASE,
)
_TITLES = re.compile(
    r"\b(?:Director|Manager|President|Counsel|Attorney|Analyst|Associate|Assistant|Administrator|Coordinator|Specialist|"
    r"Officer|Secretary|Engineer|Consultant|Professor|Chairman|CEO|CFO|VP|Esq|Ph\.?D|Inc|LLC|L\.?L\.?P|Corp|"
    r"Corporation|Company|Co|Ltd|Group|Team|Department|Dept|Division|University|College|School|Institute|Services|"
    r"Associates|Resources|Suite|Street|Blvd|Avenue|Floor|Box)\b"
)
_OFFICES = re.compile(
    r"\b(?:Team|Desk|Department|Dept|Group|Center|Office|Committee|Services|Support|Administration)\b"
)
"""Those who sign without a name."""
_CONTACT = re.compile(
    r"\bon behalf of\b|\(?\d{3}[)./-]{1,2}\s?\d{3}[.-]\d{4}|[\w.+-]+@[\w-]+\.\w+|\bwww\.|"
    r"\b(?i:phone|tel|fax|mobile|cell|pager|ext)\b"
    r"|\b[xX]\d?-?\d{4,5}\b|\b[A-Z]{2},?\s+\d{5}\b"
)
_DATES = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october|"
    r"november|december|\d{1,2}:\d\d|\d{1,2}\s?[ap]\.?m\.?)(?!\w)|\$\s?\d|(?<![\d)])\.\d|\d\.\d|\b\d+(?:,\d{3})+\b|"
    r"\b(?:copyright|rights reserved)\b",
    re.IGNORECASE,
)
_BREAK = re.compile(r"\n\s*|[^\S\n]{2,}|\t\s*")
"""Where a line may have ended in the letter as it was written."""
_OPEN = re.compile(
    r"(?:[:;&/=-]|\b(?i:and|or|with|to|by|from|for|of|the|an?|is|are|was|as|at|in|on|mr|ms|mrs|dr|via|per|about|contact|e-?mail))$"
)
"""The end of a text that goes on."""
MOST_PEOPLE = 3
"""Given names; more are a list."""
LEAST_GREETING = 4.0
"""The score of a greeting."""
LONGEST = 400
"""Characters of an ending that is found by its score."""


class _Piece(NamedTuple):
    start: int
    text: str
    new_line: bool
    """Whether a line break precedes it, and not only white space."""


_SENTENCE_END = re.compile(r"[.!?)\"”…*]$")
_LABEL = re.compile(
    r"(?<!\bphone)(?<!\btel)(?<!\bfax)(?<!\bcell)(?<!\bmail)(?<!\bmobile)\w\s*:(?=\s+\w|$)", re.IGNORECASE
)
_SIGNED_PHRASE = re.compile(r"(?:[\w']+\s+){0,2}[\w']+(?:,|\s*--?)\s+[A-Z]\w+(?:\s+[A-Z]\w+)?[.,]?$")
"""A few words and a name: `Be well, Ann`."""


_OPEN_CLAUSE = re.compile(r"\b[a-z]+,$")
_CAPITALS = re.compile(r"[A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*){1,3}$")
"""Two to four capitalised words; after a clause with a comma, they are a name: `…, we will be late,  Ann Lee`."""


@cache
def _given() -> re.Pattern[str]:
    return re.compile(rf"[-–—~*=\s]*{given_name()}")


@cache
def _given_anywhere() -> re.Pattern[str]:
    return re.compile(rf"\b{given_name()}")


def _count_function_words(words: list[str]) -> int:
    return sum(_FUNCTION_WORDS.match(word) is not None for word in words)


def _has_closing(line: str) -> bool:
    """Return whether a line has few words, and among them those of a closing."""
    return len(line.split()) <= 6 and _CLOSING_WORDS.search(line) is not None


def _is_office(line: str) -> bool:
    """Return whether a line ends with the contact details of a team, which signs a letter as a person does."""
    return _OFFICES.search(line) is not None and _CONTACT.search(line) is not None


def score_ending_line(line: str) -> float:
    """Return how much more a line looks like a closing or a signature than like a sentence or a table.

    The score is a sum: +3 for a short closing, +2 for contact details, for a given name at the beginning and for a few
    words with a name after a comma, +1 for a title or a company and for capitals throughout; −1 for every function
    word, −3 for dates and amounts, −2 for labels and questions, and −2 for the mark of a sentence after lower-case
    words.
    """
    words = line.split()
    if not words:
        return 0.0
    plain = [word.strip(".,!?;:()\"'").lower() for word in words]
    closing = _has_closing(line)
    contact = _CONTACT.search(line) is not None
    lower = sum(word[0].islower() and not _LINKS.match(word) for word in words)
    score = 0.0
    if closing:
        score += 3.0 if line.rstrip().endswith(",") or len(words) <= 3 else 1.0
    if _SIGNED_PHRASE.match(line.strip()):
        score += 2.0
    score += 2.0 * contact + 2.0 * (_given().match(line) is not None) + (_TITLES.search(line) is not None)
    score += lower == 0 and 2 <= len(words) <= 12
    score -= _count_function_words(plain)
    score -= 0.5 * max(0, lower - closing * 3)
    score -= 3.0 * (_DATES.search(line) is not None and not contact)
    score -= 2.0 * len(_LABEL.findall(line)) + 2.0 * ("?" in line)
    if line.rstrip()[-1] in ".!" and lower > 1 and not closing:
        score -= 2.0
    return score


def find_ending(text: str, *, closed: bool = False) -> int:
    """Return where the best-scored ending of a text begins; its length if there is none.

    The ending is the run of lines at the end with the largest sum of scores, none of which is negative. It holds a
    closing or a name, because tables and lists of addresses have contact details, too, and no more than three given
    names, which would be a list. `closed` says that a closing follows the text; then only more
    closings are found.
    """
    pieces = _pieces(text)
    best, total, end = 0.0, 0.0, len(text)
    people, signed = 0, False
    for piece in reversed(pieces[1:]):
        score = score_ending_line(piece.text)
        closing = _has_closing(piece.text)
        if score < 0 or (closed and not closing):
            break
        total += score
        people += len(_given_anywhere().findall(piece.text))
        signed = signed or closing or people > 0 or _is_office(piece.text)
        before = text[: piece.start].rstrip()
        ended = piece.new_line or _SENTENCE_END.search(before[-1:]) or closing or _CONTACT.search(piece.text)
        if piece is pieces[-1] and _OPEN_CLAUSE.search(before) and _CAPITALS.match(piece.text):
            total, signed, ended = total + 1.0, True, True
        quoted = piece.text.lstrip().startswith("-") and before.endswith(('"', "”"))
        if total >= 2.0 and total > best and signed and ended and not quoted and not _OPEN.search(before[-20:]):
            best, end = total, piece.start
    return end if people <= MOST_PEOPLE else len(text)


def _pieces(text: str) -> list[_Piece]:
    """Return the lines at the end of a text, also those whose line breaks have become white space."""
    pieces: list[_Piece] = []
    start, new_line = 0, True
    for found in _BREAK.finditer(text, max(0, len(text) - LONGEST)):
        if text[start : found.start()].strip():
            pieces.append(_Piece(start, text[start : found.start()], new_line))
        start, new_line = found.end(), "\n" in found[0]
    if text[start:].strip():
        pieces.append(_Piece(start, text[start:], new_line))
    return pieces


_HEAD = re.compile(
    r"\s*(?P<words>[^\n,:;!?]{2,60}?)(?P<mark>\s*(?:[,:;!]|\.{3,}|--?(?=\s))+\s*|\s\s+)(?P<rest>\S.*)", re.DOTALL
)
_INITIALS = re.compile(r"(?!FYI|BTW|RE|PS|OK|NB)[A-Z]{2,3}$")


def find_scored_greeting(line: str, *, alone: bool = False) -> tuple[str, str] | None:
    """Return the greeting that a line begins with and the rest of the line, judged by a score; `None` if there is none.

    +2 for a given name, in whatever case, for a noun of those addressed (`Users`, `Team`) and for initials; +1 for the
    mark after it, and +1 if a line may have ended there or a function word begins the next sentence; −2 for every
    function word, for numbers and for the genitive, −1 for every word after the fourth.

    Args:
        line: The first line of the letter.
        alone: Whether more lines follow, so that the greeting may be the whole line (`Ann!`).
    """
    found = _HEAD.match(f"{line.rstrip()}  \0" if alone and line.rstrip().endswith("!") else line)
    if not found:
        return None
    head, mark, rest = found["words"].strip(), found["mark"], found["rest"].strip("\0 \t")
    words = [
        word.strip(".'\"").lower() for word in re.split(r"[\s/&]+", re.sub(r"\b(?:and/)?or\b", "and", head)) if word
    ]
    named = names_addressee(head) or (_INITIALS.match(head) is not None and "," in mark)
    first = (rest.split() or [""])[0].lower()
    ended = mark.endswith(("  ", "\t")) or ":" in mark or not rest
    score = 2.0 * named + bool(mark.strip()) + (ended or (_count_function_words([first]) > 0 and rest[0].isupper()))
    score -= 2.0 * _count_function_words(words)
    score -= 2.0 * any(character.isdigit() for character in head) + 2.0 * ("'s" in head)
    score -= max(0, len(words) - 4)
    score -= 2.0 * begins_text(head)
    if score < LEAST_GREETING or (rest and not rest[0].isupper()):
        return None
    return line[: found.start("rest")].strip(), rest
