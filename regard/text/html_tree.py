"""HTML as a tree: elements, text, and what is copied as it is.

Python's `html.parser` splits the source into tags and text: it is tolerant, and it keeps the source of each tag, whose
attributes come back unchanged to the letter. The tags are nested here, without the rules by which browsers duplicate
formatting elements: every tag of the source is one element.
"""

import html
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import NamedTuple

INLINE = frozenset(
    (
        *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font"),
        *("i", "ins", "kbd", "label", "mark", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike"),
        *("strong", "sub", "sup", "time", "tt", "u", "var", "img"),
    )
)
"""Elements within a sentence; unknown elements with a hyphen or a colon in their names are inline as well."""
VOID = frozenset(
    (
        *("area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param", "source"),
        *("track", "wbr"),
    )
)
"""Elements without content."""
COPIED = frozenset(
    (
        *("code", "kbd", "samp", "var", "pre", "script", "style", "textarea", "svg", "math", "noscript", "iframe"),
        *("object", "template", "title-code"),
    )
)
"""Elements whose content is copied."""
RAW = frozenset(("script", "style"))
"""Elements whose content is not escaped."""
CLOSED_BY = {
    "p": frozenset(
        (
            *("address", "article", "aside", "blockquote", "details", "div", "dl", "fieldset", "figure", "footer"),
            *("form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "menu", "nav", "ol", "p", "pre"),
            *("section", "table", "ul"),
        )
    ),
    "li": frozenset(("li",)),
    "dt": frozenset(("dt", "dd")),
    "dd": frozenset(("dt", "dd")),
    "tr": frozenset(("tr", "tbody", "tfoot")),
    "td": frozenset(("td", "th", "tr")),
    "th": frozenset(("td", "th", "tr")),
    "option": frozenset(("option", "optgroup")),
}
"""Elements that an opening tag ends, if they are the innermost open element."""

DEEPEST = 100
"""Levels of nested elements; deeper ones are closed at once."""


@dataclass
class Element:
    """An element of the document, or the document itself (without a tag)."""

    name: str = ""
    start: str = ""
    """The source of its opening tag."""
    end: str = ""
    """Its closing tag; empty for elements without content."""
    children: "list[Element | str | Copy]" = field(default_factory=list)
    copied: bool = False
    """Whether its content is not translated."""

    @property
    def is_inline(self) -> bool:
        """Whether it is part of a sentence."""
        return self.name in INLINE or "-" in self.name or ":" in self.name

    def source(self) -> str:
        """Return the element as HTML, with its content unchanged."""
        return self.start + "".join(source_of(child, raw=self.name in RAW) for child in self.children) + self.end


class Copy(NamedTuple):
    """Something that is copied as it is: a comment, a declaration, a processing instruction."""

    text: str


Child = Element | str | Copy


def source_of(child: Child, *, raw: bool = False) -> str:
    """Return a node as HTML, unchanged."""
    if isinstance(child, Element):
        return child.source()
    return child.text if isinstance(child, Copy) else child if raw else html.escape(child, quote=False)


class _Parser(HTMLParser):
    """Builds the tree of a document, well nested whatever the input."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element()
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        while self.open[-1].name in CLOSED_BY and tag in CLOSED_BY[self.open[-1].name]:
            self.open.pop()
        self._add(tag, attrs, has_content=tag not in VOID)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._add(tag, attrs, has_content=False)

    def _add(self, tag: str, attrs: list[tuple[str, str | None]], *, has_content: bool) -> None:
        start = self.get_starttag_text() or f"<{tag}>"
        values = dict(attrs)
        translate = (values.get("translate") or "").lower()
        inherited = self.open[-1].copied
        copied = tag in COPIED or translate == "no" or (inherited and translate != "yes")
        if "notranslate" in (values.get("class") or "").split():
            copied = True
        element = Element(tag, start, f"</{tag}>" if has_content else "", [], copied)
        self.open[-1].children.append(element)
        if has_content and len(self.open) < DEEPEST:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        names = [element.name for element in self.open]
        if tag in names[1:]:
            del self.open[len(names) - 1 - names[::-1].index(tag) :]

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)

    def handle_comment(self, data: str) -> None:
        self.open[-1].children.append(Copy(f"<!--{data}-->"))

    def handle_decl(self, decl: str) -> None:
        self.open[-1].children.append(Copy(f"<!{decl}>"))

    def unknown_decl(self, data: str) -> None:
        self.open[-1].children.append(Copy(f"<![{data}{']]>' if data.startswith('CDATA[') else ']>'}"))

    def handle_pi(self, data: str) -> None:
        self.open[-1].children.append(Copy(f"<?{data}>"))


def parse(source: str) -> Element:
    """Return the tree of an HTML document or fragment."""
    parser = _Parser()
    parser.feed(source)
    parser.close()
    if parser.rawdata:  # the rest of a script without an end, which older versions of Python leave here
        parser.handle_data(parser.rawdata)
    return parser.root


def text_of(node: Child) -> str:
    """Return the text of a node, without tags."""
    if isinstance(node, Element):
        return "".join(text_of(child) for child in node.children)
    return node if isinstance(node, str) else ""
