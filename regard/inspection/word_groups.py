"""Groups of output tokens: by word class, by position, and by error against a reference.

Every grouping divides all tokens: each token is in exactly one group of it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.inspection.examples import AnnotatedText, Example
from regard.metrics.answers import word_edits
from regard.tasks.trace import Side

WORD = re.compile(r"\d+(?:[.,:/-]\d+)*|\w+(?:['’-]\w+)*|[^\w\s]")
"""A number, a word, or one punctuation mark."""

END = "end symbol"
FIFTHS = ("first fifth", "second fifth", "third fifth", "fourth fifth", "last fifth")
FREQUENT = 0.5
"""Frequent tokens are the most frequent ones that together are this share of all target tokens in training."""

Span = tuple[int, int]

GROUPINGS: dict[str, tuple[str, ...]] = {
    "word class": (
        "frequent word",
        "rare word",
        "other word",
        "word-internal piece",
        "copied from the source",
        "number",
        "punctuation",
        END,
    ),
    "position": (*FIFTHS, END),
    "place": ("first word", "between", "last word", END),
    "error": ("correct", "substituted", "inserted", END),
    "sentence": ("no reference word missing", "reference words missing"),
}
"""The groupings and, in the order in which they are shown, their groups; those by part of speech come as they occur."""

NOT_IN_REFERENCE = "not in the reference"
NO_TAG = "no tag"


@dataclass(frozen=True)
class OutputWords:
    """The words of an output: words and punctuation marks as readers count them, and the tokens that write them."""

    texts: list[str]
    of_token: list[int | None]
    """The word of each token; None for the end symbol."""
    continues: list[bool]
    """Which tokens continue the word of the token before."""

    @classmethod
    def of(cls, side: Side) -> "OutputWords":
        """Split the text of a side, and assign each token to the word that contains most of it."""
        text, spans = locate_tokens(side)
        words = split_words(text)
        of_token: list[int | None] = []
        for span, special in zip(spans, side.special, strict=True):
            of_token.append(None if special or not words else _word_at(words, span))
        continues = [
            index > 0 and word is not None and word == of_token[index - 1] for index, word in enumerate(of_token)
        ]
        return cls([text[start:end] for start, end in words], of_token, continues)


def split_words(text: str) -> list[Span]:
    """Return the spans of the words, numbers and punctuation marks of a text."""
    return [found.span() for found in WORD.finditer(text)]


def locate_tokens(side: Side) -> tuple[str, list[Span]]:
    """Return the text of a side without special tokens, and the span of each token in it.

    Tokens whose letters do not make up their word (those of single bytes) have the span of the whole word.
    """
    parts: list[str] = []
    spans: list[Span] = [(0, 0)] * len(side)
    start = 0
    for word, text in enumerate(side.word_texts):
        places = [position for position, number in enumerate(side.words) if number == word]
        if side.special[places[0]]:
            spans[places[0]] = (start, start)
            continue
        pieces = [
            "" if side.tokens[position] in "␣▸" and len(side) > 1 else side.tokens[position] for position in places
        ]
        at = start
        for position, piece in zip(places, pieces, strict=True):
            whole = "".join(pieces) != text
            spans[position] = (start, start + len(text)) if whole else (at, at + len(piece))
            at += len(piece)
        parts.append(text)
        start += len(text) + 1
    return " ".join(parts), spans


def _word_at(words: Sequence[Span], span: Span) -> int:
    """Return the word that shares most characters with a span, or the one that follows an empty span."""
    shared = [min(span[1], end) - max(span[0], start) for start, end in words]
    if max(shared) > 0:
        return shared.index(max(shared))
    return next((index for index, (_, end) in enumerate(words) if end > span[0]), len(words) - 1)


def frequent_tokens(counts: NDArray[np.int64] | None) -> NDArray[np.bool_] | None:
    """Return which tokens are frequent, by their number of occurrences in training."""
    if counts is None or not counts.sum():
        return None
    order = np.argsort(-counts, kind="stable")
    before = np.concatenate(([0], np.cumsum(counts[order])[:-1]))
    found = np.zeros(len(counts), dtype=bool)
    found[order[before < FREQUENT * counts.sum()]] = True
    return found


def group_tokens(
    example: Example, side: Side, *, frequent: NDArray[np.bool_] | None = None, tagged: bool = False
) -> list[dict[str, str]]:
    """Return the group of each token of an output in each grouping; with `tagged`, word classes are parts of speech.

    Without a reference there are no groupings by error.
    """
    words = OutputWords.of(side)
    found: list[dict[str, str]] = [{} for _ in side.ids]
    reference = example.reference
    errors, tags, missing = _compare(words.texts, reference) if reference else ([], [], False)
    read = {example.source.text[start:end] for start, end in split_words(example.source.text)}
    real = [index for index, special in enumerate(side.special) if not special]
    outer = (side.words[real[0]], side.words[real[-1]]) if real else (-1, -1)
    for index, groups in enumerate(found):
        word = words.of_token[index]
        if side.special[index]:
            groups |= {"word class": END, "position": END, "place": END}
        else:
            groups["word class"] = (
                (tags[word] if word is not None else NOT_IN_REFERENCE)
                if tagged
                else _word_class(words, index, read, None if frequent is None else bool(frequent[side.ids[index]]))
            )
            groups["position"] = FIFTHS[5 * real.index(index) // len(real)]
            edge = side.words[index]
            groups["place"] = "first word" if edge == outer[0] else "last word" if edge == outer[1] else "between"
        if reference:
            groups["error"] = END if side.special[index] else "inserted" if word is None else errors[word]
            groups["sentence"] = GROUPINGS["sentence"][missing]
    return found


def _word_class(words: OutputWords, position: int, read: set[str], frequent: bool | None) -> str:
    """Return the class of a token by what can be known without a tagger: the first that applies."""
    word = words.of_token[position]
    text = "" if word is None else words.texts[word]
    if not any(letter.isalnum() for letter in text):
        return "punctuation"
    if any(letter.isdigit() for letter in text):
        return "number"
    if text in read:
        return "copied from the source"
    if words.continues[position]:
        return "word-internal piece"
    return "other word" if frequent is None else "frequent word" if frequent else "rare word"


def _compare(output: Sequence[str], reference: AnnotatedText) -> tuple[list[str], list[str], bool]:
    """Return the error and the part of speech of each output word, and whether the output lacks words.

    The part of speech is that of the reference word at the same place by edit distance.
    """
    spans = split_words(reference.text)
    right = [reference.text[start:end] for start, end in spans]
    errors, tags, missing = ["inserted"] * len(output), [NOT_IN_REFERENCE] * len(output), False
    for mine, theirs in word_edits(output, right):
        if mine is None:
            missing = True
        elif theirs is not None:
            errors[mine] = "correct" if output[mine] == right[theirs] else "substituted"
            tags[mine] = reference.tag_of(*spans[theirs]) or NO_TAG
    return errors, tags, missing
