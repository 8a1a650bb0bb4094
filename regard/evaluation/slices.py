"""Slices of a test set that are scored separately: by length, by kind of sentence, by word frequency."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from regard.metrics.meteor import words
from regard.metrics.metric import References

LENGTHS = (0, 5, 10, 15, 20, 25, 30, 40, 50, 60)
"""Upper ends of the bins of sentence length, in words."""
FEWEST = 25
"""Smallest number of sentences per bin of length; scores of fewer are unreliable."""
FREQUENCIES = (0, 1, 4, 9, 49, 99, 999)
"""Upper ends of the bins of word frequency."""

Slices = Mapping[str, Sequence[int]]
"""Indices of sentences by the name of the slice."""


def by_length(sources: Sequence[str]) -> Slices:
    """Return sentences by number of words; a bin with too few is merged with the smaller of its neighbours."""
    values = [len(source.split()) for source in sources]
    bins = [(low, high, [p for p, v in enumerate(values) if _within(v, low, high)]) for low, high in _bins(LENGTHS)]
    bins = [bin_ for bin_ in bins if bin_[2]]
    while len(bins) > 1 and len(min(bins, key=_size)[2]) < FEWEST:
        smallest = bins.index(min(bins, key=_size))
        neighbours = [near for near in (smallest - 1, smallest + 1) if 0 <= near < len(bins)]
        first = min(smallest, min(neighbours, key=lambda near: len(bins[near][2])))
        (low, _, before), (_, high, after) = bins[first : first + 2]
        bins[first : first + 2] = [(low, high, sorted(before + after))]
    return {_name(low, high): places for low, high, places in bins}


def by_kind(sources: Sequence[str]) -> Slices:
    """Return questions, sentences with numbers, sentences with quotations, and all others."""
    kinds = {"question": r"[?？]\W*$", "with a number": r"\d", "with a quotation": r"[\"“”„«»]"}
    found = {
        kind: [index for index, source in enumerate(sources) if re.search(pattern, source)]
        for kind, pattern in kinds.items()
    }
    known = {index for places in found.values() for index in places}
    found["none of these"] = [index for index in range(len(sources)) if index not in known]
    return {kind: places for kind, places in found.items() if places}


def frequencies(texts: Iterable[str]) -> Counter[str]:
    """Return the number of occurrences of each word."""
    return Counter(word for text in texts for word in words(text))


def word_f1(hypotheses: Sequence[str], references: References, counts: Mapping[str, int]) -> dict[str, float]:
    """Return the F₁ of words by their frequency: 2 · matched / (output words + reference words), in per cent.

    Of several references, only the first is used.
    """
    names = dict.fromkeys(_name(low, high) for low, high in _bins(FREQUENCIES))
    matched, in_output, in_reference = Counter[str](), Counter[str](), Counter[str]()
    for hypothesis, several in zip(hypotheses, references, strict=True):
        mine, right = Counter(words(hypothesis)), Counter(words(several[0]))
        for tally, bag in ((matched, mine & right), (in_output, mine), (in_reference, right)):
            for word, times in bag.items():
                tally[_bin(counts.get(word, 0), FREQUENCIES)] += times
    return {
        name: 100.0 * 2 * matched[name] / (in_output[name] + in_reference[name]) for name in names if in_reference[name]
    }


def _bins(ends: Sequence[int]) -> list[tuple[int, int | None]]:
    """Return the first and last value of each bin; the last bin is open."""
    return [(0, ends[0]), *((before + 1, end) for before, end in pairwise(ends)), (ends[-1] + 1, None)]


def _bin(value: int, ends: Sequence[int]) -> str:
    return next(_name(low, high) for low, high in _bins(ends) if high is None or value <= high)


def _within(value: int, low: int, high: int | None) -> bool:
    return low <= value and (high is None or value <= high)


def _size(bin_: tuple[int, int | None, list[int]]) -> int:
    return len(bin_[2])


def _name(low: int, high: int | None) -> str:
    return f"{low}+" if high is None else str(low) if low == high else f"{low}–{high}"
