"""Remove what a mail quotes or forwards, so that only its author's own words are left.

The marks are those of common mail clients (Gmail, Outlook, Apple Mail, Thunderbird, Yahoo) in English, German, French,
Spanish and Italian.
"""

import re

_ATTRIBUTION = re.compile(
    r"""^\s*(?:
        On\b.{4,300}?\bwrote\s*:
      | Am\b.{4,300}?\b(?:schrieb|geschrieben)\b.{0,150}?:
      | .{2,150}?\bschrieb\s+am\b.{4,150}?:
      | Le\b.{4,300}?\ba\s+écrit\s*:
      | El\b.{4,300}?\bescribió\s*:
      | Il\b.{4,300}?\bha\s+scritto\s*:
    )\s*$""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""A line, or two or three lines that a client has wrapped, that introduces a quotation."""
_BEGINS_ATTRIBUTION = re.compile(r"^\s*(?:On|Am|Le|El|Il)\s+\S|^.{2,150}\bschrieb\s+am\b", re.IGNORECASE)

_ORIGINAL = re.compile(
    r"^\s*[-_=*]{2,}\s*(?:Original Message|Original Appointment|Ursprüngliche Nachricht|Message d['’]origine|"
    r"Mensaje original|Messaggio originale|Forwarded (?:message|by\b.*)|Weitergeleitete Nachricht|"
    r"Message (?:transféré|transmis)|Mensaje reenviado|Messaggio inoltrato)\b.*$",
    re.IGNORECASE,
)
_FORWARD = re.compile(
    r"^\s*(?:Begin forwarded message|Anfang der weitergeleiteten (?:Nachricht|E-Mail)|Début du message (?:réexpédié|"
    r"transféré)|Inicio del mensaje reenviado|Inizio (?:del )?messaggio inoltrato)\s*:\s*$",
    re.IGNORECASE,
)
_FIELDS = (
    ("from", "von", "de", "da"),
    ("sent", "date", "gesendet", "datum", "envoyé", "enviado", "enviado el", "fecha", "inviato", "data"),
    ("to", "an", "à", "a", "para"),
    ("subject", "betreff", "objet", "asunto", "oggetto"),
)
_FIELD = re.compile(r"^\s*\*?(?P<name>[A-Za-zÀ-ÿ -]{1,12}?)\s?:\*?\s+\S")
_RULE = re.compile(r"^\s*[_-]{8,}\s*$")
_QUOTED = re.compile(r"^\s*>")


def remove_quotations(text: str) -> str:
    """Return a mail's text without quoted and forwarded parts.

    Lines that begin with `>` are removed with the line that introduces them; answers between them stay. After a
    header of an older mail, everything is quoted.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    kept: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        if _ORIGINAL.match(line) or _FORWARD.match(line):
            break
        if _is_header(lines, index):
            while kept and (_RULE.match(kept[-1]) or not kept[-1].strip()):
                kept.pop()
            break
        length = _attribution_length(lines, index)
        if length:
            following = next((other for other in lines[index + length :] if other.strip()), "")
            if not _QUOTED.match(following):
                break
            index += length
            continue
        if not _QUOTED.match(line):
            kept.append(line)
        index += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


def _attribution_length(lines: list[str], index: int) -> int:
    """Return the number of lines of the attribution that begins at a line; 0 if there is none."""
    if not _BEGINS_ATTRIBUTION.match(lines[index]):
        return 0
    for length in (1, 2, 3):
        if _ATTRIBUTION.match(" ".join(lines[index : index + length])):
            return length
    return 0


def _is_header(lines: list[str], index: int) -> bool:
    """Return whether the header of an older mail begins at a line: a sender and two more fields within five lines."""
    if not _is_field(lines[index], 0):
        return False
    following = lines[index + 1 : index + 6]
    return sum(any(_is_field(line, kind) for line in following) for kind in (1, 2, 3)) >= 2


def _is_field(line: str, kind: int) -> bool:
    found = _FIELD.match(line)
    return found is not None and found["name"].strip().lower() in _FIELDS[kind]
