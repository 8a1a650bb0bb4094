"""Messages that get no suggestions: bad news, grief, illness, legal and financial trouble, anger, violence.

Two parts, both editable: a list of patterns (`sensitive.yaml` in the bundle), and a classifier trained on the examples
of the list and on ordinary messages.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from regard.foundation.errors import RegardError

LABELS = ("ordinary", "sensitive")
_ENDING = re.compile(r"(?<!\\)([^\W\d_])\*")
"""A star after a letter, which stands for any ending."""
THRESHOLDS = (0.1, 0.9)
"""The range of the probability from which a message is sensitive. The build chooses it so that false alarms are rare
but not absent: one costs less than a cheerful reply to bad news."""


@dataclass(frozen=True)
class SensitiveTopic:
    """A kind of message that gets no suggestions."""

    name: str
    patterns: tuple[str, ...]
    examples: tuple[str, ...]

    @cached_property
    def expression(self) -> re.Pattern[str]:
        """One regular expression for all patterns."""
        parts = "|".join(_ENDING.sub(r"\1\\w*", pattern) for pattern in self.patterns)
        return re.compile(rf"\b(?:{parts})\b" if parts else r"(?!)", re.IGNORECASE)


def built_in_list() -> str:
    """Return the list that Regard comes with, as YAML."""
    return (resources.files("regard.reply") / "lists" / "sensitive.yaml").read_text(encoding="utf-8")


def read_topics(path: Path) -> list[SensitiveTopic]:
    """Read a list of topics."""
    try:
        return parse_topics(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RegardError(f"{path} does not exist. `regard reply build` writes it.") from None
    except (OSError, ValueError, yaml.YAMLError, re.error) as error:
        reason = " ".join(str(error).split())[:200]
        raise RegardError(f"{path} cannot be read ({reason}). Correct the file.") from None


def parse_topics(text: str) -> list[SensitiveTopic]:
    """Parse a list of topics; raises `ValueError` for anything that is not one."""
    found: Any = yaml.safe_load(text)
    if not isinstance(found, Mapping):
        raise ValueError("it must map the names of topics to `patterns` and `examples`")
    topics = []
    for name, entry in found.items():
        lists = [entry.get(part, []) if isinstance(entry, Mapping) else None for part in ("patterns", "examples")]
        if not all(isinstance(texts, list) and all(isinstance(text, str) for text in texts) for texts in lists):
            raise ValueError(f"`patterns` and `examples` of {str(name)[:40]} must be lists of texts")
        topic = SensitiveTopic(str(name), tuple(lists[0] or ()), tuple(lists[1] or ()))
        _ = topic.expression  # compiled now, so that a wrong pattern is found here
        topics.append(topic)
    return topics


def find_topic(topics: list[SensitiveTopic], message: str) -> tuple[str, str] | None:
    """Return the first topic whose list matches a message, and the words that match; `None` if there is none."""
    for topic in topics:
        if found := topic.expression.search(message):
            return topic.name, found[0]
    return None
