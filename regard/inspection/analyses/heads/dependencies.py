"""Whether a head looks from a word to the word it depends on, or back: each relation and direction apart.

Which heads follow a relation is chosen on one half of the sentences and reported on the other, so that the best of many
heads is not believed for its luck. Punctuation is left out: where a comma is attached is a convention.

Axes: B sentences, H heads, S tokens, W words, N pairs of words. What is given to a word is the sum of what its tokens
are given, and a word gives the mean of what its tokens give; the end symbol is no word. Where a word sees only those
before it, only pairs count whose other word comes before.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.inspection.corpus import MatchedSentence
from regard.metrics.intervals import Interval, ratio_intervals, resample_counts
from regard.metrics.significance import SIGNIFICANT, holm

Direction = Literal["to head", "to dependent"]
DIRECTIONS: tuple[Direction, Direction] = ("to head", "to dependent")
"""From the dependent to its head, or from the head to its dependent."""

LEFT_OUT = ("punct", "root")
"""Relations that are left out."""

BEYOND_BASELINE = 1.1
"""A head follows a relation if it is right this many times as often as the best fixed offset (Voita et al., 2019)."""
LEAST_ACCURACY = 0.4
"""And at least this often: below, a head looks elsewhere most of the time, however low the baseline is."""

SAMPLES = 500
"""Resamples of sentences by which intervals are found."""

_Counts = NDArray[np.float64]


@dataclass(frozen=True)
class Relation:
    """A relation in one direction, and how well each head follows it; figures are of the half that is reported on."""

    name: str
    """Such as `nsubj`."""
    direction: Direction
    pairs: int
    """How many there are in that half, that can be seen."""
    offset: int
    """The most frequent offset there, in words, from the word that looks to the other."""
    baseline: float
    """Share of pairs at that offset: what a head would reach that always looks there."""
    accuracy: dict[str, list[float]]
    """For each attention and head, the share of pairs where the head's maximum is on the related word."""
    intervals: dict[str, list[Interval]]
    """The 95 % intervals of these, by a bootstrap over sentences."""
    p: dict[str, list[float]]
    """Whether they beat the baseline by chance: sign test over sentences, Holm's correction over all tests."""
    chosen: dict[str, list[float]]
    """The same accuracies in the other half, by which heads are chosen."""
    follows: dict[str, list[bool]]
    """Whether a head follows the relation: by the thresholds in both halves, and significantly."""


class Dependencies:
    """What the heads of some attentions did at every pair of related words of an annotated corpus."""

    def __init__(self, heads: dict[str, int], *, causal: bool = False) -> None:
        self.heads, self.causal = heads, causal
        self.names: list[str] = []
        self.directions: list[Direction] = []
        self.offsets: list[int] = []
        self.sentences: list[int] = []
        """N: the sentence of each pair."""
        self.reported: list[bool] = []
        """For each sentence, whether it belongs to the half that is reported on."""
        self.hits: dict[str, list[NDArray[np.bool_]]] = {name: [] for name in heads}
        """N×H in parts, whether the head's maximum is on the related word."""

    def add(self, weights: dict[str, Tensor], batch: Sequence[MatchedSentence]) -> None:
        """One batch: weights B×H×S×S of each attention."""
        found = [
            (word.relation, row, dependent, word.head)
            for row, sentence in enumerate(batch)
            for dependent, word in enumerate(sentence.sentence.words)
            if word.head >= 0 and word.relation.split(":")[0] not in LEFT_OUT
        ]
        pairs: list[tuple[str, Direction, int, int, int]] = [  # relation, direction, sentence, from, to
            *((name, "to head", row, dependent, head) for name, row, dependent, head in found),
            *((name, "to dependent", row, head, dependent) for name, row, dependent, head in found),
        ]
        pairs = [pair for pair in pairs if not self.causal or pair[4] < pair[3]]
        first = len(self.reported)
        self.reported += [is_reported(matched.sentence.text) for matched in batch]
        if not pairs:
            return
        giving, given = merging(batch, next(iter(weights.values())).shape[-1])
        real = given.sum(1) > 0  # B×W
        sentence, here, there = torch.tensor([pair[2:] for pair in pairs]).unbind(1)
        for attention, of in weights.items():
            words = (giving[:, None] @ of @ given[:, None]).masked_fill(~real[:, None, None], -1.0)
            at = words.argmax(-1)  # B×H×W
            self.hits[attention].append((at[sentence, :, here] == there[:, None]).numpy())
        self.names += [pair[0] for pair in pairs]
        self.directions += [pair[1] for pair in pairs]
        self.offsets += [other - word for *_, word, other in pairs]
        self.sentences += [first + pair[2] for pair in pairs]

    def relations(self, least: int) -> list[Relation]:
        """Return the relations with at least this many pairs, at least a quarter of them in each half.

        The most frequent come first.
        """
        names = list(self.heads)
        if not self.names or not names:
            return []
        hits = np.concatenate([np.concatenate(self.hits[name]) for name in names], axis=1)  # N×(all heads)
        offsets, sentences = np.asarray(self.offsets), np.asarray(self.sentences)
        reported = np.asarray(self.reported)[sentences]  # N
        known, places = np.unique(np.asarray([f"{n}\0{d}" for n, d in self._keys()]), return_inverse=True)
        totals = Counter(self.names)
        counts = resample_counts(int(np.asarray(self.reported).sum()), SAMPLES, seed=1)
        renumbered = np.cumsum(self.reported) - 1  # sentences of the reported half from 0
        found: list[_Found] = []
        for number, key in enumerate(known.tolist()):
            name, direction = key.split("\0")
            here = places == number
            first, second = np.flatnonzero(here & ~reported), np.flatnonzero(here & reported)
            if here.sum() < least or min(len(first), len(second)) < max(1, least // 4):
                continue
            found.append(
                _measure(
                    name,
                    "to head" if direction == "to head" else "to dependent",
                    (offsets[first], hits[first]),
                    (offsets[second], hits[second]),
                    renumbered[sentences[second]],
                    counts,
                )
            )
        corrected = iter(holm([float(p) for relation in found for p in relation.p]))
        made = [self._relation(relation, [next(corrected) for _ in relation.p]) for relation in found]
        return sorted(
            made, key=lambda relation: (-totals[relation.name], relation.name, DIRECTIONS.index(relation.direction))
        )

    def _keys(self) -> list[tuple[str, Direction]]:
        return list(zip(self.names, self.directions, strict=True))

    def _relation(self, found: "_Found", corrected: list[float]) -> Relation:
        least = max(LEAST_ACCURACY, BEYOND_BASELINE * found.baseline)
        likely = found.chosen >= max(LEAST_ACCURACY, BEYOND_BASELINE * found.chosen_baseline)
        follows = likely & (found.accuracy >= least) & (np.asarray(corrected) < SIGNIFICANT)
        intervals = [(float(low), float(high)) for low, high in found.intervals]
        cuts = np.cumsum([0, *self.heads.values()]).tolist()
        spans = {name: slice(cuts[index], cuts[index + 1]) for index, name in enumerate(self.heads)}
        return Relation(
            name=found.name,
            direction=found.direction,
            pairs=found.pairs,
            offset=found.offset,
            baseline=found.baseline,
            accuracy={name: found.accuracy[span].tolist() for name, span in spans.items()},
            intervals={name: intervals[span] for name, span in spans.items()},
            p={name: corrected[span] for name, span in spans.items()},
            chosen={name: found.chosen[span].tolist() for name, span in spans.items()},
            follows={name: follows[span].tolist() for name, span in spans.items()},
        )


@dataclass(frozen=True)
class _Found:
    """A relation in one direction before correction; arrays go over all heads."""

    name: str
    direction: Direction
    pairs: int
    offset: int
    baseline: float
    accuracy: _Counts
    intervals: _Counts
    p: _Counts
    chosen: _Counts
    chosen_baseline: float


def _measure(
    name: str,
    direction: Direction,
    first: tuple[NDArray[np.int64], NDArray[np.bool_]],
    second: tuple[NDArray[np.int64], NDArray[np.bool_]],
    sentences: NDArray[np.int64],
    counts: _Counts,
) -> _Found:
    """Measure all heads on offsets N and hits N×H of both halves; `sentences` are those of the second half."""
    _, before = best_offset(first[0], direction)
    offset, baseline = best_offset(*(second[0], direction))
    hits = second[1].astype(np.float64)  # N×H
    fixed = (second[0] == offset).astype(np.float64)[:, None]  # N×1
    size = counts.shape[1]
    parts, wholes, fixes = (np.zeros((size, counts.shape[1])) for counts in (hits, fixed, fixed))
    np.add.at(parts, sentences, hits)
    np.add.at(wholes, sentences, np.ones_like(fixed))
    np.add.at(fixes, sentences, fixed)
    accuracy = hits.mean(0)
    intervals = ratio_intervals(parts, wholes, counts=counts)
    if intervals is None:
        intervals = np.tile([0.0, 1.0], (hits.shape[1], 1))
    better, worse = (parts > fixes).sum(0), (parts < fixes).sum(0)
    p = np.asarray([sign_test(int(wins), int(other)) for wins, other in zip(better, worse, strict=True)])
    chosen = first[1].mean(0)
    return _Found(name, direction, len(hits), offset, baseline, accuracy, intervals.clip(0, 1), p, chosen, before)


def is_reported(text: str) -> bool:
    """Whether a sentence belongs to the half that is reported on; the same text always belongs to the same half."""
    words = " ".join(text.lower().split())
    return bool(hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8).digest()[0] & 1)


def best_offset(offsets: NDArray[np.int64], direction: Direction) -> tuple[int, float]:
    """Return the most frequent offset and its share; of equals the nearest, the same pair of words both ways."""
    values, times = np.unique(offsets, return_counts=True)
    sign = 1 if direction == "to head" else -1
    rows = zip(values.tolist(), times.tolist(), strict=True)
    offset, count = min(rows, key=lambda item: (-item[1], abs(item[0]), sign * item[0]))
    return offset, count / len(offsets)


def sign_test(better: int, worse: int) -> float:
    """Return P(X ≥ better) of better + worse throws of a coin: how likely as many wins are without any advantage."""
    count = better + worse
    if not better:
        return 1.0
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count + 1)))])  # of factorials
    wins = np.arange(better, count + 1)
    terms = logs[count] - logs[wins] - logs[count - wins] - count * np.log(2)
    return float(min(1.0, np.exp(terms).sum()))


def merging(batch: Sequence[MatchedSentence], tokens: int) -> tuple[Tensor, Tensor]:
    """From tokens to words: the mean of the rows B×W×S, and the sum of the columns B×S×W."""
    words = max(len(matched.tokens) for matched in batch)
    given = torch.zeros(len(batch), tokens, words)
    for row, matched in enumerate(batch):
        for word, places in enumerate(matched.tokens):
            given[row, places, word] = 1.0
    giving = given.transpose(1, 2)
    return giving / giving.sum(2, keepdim=True).clamp(min=1.0), given
