"""The response set: the only texts that may be suggested, in a file that people edit (`responses.yaml`)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
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
CLOSE = 0.8
"""Similarity from which two names of intents may be the same."""
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, where PyYAML has been built with it: ten times as fast."""
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
    """Read a response set; what cannot be used is named with its line."""
    entries = _read_entries(path)
    responses = [_read_entry(entry, f"{path}, line {line}") for line, entry in entries]
    seen: dict[str, tuple[int, str]] = {}
    for (line, _), response in zip(entries, responses, strict=True):
        if response.normal in seen:
            first, text = seen[response.normal]
            raise RegardError(
                f"{path}, line {line}: {_quote(response.text)} is the same response as {_quote(text)} in line {first} "
                "(case and final marks do not matter). Remove one of them."
            )
        seen[response.normal] = line, response.text
    return responses


def doubtful_intents(responses: Sequence[Response]) -> list[tuple[Response, str]]:
    """Return responses whose intent nobody else has and that is almost the name of another, with that name.

    Intents are free, so this may be no mistake. But two spellings of an intent would be suggested together.
    """
    counts = Counter(response.intent for response in responses)
    common = [intent for intent, count in counts.items() if count > 1]
    found = []
    for response in responses:
        if counts[response.intent] == 1 and response.intent != response.normal:
            near = get_close_matches(response.intent, common, n=1, cutoff=CLOSE)
            found += [(response, near[0])] if near else []
    return found


def _read_entries(path: Path) -> list[tuple[int, Any]]:
    """Return the entries of the list in a YAML file with their lines."""
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        found = None if node is None else loader.construct_document(node)
    except FileNotFoundError:
        raise RegardError(f"{path} does not exist. `regard reply build` writes it.") from None
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or str(error)
        place = f"{path}, line {mark.line + 1}" if mark else f"{path}"
        raise RegardError(
            f"{place} is not YAML ({' '.join(problem.split())[:120]}). Compare the line with those around it: an entry "
            "begins with `- text:`, and texts with a colon, a hash or quotes need quotes around them."
        ) from None
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise RegardError(f"{path} cannot be read ({reason}). Save it as text in UTF-8.") from None
    if not isinstance(found, list) or not found:
        raise RegardError(f"{path} has no responses. Write a list of entries with `text` and `intent`.")
    return [(item.start_mark.line + 1, entry) for item, entry in zip(node.value, found, strict=True)]


def _quote(text: str) -> str:
    return f"“{text[:60]}”"


def _read_entry(entry: Any, place: str) -> Response:
    """Return the response of an entry; an error names the place, what is wrong and what to do."""
    if not isinstance(entry, dict):
        raise RegardError(f"{place} is no entry. Write `- text: …` and below it `intent: …`.")
    for name in ("text", "intent"):
        if name not in entry or entry[name] is None:
            raise RegardError(f"{place} has no {name}. Add `{name}: …` to the entry.")
        if not isinstance(entry[name], str):
            raise RegardError(
                f"{place}: the {name} is not a text but {str(entry[name])[:40]}. Put quotes around it: YAML reads yes, "
                "no and numbers as something else."
            )
        if not entry[name].strip():
            raise RegardError(f"{place} has an empty {name}. Write one, or remove the entry.")
    unknown = sorted(map(str, set(entry) - {"text", "intent", "polarity", "count"}))
    if unknown:
        raise RegardError(f"{place} has the unknown field {unknown[0][:40]}. Remove it.")
    polarity, count = entry.get("polarity", "neutral"), entry.get("count", 0)
    if polarity not in POLARITIES:
        raise RegardError(
            f"{place} has the unknown polarity {str(polarity)[:40]}. Write {', '.join(POLARITIES[:-1])} or "
            f"{POLARITIES[-1]}."
        )
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise RegardError(f"{place}: the count is {str(count)[:40]}. Write a whole number from 0, or remove it.")
    if not normalise_response(entry["text"]):
        raise RegardError(f"{place}: the text {_quote(entry['text'])} has no words. Remove the entry.")
    return Response(" ".join(entry["text"].split()), " ".join(entry["intent"].split()), polarity, count)
