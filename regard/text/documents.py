"""Documents: plain text, HTML and subtitles come back translated with the same structure."""

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from regard.foundation.errors import UsageError
from regard.text.html_tree import Element, parse
from regard.text.inline_tags import Aligned
from regard.text.markup import Segment, render, segments_of

FORMATS = (".txt", ".html", ".srt")
"""Endings of documents that can be translated."""

_BREAK = re.compile(r"(\r\n|\r|\n)")
_CUE_TIME = re.compile(r"\s*\d+:\d\d:\d\d[,.]\d+\s*-->\s*\d+:\d\d:\d\d[,.]\d+.*")
_TAG = re.compile(r"<[^>]*>")
_UNESCAPED = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}


class _Part(NamedTuple):
    """A part of a document that has segments: HTML, or the text of a subtitle."""

    root: Element
    first: int
    """Number of its first segment."""
    last: int
    """One after its last segment."""
    lines: int = 0
    """Lines on which a subtitle stood; 0 for HTML."""
    line_break: str = "\n"

    def render(self, translations: Sequence[Aligned]) -> str:
        """Return its translation."""
        text = render(self.root, translations[self.first : self.last])
        if not self.lines:
            return text
        for escaped, character in _UNESCAPED.items():  # subtitles have tags, but no entities
            text = text.replace(escaped, character)
        return _wrap(text, self.lines, self.line_break)


class Document:
    """A document, and its segments, which are translated."""

    def __init__(self, name: str, content: str) -> None:
        """Read a document; its format follows from the ending of its name."""
        ending = PurePath(name).suffix.lower()
        ending = ".html" if ending in (".htm", ".xhtml") else ending
        if ending not in FORMATS:
            what = f"Documents with the ending `{ending}`" if ending else "Documents without an ending"
            raise UsageError(f"{what} cannot be translated. Use one of {', '.join(FORMATS)}.")
        self.segments: list[Segment] = []
        self._parts: list[str | Segment | _Part] = []
        if ending == ".html":
            self._add(parse(content))
        elif ending == ".srt":
            self._read_subtitles(content)
        else:
            self._read_lines(content)

    @classmethod
    def decode(cls, name: str, content: bytes) -> "Document":
        """Read a document from bytes: UTF-8, with or without a byte-order mark."""
        try:
            return cls(name, content.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise UsageError(f"{PurePath(name).name} is not UTF-8 text. Convert it, and try again.") from None

    def _add(self, root: Element, lines: int = 0, line_break: str = "\n") -> None:
        found = segments_of(root)
        first = len(self.segments)
        self._parts.append(_Part(root, first, first + len(found), lines, line_break))
        self.segments += found

    def _read_lines(self, content: str) -> None:
        """Read plain text: each line is a segment, unless it is blank."""
        for part in _BREAK.split(content):
            if part.strip():
                segment = Segment([part])
                self.segments.append(segment)
                self._parts.append(segment)
            else:
                self._parts.append(part)

    def _read_subtitles(self, content: str) -> None:
        """Read subtitles: cues of a number, a time and lines of text, which may have tags such as `<i>`."""
        lines = _BREAK.split(content)
        texts, breaks = lines[::2], [*lines[1::2], ""]
        place = 0
        while place < len(texts):
            self._parts.append(texts[place] + breaks[place])
            is_time = bool(_CUE_TIME.fullmatch(texts[place]))
            place += 1
            if not is_time:
                continue
            end = place
            while end < len(texts) and texts[end].strip():
                end += 1
            if end > place:
                self._add(parse(" ".join(texts[place:end])), end - place, breaks[place])
                self._parts.append(breaks[end - 1])
            place = end

    def render(self, translations: Sequence[Aligned]) -> str:
        """Return the document with the translations of its segments."""
        numbers = {id(segment): number for number, segment in enumerate(self.segments)}
        pieces = []
        for part in self._parts:
            if isinstance(part, Segment):
                pieces.append(part.leading + translations[numbers[id(part)]].text + part.trailing)
            else:
                pieces.append(part if isinstance(part, str) else part.render(translations))
        return "".join(pieces)


def _wrap(text: str, count: int, line_break: str) -> str:
    """Return a text on several lines of similar lengths; tags do not count."""
    words = re.findall(r"(?:<[^>]*>|\S)+", text)
    sizes = [len(_TAG.sub("", word)) + 1 for word in words]
    lines: list[str] = []
    place = 0
    for left in range(count, 0, -1):
        goal, first, size = sum(sizes[place:]) / left, place, 0
        while place < len(words) and (left == 1 or place == first or size + sizes[place] / 2 <= goal):
            size += sizes[place]
            place += 1
        lines.append(" ".join(words[first:place]))
    return line_break.join(line for line in lines if line)
