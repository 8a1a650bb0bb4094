"""The parts of a letter: greeting, body, closing and signature.

The lists cover English, German, French, Spanish and Italian business mail.
"""

import re
from functools import cache
from typing import NamedTuple

from regard.reply.boundaries import find_ending, find_scored_greeting, score_ending_line
from regard.reply.greetings import NAME, find_greeting, given_name

_CLOSING_WORDS = (
    r"(?:with )?(?:many )?thanks|thank you|thx|tks|thanx|much thanks|thanks? (?:once |yet )?again|thanks once more|"
    r"(?:thanks|thank you|thanking you) in advance|thanks (?:very|so) much|thank you (?:very|so) much|"
    r"thanks a (?:lot|million|bunch|ton)|thanks all|thanks (?:everyone|guys)|thanks for everything|thank you again|"
    r"best|best regards|best wishes|best of luck|good luck|all the best|with best|(?:lots of )?love(?: and prayers?)?|"
    r"(?:my )?(?:kind|kindest|warm|warmest|good|best personal|personal) regards|"
    r"(?:best )?regards to (?:all|everyone|you all)|"
    r"with (?:best|kind|warm) regards|regards|b?rgds|sincerely|sincerely yours|very truly yours|"
    r"yours(?: very)?(?: truly| sincerely| faithfully)?|respectfully(?: yours| submitted)?|cordially|cheers|"
    r"take care|take it easy|bye|bye for now|"
    r"(?:talk|speak) (?:to|with) you (?:soon|later|then|tomorrow|tonight|\w+day)|"
    r"talk (?:to (?:all|ya) )?(?:soon|later)|"
    r"see you(?: all)?(?: soon| then| later| there| tomorrow| tonight| around| on \w+day| \w+day)?|have fun|enjoy|"
    r"see ya|chat soon|more later|(?:until|till) (?:then|later|tomorrow)|lat(?:e|ers?)(?=[,!-])|"
    r"later (?:dudes?|guys|all|y'all)|adi[oó]s(?: amigos?)?|"
    r"hasta (?:luego|la vista|mañana)|(?:muchos )?besos|(?:\w+ )?hugs(?:(?: and|,)(?: \w+){0,2} kisses)?|xoxo?|"
    r"ciao|tschüs|tschüss|bis (?:bald|dann|später)|"
    r"have a (?:very )?(?:nice|good|great|wonderful|safe|happy|fun|terrific) "
    r"(?:day|week|weekend|evening|night|afternoon|one|trip|vacation|holidays?|summer|time)|"
    r"your (?:\w+ )?(?:pal|friend|buddy|brother|sister|cousin|son|daughter|mother|father|mom|dad|colleague|neighbou?r)|"
    r"happy (?:holidays|thanksgiving|easter|new year)|merry christmas|"
    r"mit freundlichen grüßen|mit freundlichen gruessen|freundliche grüße|viele grüße|liebe grüße|beste grüße|"
    r"schöne grüße|herzliche grüße|grüße|gruß|lg|vg|mfg|danke|vielen dank|"
    r"cordialement|bien cordialement|bien à (?:toi|vous)|amicalement|merci|merci (?:d'avance|beaucoup)|"
    r"meilleures salutations|sincères salutations|à bientôt|bises|"
    r"saludos|un saludo|saludos cordiales|atentamente|un abrazo|gracias|muchas gracias|"
    r"cordiali saluti|distinti saluti|saluti|un saluto|a presto|grazie|grazie mille"
)
_CLOSINGS = rf"(?:{_CLOSING_WORDS})(?!\w)".replace(" ", r"\s+")
_UNMISTAKABLE = (
    r"(?:(?:my |with )?(?:kind|kindest|warm|warmest|best)\s+(?:regards|wishes)|regards|b?rgds|sincerely(?: yours)?|"
    r"yours\s+(?:very\s+)?(?:truly|sincerely|faithfully)|respectfully(?: yours| submitted)?)"
)
"""Closings that are not words of a sentence, so that they may follow it after one space."""
_THANKS = (
    r"(?:(?:many )?thank(?:s| you)(?: in advance)?(?: (?:so|very) much)? for (?:your|all|the) [\w ]{3,40}|"
    r"thank(?:s| you) for everything|best wishes for [\w ]{3,40})(?=[,!-])"
)
"""`Thanks for your patience,` as a closing; with a full stop it is a sentence."""
_NUMBER = r"\(?(?:[xX]|[Ee]xt\.?)?\s?\d(?: \d{4,5}|[\d().-]{2,})"
"""A telephone number or extension: `x35816`, `(3-9166)`."""
_BROKEN_NUMBER = re.compile(r"(\b[Ee]xt\.)\n(?=\d{3,6}\s*$)")
"""An extension that sentence segmentation has put on a line of its own."""
_BROKEN_MARKS = re.compile(r"(?<=[!?])\s*\n(?=[!?]+1?\s*$)")
"""Exclamation marks that sentence segmentation has put on a line of their own."""
_LONG_SPACE = re.compile(r"[^\S\n]{9,}")
"""White space that would make the search for two spaces slow."""
_ENCODED = re.compile(r"(?:\s*=(?:09|20))+\Z|^(?:=(?:09|20)\s+)+(?=[A-Z])", re.MULTILINE)
"""White space of a transfer encoding that was not decoded."""
_CLOSING = re.compile(
    rf"^\s*(?i:{_CLOSINGS}|{_THANKS})(?:\s*,?\s*(?:and|&|-|–|und)?\s*(?i:{_CLOSINGS}))?[\s,.!:;–—-]*"
    rf"(?:(?:{NAME}[\s,.!]*){{0,4}}(?:{_NUMBER})?|[a-z]{{1,8}}[.,]?(?:\s+{_NUMBER})?)\s*(?:[:;=]-?[)D])?\s*$"
)
_INLINE_CLOSING = re.compile(
    rf"^(?P<text>.*?\S)(?:\s\s+|,\s+(?:and\s+)?(?=\w+,?\s+[A-Z]\w+$))"
    rf"(?P<closing>(?i:{_CLOSINGS}|{_THANKS})[,.!-]*(?:\s+{NAME}){{0,3}}(?:\s+{_NUMBER})?)\s*$"
)
"""A closing at the end of the last line, after two spaces, where line breaks have been lost; or `…, thanks, Mary`."""
_AFTER_SENTENCE = re.compile(
    rf"^(?P<text>.*(?:[.!?)]|\w,(?=\s(?i:thanks|thank you|thx))))[\s-](?P<closing>(?i:{_CLOSINGS})[,.!-]*)\s*$"
)
"""`Let me know if you have questions. Thanks.`, in front of a signature."""
_FORMAL = rf"(?i:{_UNMISTAKABLE})(?:[,.!-]*|,(?:\s+(?:{NAME}|and|of|&)){{1,8}})"
_FORMAL_CLOSING = re.compile(rf"^(?P<text>.*?\S)\s(?P<closing>{_FORMAL})\s*$")
_FORMAL_LINE = re.compile(rf"^\s*{_FORMAL}\s*$")
_GLUED_CLOSING = re.compile(
    rf"^(?P<text>.*(?:[.!?]|[\w)],\s))(?P<closing>(?i:thanks|thank you|thx)[,.!]*(?:\s+{NAME})?)\s*$"
)
"""`Please let me know...Thanks!`"""
_THANKS_NAME = re.compile(
    rf"^(?P<text>.*\w[,.!?]?)\s+(?:and\s+)?(?P<closing>(?i:thanks|thank you|thx),\s+(?:{NAME}|[a-z]{{2,12}})"
    rf"(?:\s+{NAME})?(?:\s+{_NUMBER})?)\s*$"
)
"""`Please advise, and thanks, Mary x37796`."""
_TITLE = (
    r"(?:Director|Manager|President|Counsel|Attorney|Analyst|Associate|Assistant|Administrator|Coordinator|Specialist|"
    r"Officer|Secretary|Engineer|Consultant|Phone|Tel|Fax)\b"
)
_INLINE_NAME = re.compile(
    rf"^(?P<text>.*(?:[.!?)]|\b(?:questions|comments|concerns|know|soon|call|asap|advise|problems)))\s\s+(?P<closing>{NAME}(?:\s+{NAME})?)\s*$"
)
_DASHED_NAME = re.compile(rf"^(?P<text>.*[.!?)])\s+(?P<closing>--\s?{NAME}(?:\s+{NAME})?)\s*$")
_DASHED_LOWER_NAME = re.compile(r"^(?P<text>.*\w\s*-)\s\s+(?P<closing>[a-z]{2,10})\s*$")
"""`We thought about you -   kim`."""
_UNFINISHED = re.compile(
    r"(?:[:;&/-]|\b(?:and|or|with|to|by|from|for|of|the|an?|is|are|was|as|at|in|on|mr|ms|mrs|dr|via|per|about|contact|"
    r"call|(?-i:[A-Z]))\.?)$",
    re.IGNORECASE,
)
"""Words after which a sentence goes on."""
_FILES = r"\.(?:docx?|dot|rtf|wpd|xlsx?|csv|mdb|pptx?|pdf|txt|zip|tiff?|jpe?g|gif|bmp|html?|vcf)\b"
_FOOTERS = (
    re.compile(
        r"(?:Join the world.s largest e-?mail service|Get your FREE download of MSN|Do You Yahoo!\?|"
        r"(?:Send|Share) (?:and receive|your) .{3,40} (?:on|with) (?:MSN|your)|(?<!_)_{8,}\s{0,9}Get )",
        re.IGNORECASE,
    ),
    re.compile(
        r"(?<![\w<])(?:this|the information (?:contained )?in this) (?:e-?mail|message|transmission)"
        r"\b[^.]{0,200}\b(?:confidential|privileged|intended (?:only|solely)|property of)\b(?=.{0,1500}$)",
        re.IGNORECASE | re.DOTALL,
    ),
    re.compile(r"^[^\n@]{2,60}<[\w.+-]+@[\w.-]+> on \d{1,2}/\d{1,2}/\d{2,4} [\d: ]+[AP]M\s*$", re.MULTILINE),
)
"""The beginnings of advertisements that mail services append, of confidentiality notices and of quoted mails."""
_SEE_ATTACHED = r"(?:\(See attached file: [^)\n]*\)\s{0,9})"
_ATTACHMENTS = re.compile(
    rf"(?:{_SEE_ATTACHED}+|{_SEE_ATTACHED}*(?:(?<=\s)-\s\S[^\n]{{0,60}}?{_FILES}\s{{0,9}})+|(?<=\s\s)-\s[\w.&-]{{6,60}}\s{{0,9}}|(?:<<[^>\n]*>>\s{{0,9}})+)$",
    re.IGNORECASE,
)
"""The list of attachments that a program has appended."""
_LONGEST_LIST = 600
"""Characters of a list of attachments."""
_POSTSCRIPT = re.compile(r"(?<=\S)\s+(?:P\.\s?S\.|PS[:,.]|PS\s*-|p\.s\.|ps:)(?=\s)")
"""What follows a signature and belongs to the body."""
_DELIMITER = re.compile(r"^\s*(?:--|—|_{2,}|-{2,}|\*{3,}|={3,})\s*$")
_SENT_FROM = re.compile(
    r"^\s*(?:sent from my|get outlook for|sent via|sent on behalf of|gesendet von meinem|von meinem .{2,20} gesendet|"
    r"envoyé de mon|enviado desde mi|inviato da(?:l mio)?)\b.*$",
    re.IGNORECASE,
)
_SIGNED = re.compile(
    rf"^\s*(?!(?i:call|please|see|let|deal|note|link|queue|click|download|phone|if)\b)"
    rf"(?!\w+ \d{{4}}\W*$)(?!\(.*[^)]$)[-–—~*!(]*\s*"
    rf"(?:{NAME}|[A-Z]{{1,3}}|[xX]\d[\d-]{{3,}})(?:,?\s+(?:and\s+|&\s*)?(?:{NAME}|[A-Z]\.?)){{0,3}}"
    rf"\s*[.,~*)]*\s*(?:[:;=]\s*-?\s*[)D]|{_NUMBER})?\s*$"
)
_NO_NAME = re.compile(
    r"(?:ugh|wow|yes|no|ok|okay|sorry|done|great|cool|nice|hmm|oh|sigh|help|anyway|yikes|ouch|yippee|hooray|whatever|etc|enjoy|please|"
    r"later|now|soon|today|january|february|march|april|may|june|july|august|september|october|november|december|the|a|an|and|or|but|so|in|on|at|to|for|of|if|we|you|it|this|that|these|those|our|your|my|nnnn|fyi)\W*$",
    re.IGNORECASE,
)
"""Words that are no signature, alone on the last line."""
_FILE = re.compile(_FILES, re.IGNORECASE)
_EXTENSION = re.compile(rf"^{_NUMBER}$")
_LONE_NAME = re.compile(r"^\s*(?:-{2,}\s?)?(?:[a-z]{1,12}|[a-z]{1,2}\.)\s*$")
"""A name without a capital, alone at the end."""
_CONTACT = re.compile(
    r"(?:\+?\(?\d[\d().\s-]{6,}\d)|[\w.+-]+@[\w-]+\.\w+|https?://|www\.|\b(?:phone|tel|telefon|fax|mobile|cell|pager|"
    r"e-?mail|direct|office|ext)\b\.?\s*[:#]|^\s*(?:\d+\s+\w+\s+(?:street|st|avenue|ave|road|rd|suite|floor)\b)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\b[A-Z]\w+,? (?:[A-Z]{2}|[A-Z][a-z]+),? \d{5}\b|\b\d{3}[-.)] ?\d{3}[-.]\d{4}\b|\S@\w")
"""A town with a postal code, a telephone number or a mail address."""
_HEADING = re.compile(r"\w:\s*$")
"""The end of a line that something follows."""
_HEADER = re.compile(
    r"^\s*(?:sender|subject|to|from|date|when|where|place|location|time|dial-?in|call-?in)\b.*:", re.IGNORECASE
)
"""A line of a form, which is not a signature."""
LONGEST_SIGNATURE = 10
"""Lines; a longer text after a closing is not a signature."""


MOST_WORDS = 6
"""Words of a closing that is known by its comma only: `Forever in your debt,`."""
_REQUEST = re.compile(r"\b(?:please|pls|call|let|know|advise|questions?|send|if|when)\b", re.IGNORECASE)
"""Words of a last sentence whose comma stands in front of a name."""
LEAST_SCORE = -2.0
"""Lines with this score or less are no signature."""


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
    text = _LONG_SPACE.sub(" " * 8, text)
    if postscript := _POSTSCRIPT.search(text):
        letter = split_letter(text[: postscript.start()])
        return letter._replace(body=f"{letter.body}\n{text[postscript.start() :].strip()}")
    text = _BROKEN_MARKS.sub("", text)
    lines = _remove_footers(_BROKEN_NUMBER.sub(r"\1 ", _ENCODED.sub("", text.replace("\r\n", "\n")))).split("\n")
    lines[-1:] = _split_last_line(lines[-1])
    if len(lines) > 1 and _SIGNED.match(lines[-1]):
        lines[-2:-1] = _split_closing(lines[-2])
    greeting, start, rest = find_greeting(lines)
    if not greeting and start < len(lines) and (scored := _score_first(lines, start)):
        (greeting, rest), start = scored, start + 1
    closing, end = _find_end(lines, start, begun=bool(rest))
    if not closing and _is_text(lines[end:]):
        end = len(lines)
    body = "\n".join([*([rest] if rest else []), *lines[start:end]]).strip()
    if not body and greeting and rest == "" and end <= start and not closing:
        body, greeting = greeting, ""  # nothing but `Hello Ann`: this is the message
    ending = "\n".join(lines[end:]).strip()
    signature = ending[len(closing) :].strip() if closing and ending.startswith(closing) else ending
    if (cut := find_ending(body, closed=bool(closing))) < len(body):
        body, signature, closing = body[:cut].rstrip(), f"{body[cut:]}\n{ending}".strip(), ""
    return Letter(greeting, body, closing, signature)


def _score_first(lines: list[str], start: int) -> tuple[str, str] | None:
    """Return the greeting of the first line and its rest, if the score of its words is high enough."""
    return find_scored_greeting(lines[start], alone=any(line.strip() for line in lines[start + 1 :]))


def _is_text(lines: list[str]) -> bool:
    """Return whether lines that the rules take for a signature read as a table, a programme or a sentence."""
    if lines and re.match(rf"\s*(?i:{_CLOSINGS})", lines[0]):
        return False
    return sum(score_ending_line(line) for line in lines if not _SENT_FROM.match(line)) <= LEAST_SCORE


def _remove_footers(text: str) -> str:
    """Return a text without what programs append to it."""
    text = text.rstrip()
    for footer in _FOOTERS:
        if (found := footer.search(text)) and found.start():
            text = text[: found.start()].rstrip("* \t\n")
    found = _ATTACHMENTS.search(text, max(0, len(text) - _LONGEST_LIST))
    return text[: found.start()].rstrip() if found and found.start() else text


def _split_last_line(line: str) -> list[str]:
    """Return the last line, and on a line of its own the closing or signature that it ends with."""
    if _is_closing(line):
        return [line]
    for pattern in (
        _INLINE_CLOSING,
        _FORMAL_CLOSING,
        _GLUED_CLOSING,
        _THANKS_NAME,
        _INLINE_NAME,
        _DASHED_NAME,
        _DASHED_LOWER_NAME,
    ):
        if found := pattern.match(line):
            return [found["text"], found["closing"]]
    found = _given_name_last().match(line)
    return [found["text"], found["closing"]] if found and not _UNFINISHED.search(found["text"]) else [line]


def _split_closing(line: str) -> list[str]:
    """Return the line in front of a signature, and on a line of its own the closing that it ends with."""
    found = None if _is_closing(line) else _INLINE_CLOSING.match(line) or _AFTER_SENTENCE.match(line)
    return [found["text"], found["closing"]] if found else [line]


@cache
def _given_name_last() -> re.Pattern[str]:
    """Return the pattern of a line that ends with a given name after two spaces or dashes: `… at noon  Chris`."""
    with_title = rf"(?:-\s)?{given_name()}(?:\s+{NAME}){{1,2}},?\s+(?:\S+\s+){{0,2}}{_TITLE}.{{0,160}}"
    signed = rf"(?:--\s?)?{given_name()}(?:\s+{NAME})?|{with_title}"
    between = r"(?:\s\s+|\s+(?=--|-\s)|(?<=\.\.\.)|(?<=[a-z]{3},)\s+)"
    return re.compile(
        rf"^(?P<text>.{{15,}}?\S){between}(?P<closing>{signed}|(?<=\.)(?i:{given_name()})(?:\s+{NAME})?)\s*$"
    )


def _find_end(lines: list[str], start: int, *, begun: bool) -> tuple[str, int]:
    """Return the closing, and the index of the first line that is not part of the body.

    `begun` says that the body has begun already, on the line of the greeting.
    """
    last = len(lines)
    while last > start and not lines[last - 1].strip():
        last -= 1
    for index in range(max(start, last - LONGEST_SIGNATURE), last):
        line = lines[index]
        if _DELIMITER.match(line) and index > start and index + 1 < last:
            return _step_back(lines, start, index)
        if (begun or index > start) and _is_closing(line) and _is_signature(lines[index + 1 : last]):
            return line.strip(), index
    return _step_back(lines, start, _unsigned_end(lines, start, last))


def _step_back(lines: list[str], start: int, end: int) -> tuple[str, int]:
    """Return the closing in front of a signature that begins at `end`, and where the body ends."""
    index = end
    while index > start and not lines[index - 1].strip():
        index -= 1
    if index > start and (
        _is_closing(lines[index - 1]) or (start + 1 < index < len(lines) and _is_clause(lines[index - 1]))
    ):
        return lines[index - 1].strip(), index - 1
    if index - 1 > start and _SIGNED.match(lines[index - 1]) and _is_closing(lines[index - 2]):
        return lines[index - 2].strip(), index - 2
    return "", end


def _is_closing(line: str) -> bool:
    """Return whether a line is a closing, perhaps with the name of the writer."""
    return _CLOSING.match(line) is not None or _FORMAL_LINE.match(line) is not None


def _is_clause(line: str) -> bool:
    """Return whether a line is a few words with a comma, which close a letter in front of a signature."""
    return len(line.split()) <= MOST_WORDS and line.rstrip().endswith(",") and not _REQUEST.search(line)


def _unsigned_end(lines: list[str], start: int, last: int) -> int:
    """Return where a signature without a closing begins: names and contact lines at the very end."""
    index = last
    while index > start + 1 and last - index < LONGEST_SIGNATURE:
        line = lines[index - 1]
        if line.lstrip().startswith("-") and lines[index - 2].rstrip().endswith(('"', "”")):
            break  # the author of a quotation
        alone = index == last and _LONE_NAME.match(line) and lines[index - 2].rstrip().endswith((".", "!", "?", "-"))
        if _is_exclamation(line) or ("\t" in line.strip() and not _CONTACT.search(line)):
            break
        if line.strip() and not (alone or _SENT_FROM.match(line) or _SIGNED.match(line) or _is_contact(line)):
            break
        index -= 1
    while index < last and not lines[index].strip():
        index += 1
    only_contact = all("@" in line and len(line.split()) == 1 for line in lines[index:last] if line.strip())
    return last if only_contact else index


def _is_exclamation(line: str) -> bool:
    """Return whether a line has capitals and is no name: `Ugh.`, `The`, `PRINCIPAL EARTHQUAKE PARAMETERS`."""
    words = line.split()
    if len(words) == 1:
        return _NO_NAME.match(words[0]) is not None
    shouted = line.isupper() and all(len(word) > 3 and word.isalpha() for word in words)
    return line.rstrip().endswith(":") or (shouted and re.match(given_name(), words[0].capitalize()) is None)


def _is_contact(line: str) -> bool:
    """Return whether a line holds contact details, or a name with a title, an extension or an address."""
    words = line.split()
    if line.rstrip()[-1] in ".!?:>" or _FILE.search(line) or _HEADER.match(line):
        return False
    if sum(word[0].islower() for word in words) > max(2, len(words) / 2) or (line.isupper() and len(words) > 5):
        return False
    if len(line) < 80 and _CONTACT.search(line):
        return True
    capitals = sum(word[0].isupper() or word[0].isdigit() or word[0] in "&|/(" for word in words)
    has_title = len(words) <= 5 or "," in line or _EXTENSION.match(words[-1]) is not None or "@" in line
    has_title = has_title or re.search(rf"\b{_TITLE}", line) is not None
    begins = _SIGNED.match(" ".join(words[: 1 if len(words) == 2 else 2])) is not None
    longest = 30 if _ADDRESS.search(line) else 12
    return 2 <= len(words) <= longest and has_title and begins and capitals >= 0.75 * len(words)


def _is_signature(lines: list[str]) -> bool:
    """Return whether lines after a closing look like a signature: few and short, without sentences."""
    content = [line for line in lines if line.strip()]
    if len(content) > LONGEST_SIGNATURE:
        return False
    return all(len(line) < 80 and not _is_sentence(line) and not _HEADING.search(line) for line in content)


def _is_sentence(line: str) -> bool:
    """Return whether a line reads as a sentence of the body: lower-case words and a final mark, no contact details."""
    words = line.split()
    if line.rstrip()[-1] not in ".!?" or _CONTACT.search(line) or _SENT_FROM.match(line):
        return False
    return len(words) > 5 or (len(words) > 2 and sum(word[0].islower() for word in words) > len(words) / 2)
