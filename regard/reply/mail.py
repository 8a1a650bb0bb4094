"""Mails: parsing with Python's `email` package, and the text of HTML parts."""

import re
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parseaddr
from typing import Any

from regard.text.html_tree import Copy, Element, parse

LARGEST = 20_000_000
"""Bytes; a larger mail is refused by its readers."""
_BLOCKS = frozenset(
    (
        *("address", "article", "blockquote", "div", "dl", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li"),
        *("ol", "p", "pre", "section", "table", "tr", "ul"),
    )
)
_SKIPPED = frozenset(("head", "script", "style", "title", "template"))
_QUOTING = re.compile(
    r"""class\s*=\s*["']?[^"'>]*\b(?:gmail_quote|gmail_extra|yahoo_quoted|moz-cite-prefix|protonmail_quote)"""
    r"""|id\s*=\s*["']?(?:divRplyFwdMsg|appendonsend|reply-intro)|type\s*=\s*["']?cite""",
    re.IGNORECASE,
)
"""Attributes by which mail clients mark quoted parts."""


@dataclass(frozen=True)
class Mail:
    """What is needed of a mail."""

    text: str
    """The text of its body, with quotations."""
    subject: str = ""
    sender: str = ""
    """The address of the sender, in lower case."""
    identifier: str = ""
    answers: str = ""
    """The identifier of the mail that it answers."""
    forwarded: bool = False


def parse_mail(content: bytes) -> Mail:
    """Parse a mail. Damaged parts are skipped, so that every sequence of bytes gives a mail, perhaps an empty one."""
    message = message_from_bytes(content[:LARGEST], policy=policy.default)
    subject = _header(message, "Subject")
    return Mail(
        text=_body(message),
        subject=subject,
        sender=parseaddr(_header(message, "From"))[1].lower(),
        identifier=_header(message, "Message-ID"),
        answers=(_header(message, "In-Reply-To").split() or [""])[-1],
        forwarded=bool(re.match(r"\s*(?:fwd?|wg|tr|rv|i)\s*:", subject, re.IGNORECASE)),
    )


def _header(message: Any, name: str) -> str:
    try:
        return " ".join(str(message.get(name) or "").split())
    except Exception:  # the parsers of damaged headers raise many kinds of errors
        return ""


def _body(message: Any) -> str:
    """Return the plain text of a mail, or the text of its HTML."""
    plain: list[str] = []
    html: list[str] = []
    parts = message.walk() if isinstance(message, EmailMessage) else ()
    for part in parts:
        if part.is_multipart() or part.get_filename():
            continue
        kind = part.get_content_type()
        if kind in ("text/plain", "text/html"):
            (plain if kind == "text/plain" else html).append(_content(part))
    if any(text.strip() for text in plain):
        return "\n".join(plain)
    return "\n".join(html_to_text(text) for text in html)


def _content(part: Any) -> str:
    try:
        content = part.get_content()
    except Exception:  # an unknown charset or transfer encoding
        payload = part.get_payload(decode=True)
        content = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
    return content if isinstance(content, str) else ""


def html_to_text(html: str) -> str:
    """Return the text of an HTML mail: blocks on lines of their own, quoted parts left out."""
    parts: list[str] = []
    _collect(parse(html), parts)
    lines = (" ".join(line.split()) for line in "".join(parts).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _collect(element: Element, parts: list[str]) -> None:
    if element.name in _SKIPPED or _QUOTING.search(element.start):
        return
    if element.name == "br":
        parts.append("\n")
        return
    block = element.name in _BLOCKS
    if block:
        parts.append("\n")
    for child in element.children:
        if isinstance(child, Element):
            _collect(child, parts)
        elif not isinstance(child, Copy):
            parts.append(child if element.name == "pre" else re.sub(r"\s+", " ", child))
    if block:
        parts.append("\n\n" if element.name == "p" else "\n")
