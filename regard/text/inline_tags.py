"""Puts the inline tags of a sentence back into its translation, around the words aligned to those they covered."""

import html
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from regard.text.html_tree import Child, Copy, Element, source_of

Alignment = Sequence[tuple[int, int]]
"""Pairs (source word, target word); words are separated by white space and counted from 0."""


class Aligned(NamedTuple):
    """A translation, with its alignment to the source."""

    text: str
    alignment: Alignment


class Span(NamedTuple):
    """An inline element and the source tokens that it covers, with the elements within it."""

    element: Element | Copy
    first: int
    last: int
    """One after its last token; equal to `first` if it covers none."""
    after_space: bool
    """Whether white space precedes it."""
    inner: "list[Span]"


class _Reader:
    """Reads the nodes of a segment: its text with single spaces, and the characters that each element covers."""

    def __init__(self, nodes: Sequence[Child]) -> None:
        self.text = ""
        self._space = False
        self._covered: list[tuple[Element | Copy, int, int, bool, list[Any]]] = self._read(nodes)
        self.tokens = tokens_of(self.text)

    def _read(self, nodes: Sequence[Child]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, str):
                for character in node:
                    if character.isspace():
                        self._space = True
                    else:
                        self.text += (" " if self._space and self.text else "") + character
                        self._space = False
                continue
            after_space, before = self._space and bool(self.text), len(self.text)
            inner = self._read(node.children) if isinstance(node, Element) else []
            start = before + (after_space and len(self.text) > before)
            found.append((node, start, len(self.text), after_space, inner))
        return found

    def spans(self) -> list[Span]:
        """Return the outermost elements with the tokens that they cover."""
        return self._to_spans(self._covered)

    def _to_spans(self, covered: list[Any]) -> list[Span]:
        spans = []
        for element, start, end, after_space, inner in covered:
            inside = [
                number
                for number, (begin, stop) in enumerate(self.tokens)
                if start < end and begin < end and stop > start
            ]
            is_copied = isinstance(element, Copy) or element.copied
            if is_copied and inside and (self.tokens[inside[0]][0] < start or self.tokens[inside[-1]][1] > end):
                inside = []  # it shares a word with other text, which must not be lost
            first = inside[0] if inside else sum(stop <= start for _, stop in self.tokens)
            last = inside[-1] + 1 if inside else first
            spans.append(Span(element, first, last, after_space, [] if is_copied else self._to_spans(inner)))
        return spans


def tokens_of(text: str) -> list[tuple[int, int]]:
    """Return the character ranges of words and of stretches of punctuation."""
    return [(match.start(), match.end()) for match in re.finditer(r"\w+|[^\w\s]+", text)]


def align_tokens(source: str, target: str, alignment: Alignment) -> list[list[int]]:
    """Return for each token of the source the aligned tokens of the target.

    The alignment is between words, separated by white space; within two aligned words, letters and digits belong to
    letters and digits, and punctuation to punctuation, if both words have some.
    """
    sides = []
    for text in (source, target):
        words: list[list[int]] = []
        ends = [match.end() for match in re.finditer(r"\S+", text)]
        tokens = tokens_of(text)
        words = [[] for _ in ends]
        for number, (start, _) in enumerate(tokens):
            words[next(index for index, end in enumerate(ends) if start < end)].append(number)
        is_word = [text[start].isalnum() or text[start] == "_" for start, _ in tokens]
        sides.append((words, is_word))
    (source_words, source_kinds), (target_words, target_kinds) = sides
    found: list[list[int]] = [[] for _ in source_kinds]
    for source_word, target_word in alignment:
        if not (0 <= source_word < len(source_words) and 0 <= target_word < len(target_words)):
            continue
        for kind in (True, False):
            own = [token for token in source_words[source_word] if source_kinds[token] == kind]
            others = [token for token in target_words[target_word] if target_kinds[token] == kind]
            for index, token in enumerate(own):
                found[token] += [others[index]] if len(own) == len(others) else others
    return found


def insert_tags(nodes: Sequence[Child], translated: Aligned) -> str:
    """Return a translation as HTML, with the inline elements of its source `nodes` around the aligned words."""
    reader = _Reader(nodes)
    text = " ".join(translated.text.split())
    targets = align_tokens(reader.text, text, translated.alignment)
    placing = _Placing(text, tokens_of(text), targets)
    return placing.render(reader.spans(), (0, len(placing.tokens)), (0, len(reader.tokens)))


Range = tuple[int, int]
"""Tokens from the first number to one before the second."""


class _Placing:
    """Places elements in a translation."""

    def __init__(self, text: str, tokens: list[tuple[int, int]], targets: list[list[int]]) -> None:
        self.text, self.tokens, self.targets = text, tokens, targets

    def render(self, spans: list[Span], target: Range, source: Range) -> str:
        """Return target tokens with elements; they translate the source tokens that the elements are part of."""
        pieces: list[str] = []
        at = target[0]
        for number, begin, stop in sorted(self._places(spans, target, source), key=lambda place: (place[1:], place[0])):
            pieces.append(self._plain(at, begin, is_first=at == target[0]))
            at = max(at, begin)
            span = spans[number]
            if begin < stop:
                pieces.append(self._gap(begin) if begin > target[0] else "")
            elif span.after_space and begin > target[0]:
                pieces.append(" ")
            pieces.append(self._element(span, (begin, stop)))
            at = max(at, stop)
        pieces.append(self._plain(at, target[1], is_first=at == target[0]))
        return "".join(pieces)

    def _element(self, span: Span, target: Range) -> str:
        element = span.element
        if isinstance(element, Copy) or element.copied or not element.end:
            return source_of(element)
        if target[0] < target[1]:
            inside = self.render(span.inner, target, (span.first, span.last))
        else:
            inside = "".join(self._element(inner, target) for inner in span.inner)
        return element.start + inside + element.end

    def _plain(self, begin: int, stop: int, *, is_first: bool) -> str:
        """Return target tokens without elements, with the gap before the first of them unless it begins a range."""
        if begin >= stop:
            return ""
        text = self.text[self.tokens[begin][0] : self.tokens[stop - 1][1]]
        return ("" if is_first else self._gap(begin)) + html.escape(text, quote=False)

    def _gap(self, token: int) -> str:
        """Return the white space before a token."""
        return self.text[self.tokens[token - 1][1] : self.tokens[token][0]] if token else ""

    def _places(self, spans: list[Span], target: Range, source: Range) -> list[tuple[int, int, int]]:
        """Return the number of each element with the target tokens that it covers: disjoint ranges within `target`."""
        start, end = target
        for number, span in enumerate(spans):
            if (span.first, span.last) == source and not _is_copied(span):  # it covers everything
                return [
                    (other, *((start, start) if other < number else (end, end) if other > number else target))
                    for other in range(len(spans))
                ]
        owner: list[int | None] = [None] * (end - start)
        for number, span in enumerate(spans):
            for token in range(span.first, span.last):
                for aligned in self.targets[token]:
                    if start <= aligned < end and owner[aligned - start] is None:
                        owner[aligned - start] = number
        runs = [_longest_run(owner, number, bridge=not _is_copied(span)) for number, span in enumerate(spans)]
        for number, span in enumerate(spans):
            run = runs[number]
            if run is not None and _is_copied(span) and run[1] - run[0] > span.last - span.first + 1:
                runs[number] = None  # its content takes the place of words: not of so many
        taken = [False] * (end - start)
        for run in runs:
            if run is not None:
                taken[slice(*run)] = [True] * (run[1] - run[0])
        return [
            (number, *((start + run[0], start + run[1]) if run else self._point(span, runs, taken, target, source)))
            for number, (span, run) in enumerate(zip(spans, runs, strict=True))
        ]

    def _point(
        self, span: Span, runs: list[Range | None], taken: list[bool], target: Range, source: Range
    ) -> tuple[int, int]:
        """Return the place of an element without target tokens: after those aligned to the token before it."""
        start, end = target
        point = start
        for token in range(min(span.first, source[1]) - 1, source[0] - 1, -1):
            inside = [aligned for aligned in self.targets[token] if start <= aligned < end]
            if inside:
                point = max(inside) + 1
                break
        for run in runs:
            if run is not None and run[0] < point - start < run[1]:
                point = start + run[1]  # not within another element
        return point, point


def _is_copied(span: Span) -> bool:
    return isinstance(span.element, Copy) or span.element.copied


def _longest_run(owner: list[int | None], number: int, *, bridge: bool) -> Range | None:
    """Return the longest stretch of an element's tokens; with `bridge` there may be tokens of no element within it."""
    best: Range | None = None
    begin: int | None = None
    last = 0
    for index, who in enumerate([*owner, -1]):
        if who == number:
            begin = index if begin is None else begin
            last = index
        elif who is not None or not bridge:
            if begin is not None and (best is None or last + 1 - begin > best[1] - best[0]):
                best = begin, last + 1
            begin = None
    return best
