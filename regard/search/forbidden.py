"""Phrases that an output must not contain, in any tokenization.

A phrase matches as whole words; `cat*` also matches all words that begin with it. Text is read character by character
by an automaton in the manner of Aho and Corasick (1975), so that the tokens `c`, `at` match as well as `cat`.
"""

import re
from codecs import getincrementaldecoder
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from regard.search.rules import Every, Free, Rule
from regard.text.normalising import WORD_START
from regard.text.specials import EOS, SPECIALS, UNK
from regard.text.tokenizer import Tokenizer

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Scripts written without spaces: there, a word may begin and end anywhere."""


class Reading(NamedTuple):
    """The state of the automaton."""

    tail: str
    """The longest end of the text, from the start of a word, with which a forbidden phrase begins."""
    inside: bool
    """Whether the last character may belong to the same word as the next."""
    spelt: bytes
    """Bytes of a character that is not yet whole."""
    broken: bool
    """Whether the text contains a forbidden phrase."""
    resumed: bool = False
    """Whether another output begins here, whose first space is not written."""


class Forbidden(Free):
    """The output contains none of these phrases."""

    def __init__(self, phrases: Sequence[str], tokenizer: Tokenizer) -> None:
        self.phrases = frozenset(phrase.removesuffix("*") for phrase in phrases)
        self.at_once = frozenset(
            phrase.removesuffix("*") for phrase in phrases if phrase.endswith("*") or not joins(phrase[-1])
        )
        """Phrases that match whatever follows; the others match only as whole words."""
        self.beginnings = {phrase[:length] for phrase in self.phrases for length in range(1, len(phrase) + 1)}
        self.pieces = spelling(tokenizer)
        self.closed = tokenizer.kind == "words"  # each token is a whole word
        self.read = lru_cache(maxsize=100_000)(self._read)
        self.masks: dict[tuple[Reading, bool], Tensor] = {}

    @property
    def start(self) -> Reading:
        """The state before the first word."""
        return Reading("", False, b"", False)

    def after(self, state: Reading, token: int) -> Reading:
        """Return the state after the characters of one more token."""
        piece = self.pieces[token]
        if isinstance(piece, bytes):
            return self._after_byte(state, piece)
        for character in "\ufffd" + piece if state.spelt and piece else piece:
            state = self.read(state, character)
        return state._replace(broken=not self._may_end(state)) if self.closed else state

    def _after_byte(self, state: Reading, byte: bytes) -> Reading:
        """Return the state after one more byte of a character, which may be invalid, so that a word may end here."""
        if not self._may_end(state):
            return state._replace(broken=True)
        state = state._replace(resumed=False)
        try:
            text = getincrementaldecoder("utf-8")().decode(state.spelt + byte)
        except UnicodeDecodeError:
            text = "\ufffd"
        after = self.read(state._replace(spelt=b""), text) if text else state._replace(spelt=state.spelt + byte)
        return after._replace(inside=False)

    def allowed(self, state: Reading, left: int, size: int) -> Tensor:
        """Allow tokens that complete no phrase; the last token must not complete one by ending the output either."""
        key = state, left <= 1
        if key not in self.masks:
            states = [self.after(state, token) for token in range(size)]
            fine = [not state.broken and (left > 1 or self._may_end(state)) for state in states]
            fine[EOS] = self._may_end(state)
            self.masks[key] = torch.tensor(fine)
        return self.masks[key]

    def breaks(self, text: str) -> bool:
        """Return whether a text contains a forbidden phrase."""
        return not self._may_end(self.after_text(self.start, text))

    def after_text(self, state: Reading, text: str) -> Reading:
        """Return the state after the characters of a text."""
        for character in text:
            state = self.read(state, character)
        return state

    def follow(self, state: Reading, tokens: Iterable[int], *, spaced: bool) -> Reading:
        """Return the state after the tokens of one more output, and the white space after it if there is any."""
        state = state._replace(resumed=True)
        for token in tokens:
            state = self.after(state, token)
        return self.read(state, " ") if spaced else state

    def resumed(self, states: Iterable[Reading]) -> Rule:
        """Return the rule for an output that follows others, which ended in any of these states."""
        rules = [Resumed(self, state._replace(resumed=True)) for state in states]
        return rules[0] if len(rules) == 1 else Every(rules)

    def _may_end(self, state: Reading) -> bool:
        return not self.read(state, " ").broken

    def _read(self, state: Reading, character: str) -> Reading:
        """Return the state after one more character; a run of spaces counts as one."""
        if state.resumed:
            state = state._replace(resumed=False)
            if character == " ":
                return state
        tail = state.tail
        if state.broken or (character == " " and tail.endswith(" ")):
            return state
        parted = not (state.inside and joins(character))
        broken = parted and any(end in self.phrases for end in _word_ends(tail))
        ends = [end + character for end in _word_ends(tail)] + ([character] if parted else [])
        tail = next((end for end in ends if end in self.beginnings), "")
        broken = broken or any(end in self.at_once for end in _word_ends(tail))
        return Reading(tail, joins(character), b"", broken)


class Resumed(Free):
    """The output, together with the text before it, contains no forbidden phrase."""

    def __init__(self, rule: Forbidden, start: Reading) -> None:
        self.rule, self._start = rule, start

    @property
    def start(self) -> Reading:
        """The state after the text before it."""
        return self._start

    def after(self, state: Reading, token: int) -> Reading:
        """Return the state after the characters of one more token."""
        return self.rule.after(state, token)

    def allowed(self, state: Reading, left: int, size: int) -> Tensor:
        """Allow tokens that complete no phrase."""
        return self.rule.allowed(state, left, size)


def _word_ends(text: str) -> list[str]:
    """Return all suffixes of a text that start at a word start, longest first; the text itself starts a word."""
    parted = (place for place in range(1, len(text)) if not (joins(text[place - 1]) and joins(text[place])))
    return [text[place:] for place in (0, *parted)] if text else []


def joins(character: str) -> bool:
    """Return whether a character forms one word with another such character next to it."""
    return character.isalnum() and not _UNSPACED.match(character)


def spelling(tokenizer: Tokenizer) -> list[str | bytes]:
    """Return what each token adds to the text: characters, or one byte of a character."""
    pieces: list[str | bytes] = []
    for number, token in enumerate(tokenizer.vocabulary):
        byte = _BYTE.fullmatch(token)
        if number < len(SPECIALS):
            pieces.append(f" {token}" if number == UNK else "")
        else:
            pieces.append(bytes([int(byte[1], 16)]) if byte else token.replace(WORD_START, " "))
    return pieces
