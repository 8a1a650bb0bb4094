"""Words that a source and a target, or two sentences, have in common, whatever their case."""

import re
from collections import Counter

_WORD = re.compile(r"\w+")


def count_words(text: str) -> Counter[str]:
    """Return how often each word occurs in a text."""
    return Counter(_WORD.findall(text.casefold()))


def share_from_source(source: str, target: str) -> float:
    """Return the share of the words of a target that occur in its source; 1 for a target without words."""
    wanted = count_words(target)
    known = count_words(source) if wanted else wanted
    return sum(count for word, count in wanted.items() if word in known) / wanted.total() if wanted else 1.0


def f1(one: Counter[str], other: Counter[str]) -> float:
    """Return F₁ = 2PR / (P + R) of the words of two texts, given their counts: 1 if they are equal, 0 if disjoint."""
    shared = (one & other).total()
    return 2 * shared / (one.total() + other.total()) if shared else 0.0
