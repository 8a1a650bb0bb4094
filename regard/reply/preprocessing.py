"""From a raw message to the text that a model reads, and from a raw reply to its normal form."""

import re

from regard.reply.letters import split_letter
from regard.reply.placeholders import replace_entities
from regard.reply.quotations import remove_quotations
from regard.text.sentences import sentences

MOST_CHARACTERS = 1500
"""Of a message; what a short reply answers is in the first or the last sentences of a long one."""
LONGEST_MESSAGE = 20_000
"""Characters; nobody answers a longer message with a short reply, and only its beginning and end are cleaned."""
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "`": "'", "“": '"', "”": '"'})
_END = re.compile(r"[\s.!?,;:…~]+$")


def join_lines(text: str) -> str:
    """Return a text on one line, with straight quotation marks."""
    return " ".join(text.translate(_APOSTROPHES).split())


def clean_chat(text: str) -> str:
    """Return a chat message as the model reads it: on one line, with placeholders for entities."""
    text = join_lines(_cut(text))
    return _shorten(replace_entities(text, names=text != text.lower()))


def clean_mail(text: str) -> str:
    """Return the text of a mail as the model reads it: its body, without quotations, greeting and signature."""
    return clean_chat(split_letter(_cut(remove_quotations(text))).body)


def normalise_response(text: str) -> str:
    """Return the normal form of a reply, by which replies are counted and scored.

    It is in lower case and on one line, without final punctuation: `Why not?!` and `why not` are the same reply.
    """
    return _END.sub("", clean_chat(text).lower())


def _cut(text: str) -> str:
    """Return the beginning and the end of a text that is longer than messages are, so that cleaning takes no time."""
    half = LONGEST_MESSAGE // 2
    if len(text) <= LONGEST_MESSAGE:
        return text
    begin, end = text[:half].rsplit(None, 1) or [""], text[-half:].split(None, 1) or [""]
    return f"{begin[0]}\n{end[-1]}"  # whole words


def _shorten(text: str) -> str:
    """Return the first and the last sentences of a text that is too long."""
    if len(text) <= MOST_CHARACTERS:
        return text
    pieces = [piece.text.strip() for piece in sentences(text)]
    first, last = "", ""
    while pieces and len(first) + len(last) + len(pieces[-1]) < MOST_CHARACTERS:
        last = f"{pieces.pop()} {last}".strip()
        if pieces and len(first) + len(last) + len(pieces[0]) < MOST_CHARACTERS // 2:
            first = f"{first} {pieces.pop(0)}".strip()
    return f"{first} {last}".strip() or text[-MOST_CHARACTERS:]
