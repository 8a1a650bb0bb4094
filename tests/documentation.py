"""The pages of the documentation as data: headings, links, and blocks of code with what precedes them."""

import re
import shlex
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "recipes" / "README.md"])
EXAMPLES = "documentation examples"
"""The property (`record_property`) by which a test reports how many examples of the documentation it executes."""
NOT_CHECKED = re.compile(r"<!-- not checked: (.+?) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    page: Path
    line: int
    language: str
    title: str
    text: str
    reason: str
    """Why the block cannot be checked; empty for all others."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command of a shell block, split into words, without redirections."""

    block: Block
    line: int
    words: tuple[str, ...]
    stdin: str
    """The file that `<` names."""
    piped: bool
    """Whether it is part of a pipeline."""

    def __str__(self) -> str:
        return f"{self.block.page.relative_to(ROOT)}:{self.line}"


@cache
def tokens(page: Path) -> list[Any]:
    """Return the parsed page."""
    return MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8"))


def links(page: Path) -> Iterator[tuple[int, str]]:
    """Return the line and the address of every link and image."""
    for token in tokens(page):
        for inner in token.children or ():
            address = inner.attrGet("href") or inner.attrGet("src")
            if address:
                yield (token.map or [0])[0] + 1, str(address)


def inline_code(page: Path) -> Iterator[tuple[int, str]]:
    """Return the line and the text of every piece of code inside a paragraph."""
    for token in tokens(page):
        for inner in token.children or ():
            if inner.type == "code_inline":
                yield (token.map or [0])[0] + 1, inner.content


def headings(page: Path) -> list[str]:
    """Return the plain text of every heading."""
    found = tokens(page)
    return [
        "".join(part.content for part in found[place + 1].children if part.type in ("text", "code_inline"))
        for place, token in enumerate(found)
        if token.type == "heading_open"
    ]


def github_anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings."""
    seen: dict[str, int] = {}
    found = set()
    for heading in headings(page):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if slug in seen else slug)
        seen[slug] = seen.get(slug, 0) + 1
    return found


def site_anchors(page: Path) -> set[str]:
    """Return the anchors that the site gives to the headings (Python-Markdown's `toc`)."""
    found: set[str] = set()
    for heading in headings(page):
        ascii_only = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
        number = 0
        while (unique := f"{slug}_{number}" if number else slug) in found:
            number += 1
        found.add(unique)
    return found


def blocks(page: Path) -> Iterator[Block]:
    """Return every fenced block."""
    reason = ""
    for token in tokens(page):
        if token.type == "html_block" and (match := NOT_CHECKED.search(token.content)):
            reason = match[1]
        elif token.type == "fence":
            language, _, rest = token.info.strip().partition(" ")
            title = re.search(r'title="(.*?)"', rest)
            yield Block(page, (token.map or [0])[0] + 1, language, title[1] if title else "", token.content, reason)
            reason = ""
        elif token.nesting >= 0:
            reason = ""


def all_blocks(*languages: str) -> list[Block]:
    """Return the blocks of all pages in these languages, or in any language."""
    return [block for page in PAGES for block in blocks(page) if not languages or block.language in languages]


def commands(block: Block) -> Iterator[Command]:
    """Return the commands of a shell block; pipelines and lists (`&&`, `;`) are taken apart."""
    lines = block.text.replace("\\\n", " ").splitlines()
    for number, line in enumerate(lines, start=block.line + 1):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
        lexer.whitespace_split = True
        words: list[str] = []
        stdin, piped = "", False
        pending = [*lexer, ";"]
        while pending:
            word = pending.pop(0)
            if word == "<":
                stdin = pending.pop(0)
            elif word in (">", ">>", "2>"):
                pending.pop(0)
            elif word in ("|", "&&", "||", ";", "&"):
                if words:
                    yield Command(block, number, tuple(words), stdin, piped or word == "|")
                words, stdin, piped = [], "", word == "|"
            else:
                words.append(word)
