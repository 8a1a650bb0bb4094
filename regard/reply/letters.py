"""The parts of a letter: greeting, body, closing and signature.

The lists cover English, German, French, Spanish and Italian business mail.
"""

import re
from typing import NamedTuple

_NAME = r"[A-ZÀ-Þ][\w.'’&/-]*"
_TITLES = r"(?:mr|mrs|ms|dr|prof|herrn?|frau|monsieur|madame|señora?|signora?)\.?"
_GREETING_WORDS = (
    *("hi", "hello", "hey", "hiya", "dear", "greetings", "good morning", "good afternoon", "good evening", "morning"),
    *("hallo", "liebe[rs]?", "sehr geehrte[rs]?", "guten (?:tag|morgen|abend)", "moin", "servus"),
    *("bonjour", "bonsoir", "salut", "cher", "chère", "chers", "chères", "coucou"),
    *("to all", "aloha", "hola", "buenos d[ií]as", "buenas (?:tardes|noches)", "querid[oa]s?", "estimad[oa]s?"),
    *("ciao", "salve", "buongiorno", "buonasera", "car[oaie]", "gentile", "egregi[oa]?"),
)
_ALL = r"(?:all|everyone|everybody|team|folks|guys|gang|there|both|alle|zusammen|tous|toutes|todos|todas|tutti)"
_NOT_NAMES = (
    *(
        "when",
        "where",
        "what",
        "why",
        "how",
        "who",
        "which",
        "recently",
        "well",
        "fyi",
        "today",
        "tomorrow",
        "yesterday",
    ),
    *(
        "last",
        "next",
        "this",
        "that",
        "these",
        "those",
        "there",
        "here",
        "also",
        "note",
        "please",
        "subject",
        "re",
        "per",
    ),
    *("however", "first", "second", "third", "finally", "attached", "attachment", "attention", "as", "in", "on", "at"),
    *(
        "ok",
        "okay",
        "yes",
        "no",
        "yeah",
        "sure",
        "sorry",
        "thanks",
        "thank",
        "unfortunately",
        "currently",
        "now",
        "then",
    ),
    *("so", "but", "and", "or", "if", "for", "from", "to", "date", "time", "place", "location", "reminder", "update"),
    *("question", "answer", "summary", "agenda", "important", "urgent", "confidential", "warning", "notice", "just"),
    *("again", "anyway", "anyways", "additionally", "meanwhile", "otherwise", "instead", "basically", "actually"),
    *(
        "weekly",
        "daily",
        "monthly",
        "quarterly",
        "obviously",
        "hopefully",
        "congratulations",
        "congrats",
        "happy",
        "merry",
        "btw",
        "ps",
        "memo",
        "memorandum",
    ),
    *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "earlier", "later", "usa", "news"),
    *("after", "before", "since", "while", "although", "because", "once", "until", "with", "without", "by", "under"),
    *(
        "it",
        "i",
        "we",
        "you",
        "they",
        "he",
        "she",
        "my",
        "our",
        "your",
        "their",
        "his",
        "her",
        "the",
        "a",
        "an",
        "all of",
    ),
)
"""Words that begin a first sentence and may be followed by a comma or a colon."""
_GREETING = re.compile(
    rf"^\s*(?i:{'|'.join(_GREETING_WORDS)})\b[ ,]*"
    rf"(?:(?:(?i:{_TITLES})\s+)?(?:{_NAME}|(?i:{_ALL})|(?:and|und|et|y|e)\b|&|/|,)[ ,]*){{0,8}}[,:;.!–—-]*\s*$"
)
_ADDRESS = re.compile(
    rf"^\s*(?!(?i:{'|'.join(_NOT_NAMES)})\b)(?:{_TITLES}\s+)?(?:(?:{_NAME})(?:\s*(?:,|/|&|and)?\s*(?:{_NAME})){{0,5}}|{_ALL}|(?i:all|gentlemen|ladies))"
    r"\s*(?:[,:;–—]|--?|\s-)+\s*$"
)
"""Names alone before a comma, colon or dash: `Jeff/Brenda:`."""

_CLOSING_WORDS = (
    *("thanks", "thank you", "thx", "tks", "many thanks", "thanks? again", "thanks in advance", "thank you in advance"),
    *(
        "much thanks",
        "thanks so much",
        "thanks (?:very|so) much",
        "thanks all",
        "thanx",
        "thank you (?:very|so) much",
        "thanks a lot",
        "thanks for everything",
    ),
    *("best", "best regards", "best wishes", "all the best", "kind regards", "kindest regards", "warm regards"),
    *("warmest regards", "regards", "rgds", "sincerely", "sincerely yours", "yours(?: truly| sincerely| faithfully)?"),
    *("very truly yours", "respectfully", "cordially", "cheers", "love", "take care", "talk to you (?:soon|later)"),
    *("see you(?: soon| then| later| there)?", "have a (?:nice|good|great) (?:day|weekend|evening|one|trip)"),
    *("mit freundlichen grüßen", "mit freundlichen gruessen", "freundliche grüße", "viele grüße", "liebe grüße"),
    *("beste grüße", "schöne grüße", "herzliche grüße", "grüße", "gruß", "lg", "vg", "mfg", "danke", "vielen dank"),
    *(
        "cordialement",
        "bien cordialement",
        "bien à (?:toi|vous)",
        "amicalement",
        "merci",
        "merci (?:d'avance|beaucoup)",
    ),
    *("meilleures salutations", "sincères salutations", "à bientôt", "bises"),
    *("saludos", "un saludo", "saludos cordiales", "atentamente", "un abrazo", "gracias", "muchas gracias"),
    *("cordiali saluti", "distinti saluti", "saluti", "un saluto", "a presto", "grazie", "grazie mille"),
)
_CLOSINGS = "|".join(sorted(_CLOSING_WORDS, key=len, reverse=True)).replace(" ", r"\s+")
_THANKS = r"(?:many )?thank(?:s| you)(?: in advance)?(?: so much)? for (?:your|all|the) [\w ]{3,40}(?=[,!-])"
"""`Thanks for your patience,` as a closing; with a full stop it is a sentence."""
_CLOSING = re.compile(
    rf"^\s*(?i:{_CLOSINGS}|{_THANKS})(?:\s*(?:and|&|,|-|–|und)?\s*(?i:{_CLOSINGS}))?[\s,.!:;–—-]*"
    rf"(?:(?:{_NAME}[\s,.]*){{0,3}}|[a-z]{{1,8}}[.,]?)$"
)
_INLINE_CLOSING = re.compile(
    rf"^(?P<text>.*\S)(?:\s\s+|,\s+(?:and\s+)?(?=\w+,?\s+[A-Z]\w+$))"
    rf"(?P<closing>(?i:{_CLOSINGS}|{_THANKS})[,.!-]*(?:\s+{_NAME}){{0,2}})\s*$"
)
"""A closing at the end of the last line, after two spaces, where line breaks have been lost; or `…, thanks, Mary`."""
_INLINE_NAME = re.compile(rf"^(?P<text>.*[.!?)])\s\s+(?P<closing>{_NAME})\s*$")
_FOOTER = re.compile(
    r"\s*(?:Join the world.s largest e-?mail service|Get your FREE download of MSN|Do You Yahoo!\?|"
    r"(?:Send|Share) (?:and receive|your) .{3,40} (?:on|with) (?:MSN|your)|_{8,}\s*Get ).*$",
    re.IGNORECASE | re.DOTALL,
)
"""Advertisements that mail services append."""
_DELIMITER = re.compile(r"^\s*(?:--|—|_{2,}|-{2,}|\*{3,}|={3,})\s*$")
_SENT_FROM = re.compile(
    r"^\s*(?:sent from my|get outlook for|sent via|gesendet von meinem|von meinem .{2,20} gesendet|envoyé de mon|"
    r"enviado desde mi|inviato da(?:l mio)?)\b.*$",
    re.IGNORECASE,
)
_SIGNED = re.compile(
    rf"^\s*[-–—~*!]*\s*(?:{_NAME}|[A-Z]{{1,3}}|[xX]\d[\d-]{{3,}})(?:\s+(?:and\s+|&\s*)?(?:{_NAME}|[A-Z]\.?)){{0,3}}\s*[.,~*]*\s*(?:[:;=]-?[)D])?\s*$"
)
_FILE = re.compile(r"\.(?:docx?|xlsx?|pptx?|pdf|txt|zip)\b", re.IGNORECASE)
_EXTENSION = re.compile(r"^[xX]?\d[\d().-]{2,}$")
_LONE_NAME = re.compile(r"^\s*[a-z]{2,12}\s*$")
"""A name without a capital, alone at the end."""
_CONTACT = re.compile(
    r"(?:\+?\(?\d[\d().\s-]{6,}\d)|[\w.+-]+@[\w-]+\.\w+|https?://|www\.|\b(?:phone|tel|telefon|fax|mobile|cell|pager|"
    r"e-?mail|direct|office|ext)\b\.?\s*[:#]|^\s*(?:\d+\s+\w+\s+(?:street|st|avenue|ave|road|rd|suite|floor)\b)",
    re.IGNORECASE,
)
LONGEST_SIGNATURE = 10
"""Lines; a longer text after a closing is not a signature."""


class Letter(NamedTuple):
    """A letter as its four parts; each may be empty."""

    greeting: str
    body: str
    closing: str
    signature: str


def split_letter(text: str) -> Letter:
    """Split a mail without quotations into greeting, body, closing and signature.

    A greeting may share its line with the first sentence (`Hi Ann, could you …`).
    """
    lines = _FOOTER.sub("", text.replace("\r\n", "\n")).rstrip().split("\n")
    if found := _INLINE_CLOSING.match(lines[-1]) or _INLINE_NAME.match(lines[-1]):
        lines[-1:] = [found["text"], found["closing"]]
    greeting, start, rest = _find_greeting(lines)
    closing, end = _find_end(lines, start, begun=bool(rest))
    body = "\n".join([*([rest] if rest else []), *lines[start:end]]).strip()
    if not body and greeting and rest == "" and end <= start and not closing:
        body, greeting = greeting, ""  # nothing but `Hello Ann`: this is the message
    ending = "\n".join(lines[end:]).strip()
    signature = ending[len(closing) :].strip() if closing and ending.startswith(closing) else ending
    return Letter(greeting, body, closing, signature)


def _find_greeting(lines: list[str]) -> tuple[str, int, str]:
    """Return the greeting, the index of the first line after it, and the rest of its own line."""
    first = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    if first == len(lines):
        return "", first, ""
    line = lines[first]
    if _GREETING.match(line) or _ADDRESS.match(line):
        return line.strip(), first + 1, ""
    inline = _INLINE.match(line)
    if inline and inline["rest"].strip():
        return inline["greeting"].strip(), first + 1, inline["rest"].strip()
    return "", first, ""


_STARTERS = (
    *("thanks", "thank", "can", "could", "would", "will", "please", "i", "i'm", "i've", "we", "do", "did", "are", "is"),
    *(
        "have",
        "has",
        "here",
        "just",
        "per",
        "as",
        "attached",
        "what",
        "when",
        "how",
        "if",
        "in",
        "to",
        "for",
        "fyi",
        "let",
    ),
    *("sorry", "good", "great", "hope", "see", "there", "this", "the", "my", "you", "it", "not", "any", "per", "where"),
)
"""Words that begin a sentence after a name and a comma."""
_ADDRESSED = rf"(?!(?i:{'|'.join(_NOT_NAMES)})\b)(?![A-Z]{{3,}}\b)(?:(?i:{_TITLES})\s+)?{_NAME}"
_INLINE = re.compile(
    rf"^\s*(?P<greeting>(?:(?i:{'|'.join(_GREETING_WORDS)})\b[ ,]*(?:(?i:{_TITLES})\s+)?"
    rf"(?:(?:{_NAME}|(?i:{_ALL}))(?:\s*(?:,|/|&|and|und)\s*(?:{_NAME}))*(?:\s+{_NAME}){{0,5}}"
    rf"|\w+(?: \w+){{0,2}}(?=\s*[,:-]))?"
    rf"\s*(?:[,:;!.–—]|--|\s-\s|-\s|\s\s)"
    rf"|(?i:{_ALL}|gentlemen|ladies)\s*(?:[,:;!–—]|--|\s-\s|-\s\s)"
    rf"|{_ADDRESSED}(?:\s*(?:[/&,]|and)\s*{_NAME})*(?:\s+{_NAME})?"
    rf"\s*(?:[:;]|--|\s-\s|-\s\s|[,.;:]\s\s|\s\s(?=[A-Z]\w*\s+[a-z]))"
    rf"|{_ADDRESSED}(?:\s*(?:[/&]|and)\s*{_NAME})*\s*"
    rf"(?:,(?=\s+[A-Z](?!\w+ and\b))|,(?=\s+(?:{'|'.join(_STARTERS)})\b)|-(?=\s+[A-Z])))"
    rf"[,:;!.\s–—-]*)(?P<rest>.*)$"
)
"""`Hi Ann, …`, `Phillip;  Could you …`, `Jeff/Brenda:  Please …`, `Jim, thanks for …`."""


def _find_end(lines: list[str], start: int, *, begun: bool) -> tuple[str, int]:
    """Return the closing, and the index of the first line that is not part of the body.

    `begun` says that the body has begun already, on the line of the greeting.
    """
    last = len(lines)
    while last > start and not lines[last - 1].strip():
        last -= 1
    for index in range(max(start, last - LONGEST_SIGNATURE), last):
        line = lines[index]
        if _DELIMITER.match(line) and index > start:
            return _step_back(lines, start, index)
        if (begun or index > start) and _CLOSING.match(line) and _is_signature(lines[index + 1 : last]):
            return line.strip(), index
    return _step_back(lines, start, _unsigned_end(lines, start, last))


def _step_back(lines: list[str], start: int, end: int) -> tuple[str, int]:
    """Return the closing in front of a signature that begins at `end`, and where the body ends."""
    index = end
    while index > start and not lines[index - 1].strip():
        index -= 1
    if index > start and _CLOSING.match(lines[index - 1]):
        return lines[index - 1].strip(), index - 1
    if index - 1 > start and _SIGNED.match(lines[index - 1]) and _CLOSING.match(lines[index - 2]):
        return lines[index - 2].strip(), index - 2
    return "", end


def _unsigned_end(lines: list[str], start: int, last: int) -> int:
    """Return where a signature without a closing begins: names and contact lines at the very end."""
    index = last
    while index > start + 1 and last - index < LONGEST_SIGNATURE:
        line = lines[index - 1]
        alone = index == last and _LONE_NAME.match(line) and lines[index - 2].rstrip().endswith((".", "!", "?"))
        if line.strip() and not (alone or _SENT_FROM.match(line) or _SIGNED.match(line) or _is_contact(line)):
            break
        index -= 1
    while index < last and not lines[index].strip():
        index += 1
    return index


def _is_contact(line: str) -> bool:
    """Return whether a line holds contact details, or a name with a title or an extension."""
    words = line.split()
    if len(line) >= 120 or line.rstrip()[-1] in ".!?" or _FILE.search(line):
        return False
    if len(line) < 80 and _CONTACT.search(line):
        return True
    capitals = sum(word[0].isupper() or _EXTENSION.match(word) is not None for word in words)
    has_title = len(words) <= 5 or "," in line or _EXTENSION.match(words[-1]) is not None
    begins = _SIGNED.match(" ".join(words[: 1 if len(words) == 2 else 2])) is not None
    return 2 <= len(words) <= 12 and has_title and begins and capitals >= 0.75 * len(words)


def _is_signature(lines: list[str]) -> bool:
    """Return whether lines after a closing look like a signature: few and short, without sentences."""
    content = [line for line in lines if line.strip()]
    if len(content) > LONGEST_SIGNATURE:
        return False
    return all(len(line) < 80 and not _is_sentence(line) for line in content)


def _is_sentence(line: str) -> bool:
    """Return whether a line reads as a sentence of the body: many words and a final mark, and no contact details."""
    words = line.split()
    return len(words) > 5 and line.rstrip()[-1] in ".!?" and not _CONTACT.search(line) and not _SENT_FROM.match(line)
