"""Replace entities by placeholders: what names, numbers, dates and addresses are does not matter for a short reply."""

import re

_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?|januar|februar|märz|mai|juni|juli|oktober|dezember|janvier|février|mars|avril|juin|"
    "juillet|août|septembre|octobre|novembre|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|"
    "octubre|noviembre|diciembre|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre"
)
_ENTITIES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("<url>", re.compile(r"\b(?:https?://|www\.)[^\s<>()]+", re.IGNORECASE)),
    ("<email>", re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")),
    (
        "<date>",
        re.compile(
            rf"\b\d{{4}}-\d{{1,2}}-\d{{1,2}}\b|\b\d{{1,2}}[./-]\d{{1,2}}[./-](?:\d{{4}}|\d{{2}})\b|"
            rf"\b(?:{_MONTHS})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?\b|"
            rf"\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:de\s+|of\s+)?(?:{_MONTHS})\b\.?(?:\s+(?:de\s+)?\d{{4}})?",
            re.IGNORECASE,
        ),
    ),
    ("<time>", re.compile(r"\b\d{1,2}[:.]\d{2}\s*(?:[ap]\.?m\.?|uhr|h)?\b|\b\d{1,2}\s*(?:[ap]\.?m\b\.?|uhr\b)", re.I)),
    ("<phone>", re.compile(r"(?<![\w.])\+?\(?\d{2,4}\)?[\s./-]\d{2,4}[\s./-]?\d{2,5}(?:[\s./-]\d{2,5})?(?![\w])")),
    ("<number>", re.compile(r"(?<![\w<])[$€£]?\d[\d.,]*(?:%|(?:st|nd|rd|th|k|m|bn)\b)?", re.IGNORECASE)),
)
_NAME = re.compile(r"(?<=[\w,;)] )(?:[A-ZÀ-Þ][a-zà-ÿ'’]+)(?: (?:[A-ZÀ-Þ][a-zà-ÿ'’.]+|[A-Z]\.))*")
"""Capitalised words within a sentence; the first word of a sentence may be an ordinary one."""
_ORDINARY = frozenset(("I", "I'm", "I'll", "I've", "I'd", "Ok", "OK"))

PLACEHOLDERS = ("<url>", "<email>", "<date>", "<time>", "<phone>", "<number>", "<name>")


def replace_entities(text: str, *, names: bool = True) -> str:
    """Return a text with URLs, addresses, dates, times, phone numbers, numbers and names as placeholders.

    Names are recognised by their capitals, so `names` must be false for languages that capitalise nouns, and for texts
    without capitals.
    """
    for placeholder, pattern in _ENTITIES:
        text = pattern.sub(placeholder, text)
    if names:
        text = _NAME.sub(lambda found: found[0] if found[0] in _ORDINARY else "<name>", text)
    return text
