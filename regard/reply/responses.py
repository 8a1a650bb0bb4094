"""The response set: the only texts that may be suggested, in a file that people edit (`responses.yaml`)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from regard.foundation import durable
from regard.foundation.errors import RegardError
from regard.reply.conversations import Exchange
from regard.reply.filters import refusal
from regard.reply.preprocessing import normalise_response

LONGEST = 10
"""Words of a response."""
POLARITIES = ("positive", "negative", "neutral")
HEADER = """\
# The responses that may be suggested. Nothing else is ever suggested: edit this file freely.
#   text      as it is shown
#   intent    at most one response of an intent is suggested for a message
#   polarity  positive, negative or neutral: two positive suggestions are accompanied by a negative one, and conversely
#   count     in how many conversations it was seen; for your information
"""


@dataclass(frozen=True)
class Response:
    """A text that may be suggested."""

    text: str
    intent: str
    polarity: str = "neutral"
    count: int = 0

    @property
    def normal(self) -> str:
        """The normal form, which is scored."""
        return normalise_response(self.text)


@dataclass(frozen=True)
class Candidate:
    """A reply that was seen often enough, before it has an intent."""

    text: str
    """Its most common spelling."""
    normal: str
    count: int
    """The number of conversations in which it was seen."""


def collect_responses(exchanges: Iterable[Exchange], least: int) -> list[Candidate]:
    """Return the replies that were seen in at least `least` conversations, most frequent first.

    Replies with placeholders, personal data or offensive words are left out (`regard.reply.filters`).
    """
    conversations: dict[str, set[int]] = defaultdict(set)
    spellings: dict[str, Counter[str]] = defaultdict(Counter)
    for exchange in exchanges:
        if len(exchange.reply.split()) > LONGEST:
            continue
        normal = normalise_response(exchange.reply)
        if normal:
            conversations[normal].add(exchange.conversation)
            spellings[normal][exchange.reply] += 1
    found = [
        Candidate(_display(spellings[normal]), normal, len(where))
        for normal, where in conversations.items()
        if len(where) >= least and refusal(normal) is None
    ]
    return sorted(found, key=lambda one: (-one.count, one.normal))


def _display(spellings: Counter[str]) -> str:
    """Return the most common spelling, with a capital at its beginning and a mark at its end."""
    text = min(spellings, key=lambda spelling: (-spellings[spelling], spelling))
    text = text[:1].upper() + text[1:]
    text = text.replace(" i ", " I ").replace(" i'", " I'")
    return text if text[-1] in ".!?" else f"{text}."


def write_responses(path: Path, responses: Sequence[Response]) -> None:
    """Write a response set."""
    rows = [asdict(response) for response in responses]
    content = yaml.safe_dump(rows, sort_keys=False, allow_unicode=True, width=1000)
    durable.write(path, HEADER + content)


def read_responses(path: Path) -> list[Response]:
    """Read a response set; an entry that cannot be used is named with its number."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RegardError(f"{path} does not exist. `regard reply build` writes it.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())[:200]
        raise RegardError(f"{path} cannot be read ({reason}). Correct the file.") from None
    if not isinstance(found, list) or not found:
        raise RegardError(f"{path} has no responses. Write a list of entries with `text` and `intent`.")
    responses = [_read_entry(entry, f"{path}, entry {number}") for number, entry in enumerate(found, start=1)]
    seen: dict[str, str] = {}
    for response in responses:
        if response.normal in seen:
            raise RegardError(f"{path} has {response.text!r} twice (also as {seen[response.normal]!r}). Remove one.")
        seen[response.normal] = response.text
    return responses


def _read_entry(entry: Any, place: str) -> Response:
    if (
        not isinstance(entry, dict)
        or not isinstance(entry.get("text"), str)
        or not isinstance(entry.get("intent"), str)
    ):
        raise RegardError(
            f"{place} needs `text` and `intent`, both of them texts. Add quotes around yes, no and numbers."
        )
    unknown = sorted(map(str, set(entry) - {"text", "intent", "polarity", "count"}))
    if unknown:
        raise RegardError(f"{place} has the unknown field {unknown[0][:40]}. Remove it.")
    polarity, count = entry.get("polarity", "neutral"), entry.get("count", 0)
    if polarity not in POLARITIES:
        raise RegardError(f"{place}: polarity must be one of {', '.join(POLARITIES)}, not {str(polarity)[:40]}.")
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise RegardError(f"{place}: count must be a number from 0, not {str(count)[:40]}.")
    if not normalise_response(entry["text"]):
        raise RegardError(f"{place} has an empty text. Remove the entry.")
    return Response(" ".join(entry["text"].split()), entry["intent"], polarity, count)
