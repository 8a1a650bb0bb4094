"""ROUGE: overlap of n-grams, and of the longest common subsequence, with references (Lin, 2004).

Words, and the best of several references, are those of the package `rouge-score` without its stemmer: lower case,
letters a to z and digits only, so that scores are comparable with published ones. A test compares both.
"""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from regard.metrics.metric import Metric, References, Statistics

_SEPARATORS = re.compile(r"[^a-z0-9]+")


def rouge_words(text: str) -> list[str]:
    """Return the words of a text as ROUGE counts them."""
    return _SEPARATORS.sub(" ", text.lower()).split()


def count_wordless(texts: Sequence[str]) -> int:
    """Return how many texts have letters but no word that ROUGE counts, such as those in Cyrillic or Chinese."""
    return sum(any(letter.isalpha() for letter in text) and not rouge_words(text) for text in texts)


class _Rouge(Metric):
    """The mean over texts of F₁ = 2PR / (P + R), with the reference of each text for which it is largest."""

    def statistics(self, hypotheses: Sequence[str], references: References) -> Statistics:
        """Return F₁, precision, recall and 1 for each text."""
        rows = []
        for hypothesis, several in zip(hypotheses, references, strict=True):
            words = rouge_words(hypothesis)
            rows.append((*max(self._compare(words, rouge_words(reference)) for reference in several), 1.0))
        return np.asarray(rows, dtype=np.float64).reshape(len(rows), 4)

    def score(self, totals: Statistics) -> float:
        """Return the mean F₁ in per cent."""
        return float(100 * totals[0] / totals[3]) if totals[3] else 0.0

    def details(self, totals: Statistics) -> dict[str, float]:
        """Return the mean precision and recall in per cent."""
        count = max(float(totals[3]), 1.0)
        return {"precision": 100 * float(totals[1]) / count, "recall": 100 * float(totals[2]) / count}

    def _compare(self, words: list[str], reference: list[str]) -> tuple[float, float, float]:
        """Return F₁, precision and recall of a text and one reference."""
        shared, own, wanted = self._counts(words, reference)
        precision, recall = shared / max(own, 1), shared / max(wanted, 1)
        return (2 * precision * recall / (precision + recall) if shared else 0.0), precision, recall

    @abstractmethod
    def _counts(self, words: list[str], reference: list[str]) -> tuple[int, int, int]:
        """Return the number of shared units, and of those of each side."""


class _RougeN(_Rouge):
    order: ClassVar[int]

    def _counts(self, words: list[str], reference: list[str]) -> tuple[int, int, int]:
        ours, theirs = (
            Counter(tuple(side[start : start + self.order]) for start in range(len(side) - self.order + 1))
            for side in (words, reference)
        )
        return (ours & theirs).total(), ours.total(), theirs.total()


class Rouge1(_RougeN):
    """ROUGE-1: shared words."""

    label = "ROUGE-1"
    order = 1
    signature = "F1|best reference|stemmer:no|words:a-z0-9"


class Rouge2(_RougeN):
    """ROUGE-2: shared pairs of adjacent words."""

    label = "ROUGE-2"
    order = 2
    signature = "F1|best reference|stemmer:no|words:a-z0-9"


class RougeL(_Rouge):
    """ROUGE-L: the longest sequence of words that both texts have in this order, not necessarily adjacent."""

    label = "ROUGE-L"
    signature = "F1|best reference|stemmer:no|words:a-z0-9"

    def _counts(self, words: list[str], reference: list[str]) -> tuple[int, int, int]:
        longest = [0] * (len(reference) + 1)
        for word in words:
            before = 0
            for index, other in enumerate(reference, start=1):
                here = longest[index]
                longest[index] = before + 1 if word == other else max(here, longest[index - 1])
                before = here
        return longest[-1], len(words), len(reference)
