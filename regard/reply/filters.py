"""What may never become a response: personal data, offensive words, and texts that only fit one conversation."""

import re

_OFFENSIVE = (
    *(
        "arse",
        "ass",
        "asses",
        "asshole",
        "bastard",
        "bitch",
        "bitches",
        "bloody",
        "bollocks",
        "bullshit",
        "crap",
        "cunt",
    ),
    *("damn", "dammit", "dick", "dumbass", "fag", "faggot", "fuck", "fucked", "fucker", "fucking", "fuckin", "goddamn"),
    *(
        "hell",
        "jackass",
        "motherfucker",
        "nigga",
        "nigger",
        "piss",
        "pissed",
        "porn",
        "prick",
        "pussy",
        "rape",
        "raped",
    ),
    *("retard", "retarded", "shit", "shitty", "shut up", "slut", "sucks", "tits", "tranny", "twat", "wanker", "whore"),
    *("kill", "killed", "idiot", "moron", "stupid", "dumb", "hate you", "sexy", "sex", "nude", "naked", "wtf", "stfu"),
    *("arschloch", "scheiße", "scheisse", "merde", "putain", "connard", "mierda", "puta", "cabrón", "stronzo", "cazzo"),
)
_OFFENSIVE_PATTERN = re.compile(rf"\b(?:{'|'.join(map(re.escape, _OFFENSIVE))})\b", re.IGNORECASE)
_PERSONAL = re.compile(r"<(?:name|email|phone|url|date|time|number)>|@|\d")
_INTIMATE = re.compile(
    r"\b(?:love you|miss you|kiss(?:es)?|xoxo|hugs?|darling|sweetheart|honey|babe|baby)\b", re.IGNORECASE
)


def refusal(normal: str) -> str | None:
    """Return why a reply in its normal form must not be suggested; `None` if it may."""
    if _PERSONAL.search(normal):
        return "it contains a name, a number or an address"
    if _OFFENSIVE_PATTERN.search(normal):
        return "it contains an offensive word"
    if not any(map(str.isalpha, normal)):
        return "it has no letters"
    return None


def is_intimate(text: str) -> bool:
    """Return whether a text belongs between people who are close: suggested only where the message is intimate too."""
    return _INTIMATE.search(text) is not None
