"""Metrics for tasks with one right answer: exact match, edit distance, token accuracy."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from regard.metrics.metric import Metric, References, Statistics


class _Share(Metric):
    """100 · Σ parts / Σ wholes; of several references, the best for the hypothesis is used.

    Parts and wholes are summed over the corpus before they are divided (pooled), so a long text counts more than a
    short one, unlike in a mean of sentence scores.
    """

    count: Callable[[str, str], tuple[float, float]]

    def statistics(self, hypotheses: Sequence[str], references: References) -> Statistics:
        """Return part and whole of each sentence: sentences × 2."""
        choose = max if self.larger_is_better else min
        rows = [
            choose(
                (self.count(hypothesis, reference) for reference in several), key=lambda row: row[0] / max(row[1], 1.0)
            )
            for hypothesis, several in zip(hypotheses, references, strict=True)
        ]
        return np.asarray(rows, dtype=np.float64)

    def score(self, totals: Statistics) -> float:
        """Return the share in per cent; the best score if there is nothing to score."""
        part, whole = totals.tolist()
        return 100.0 * part / whole if whole else 100.0 * self.larger_is_better


class Exact(_Share):
    """Exact match: share of outputs that are equal to a reference, character for character."""

    label = "exact match"

    @staticmethod
    def count(hypothesis: str, reference: str) -> tuple[float, float]:
        """Return whether both are equal."""
        return float(hypothesis == reference), 1.0


class Edits(_Share):
    """Edit distance: characters inserted, deleted or replaced / characters of the longer text (Levenshtein, 1966)."""

    label = "edit distance"
    larger_is_better = False
    signature = "unit:character|norm:longer|corpus:pooled"

    @staticmethod
    def count(hypothesis: str, reference: str) -> tuple[float, float]:
        """Return edits, and the length of the longer text."""
        return float(edit_distance(hypothesis, reference)), float(max(len(hypothesis), len(reference)))


class WordErrorRate(_Share):
    """Word error rate: words inserted, deleted or replaced / words of the reference; it can exceed 100."""

    label = "WER"
    larger_is_better = False
    signature = "unit:white-space token|norm:reference|corpus:pooled"

    @staticmethod
    def count(hypothesis: str, reference: str) -> tuple[float, float]:
        """Return edits, and the number of words of the reference."""
        words = reference.split()
        return float(word_edit_distance(hypothesis.split(), words)), float(len(words))


class CharacterErrorRate(_Share):
    """Character error rate: characters inserted, deleted or replaced / characters of the reference.

    White space counts as one space between words, and not at all at the ends.
    """

    label = "CER"
    larger_is_better = False
    signature = "unit:character|norm:reference|corpus:pooled"

    @staticmethod
    def count(hypothesis: str, reference: str) -> tuple[float, float]:
        """Return edits, and the number of characters of the reference."""
        spoken, right = (" ".join(text.split()) for text in (hypothesis, reference))
        return float(edit_distance(spoken, right)), float(len(right))


class TokenAccuracy(_Share):
    """Token accuracy: whitespace-separated tokens that are right at their position / tokens of the longer text."""

    label = "token accuracy"
    signature = "unit:white-space token|norm:longer|corpus:pooled"

    @staticmethod
    def count(hypothesis: str, reference: str) -> tuple[float, float]:
        """Return the number of right tokens, and the number of tokens of the longer text."""
        output, expected = hypothesis.split(), reference.split()
        right = sum(a == b for a, b in zip(output, expected, strict=False))
        return float(right), float(max(len(output), len(expected)))


class TokenF1(_Share):
    """F1 of words in any order: 2·shared / (output words + reference words) (Rajpurkar et al., 2016)."""

    label = "F1"
    signature = "unit:white-space token|mean:answer"

    @staticmethod
    def count(hypothesis: str, reference: str) -> tuple[float, float]:
        """Return the F1 of one answer, and 1."""
        output, expected = Counter(hypothesis.split()), Counter(reference.split())
        shared, whole = (output & expected).total(), output.total() + expected.total()
        return (2.0 * shared / whole if whole else 1.0), 1.0


def edit_distance(one: str, other: str) -> int:
    """Return the Levenshtein distance of two texts: the fewest insertions, deletions and replacements of characters."""
    across = np.frombuffer(other.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return _edit_distance([ord(character) for character in one], across)


def word_edit_distance(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the fewest insertions, deletions and replacements of words between two lists of words."""
    numbers: dict[str, int] = {}
    ids = [[numbers.setdefault(word, len(numbers)) for word in words] for words in (one, other)]
    return _edit_distance(ids[0], np.asarray(ids[1], dtype=np.uint32))


def word_edits(output: Sequence[str], reference: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Return the fewest edits between two lists of words as pairs of places, in order.

    (i, j) is a word of the output at the place of a word of the reference: the same word, or a substitution. (i, None)
    is a word that the reference lacks, (None, j) one that the output lacks. Of several ways with as few edits, one with
    the most equal words is returned.
    """
    edit = len(output) + len(reference) + 1  # more than all equal words, each of which is worth 1, so edits come first
    costs = np.zeros((len(output) + 1, len(reference) + 1), dtype=np.int64)
    costs[0] = places = edit * np.arange(len(reference) + 1)
    numbers = {word: number for number, word in enumerate(dict.fromkeys(reference))}
    across = np.asarray([numbers[word] for word in reference], dtype=np.int64)
    pairs = np.stack([np.where(across == numbers.get(word, -1), -1, edit) for word in output]) if output else costs
    for row, pair in enumerate(pairs[: len(output)], start=1):
        straight = np.minimum(costs[row - 1, :-1] + pair, costs[row - 1, 1:] + edit)
        costs[row] = np.minimum.accumulate(np.concatenate(([edit * row], straight)) - places) + places
    found: list[tuple[int | None, int | None]] = []
    i, j = len(output), len(reference)
    while i or j:
        if i and j and costs[i, j] == costs[i - 1, j - 1] + pairs[i - 1, j - 1]:
            i, j = i - 1, j - 1
            found.append((i, j))
        elif i and costs[i, j] == costs[i - 1, j] + edit:
            i -= 1
            found.append((i, None))
        else:
            j -= 1
            found.append((None, j))
    return found[::-1]


def _edit_distance(down: Sequence[int], across: NDArray[np.uint32]) -> int:
    places = np.arange(len(across) + 1)
    row = places.copy()
    for number, symbol in enumerate(down, start=1):
        straight = np.minimum(row[:-1] + (across != symbol), row[1:] + 1)
        row = np.minimum.accumulate(np.concatenate(([number], straight)) - places) + places  # insertions, left to right
    return int(row[-1])
