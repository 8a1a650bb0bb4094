"""Translates HTML: text is translated as whole sentences, and inline tags are put back by word alignment.

A *block* element, a line break or something that is not translated separates segments; each segment is one text for the
translator. *Inline* elements (`b`, `a`, `span`, …) cover words of their segment, and in the output the words aligned to
those. Inline elements that are not translated, such as `code`, keep their content. Every tag of the input occurs in the
output exactly once, and all are well nested.
"""

import html
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from regard.text.html_tree import Child, Element, parse, source_of, text_of
from regard.text.inline_tags import Aligned, insert_tags


@dataclass
class Segment:
    """A stretch of text and inline elements that is translated as one text."""

    nodes: list[Child]
    text: str = ""
    """The text without tags, with single spaces, as the translator gets it."""
    leading: str = ""
    """White space before the text."""
    trailing: str = ""
    has_tags: bool = False

    def __post_init__(self) -> None:
        whole = "".join(text_of(node) for node in self.nodes)
        self.text = " ".join(whole.split())
        self.leading = whole[: len(whole) - len(whole.lstrip())]
        self.trailing = whole[len(whole.rstrip()) :] if self.text else ""
        self.has_tags = any(not isinstance(node, str) for node in self.nodes)


Translate = Callable[[list[str]], list[Aligned]]
"""Translates texts, each with its word alignment."""


def segments_of(root: Element) -> list[Segment]:
    """Return the segments of a document that have something to translate, in order."""
    return [part for part in _parts(root) if isinstance(part, Segment) and _is_translatable(part)]


def _is_translatable(segment: Segment) -> bool:
    """Return whether a segment has text outside elements that are copied."""

    def has_text(node: Child) -> bool:
        if isinstance(node, Element):
            return not node.copied and any(map(has_text, node.children))
        return isinstance(node, str) and bool(node.strip())

    return any(map(has_text, segment.nodes))


def _parts(element: Element) -> list["Segment | str"]:
    """Split an element into segments, and the HTML between them."""
    parts: list[Segment | str] = []
    run: list[Child] = []

    def finish() -> None:
        if run:
            parts.append(Segment(run.copy()))
            run.clear()

    for child in element.children:
        if not isinstance(child, Element) or _fits_in_sentence(child):
            run.append(child)
        elif child.copied:
            finish()
            parts.append(source_of(child))
        else:
            finish()
            parts += [child.start, *_parts(child), child.end]
    finish()
    return parts


def _fits_in_sentence(element: Element) -> bool:
    """Return whether an element and all in it are inline."""
    return element.is_inline and all(
        not isinstance(child, Element) or element.copied or _fits_in_sentence(child) for child in element.children
    )


def render(root: Element, translations: Iterable[Aligned]) -> str:
    """Return the document with the translations of its segments, in their order."""
    found = iter(translations)
    pieces = []
    for part in _parts(root):
        if isinstance(part, str):
            pieces.append(part)
        elif not _is_translatable(part):
            pieces.append("".join(source_of(node) for node in part.nodes))
        else:
            pieces.append(part.leading + _with_tags(part, next(found)) + part.trailing)
    return "".join(pieces)


def _with_tags(segment: Segment, translated: Aligned) -> str:
    if segment.has_tags:
        return insert_tags(segment.nodes, translated)
    return html.escape(translated.text, quote=False)


def plain_text(source: str) -> str:
    """Return the text of an HTML document or fragment that would be translated."""
    return " ".join(segment.text for segment in segments_of(parse(source)))


def translate_html(source: str, translate: Translate) -> str:
    """Return an HTML document or fragment, translated."""
    root = parse(source)
    segments = segments_of(root)
    return render(root, translate([segment.text for segment in segments]) if segments else [])
