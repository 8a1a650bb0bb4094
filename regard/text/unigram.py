"""Deterministic training of a unigram language model of subwords (Kudo, 2018).

The trainer of the `tokenizers` library sums in a random order, so its pieces differ from call to call.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LONGEST_PIECE = 16
MOST_CHARACTERS = 2_000_000
"""Characters of different units that are used, most frequent units first, which bounds time and memory."""
_SEEDS = 10
"""Number of initial candidates, as a multiple of the number of pieces."""
_KEEP = 0.75
"""Share of the pieces that is kept in a round of pruning."""
_ROUNDS = 2
"""Steps of expectation and maximisation between prunings."""
_NEARLY = 1.1
"""Below this multiple of the number of pieces, one last pruning follows."""
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def learn(units: Counter[str], alphabet: Sequence[str], size: int, least: int) -> list[tuple[str, float]]:
    """Return at most `size` pieces with log-probabilities, most likely first, including the whole alphabet.

    The probability of a unit is the sum over its segmentations of the product of the probabilities of their pieces.
    Expectation-maximisation fits these; in between, the pieces whose removal costs the least likelihood are pruned.
    """
    lattice = _Lattice(units, alphabet)
    lattice.seed(_SEEDS * size, max(least, 2))
    while True:
        for _ in range(_ROUNDS):
            lattice.fit()
        if len(lattice.length) <= _NEARLY * size:
            lattice.prune(size)
            return lattice.result()
        lattice.prune(max(int(_NEARLY * size), int(_KEEP * len(lattice.length))))


@dataclass(frozen=True)
class _Substrings:
    """The substrings of one length."""

    length: int
    counts: NDArray[np.float64]
    """Number of occurrences of each."""
    example: NDArray[np.int64]
    """One node at which each begins."""
    place: NDArray[np.int64]
    """All nodes at which one begins."""
    which: NDArray[np.int64]
    """The substring that begins at each of `nodes`."""


class _Lattice:
    """A lattice over all units: nodes are positions between letters, edges are pieces."""

    def __init__(self, units: Counter[str], alphabet: Sequence[str]):
        number = {letter: index for index, letter in enumerate(alphabet, start=1)}
        known = re.compile(f"[{re.escape(''.join(alphabet))}]+")
        text, weights, room = [], [], MOST_CHARACTERS
        for unit, count in sorted(units.items(), key=lambda item: (-item[1], item[0])):
            for run in known.findall(unit):  # other letters are spelt in bytes, which pieces do not cross
                text.append(run)
                weights.append(count)
                room -= len(run) + 1
            if room < 0:
                break
        self.text = "\0".join(text) + "\0"
        lengths = np.fromiter(map(len, text), dtype=np.int64, count=len(text)) + 1
        self.letters = np.fromiter((number.get(c, 0) for c in self.text), dtype=np.uint64, count=len(self.text))
        first = np.cumsum(lengths) - lengths
        self.depth = np.arange(len(self.text)) - np.repeat(first, lengths)
        self.rest = np.repeat(lengths, lengths) - 1 - self.depth
        self.weight = np.repeat(np.asarray(weights, dtype=np.float64), lengths)
        self.first = np.repeat(first, lengths)
        self.by_depth = _groups(self.depth)
        self.by_rest = _groups(self.rest)

    def seed(self, most: int, least: int) -> None:
        """Start with the letters and the substrings that cover the most text."""
        place = np.flatnonzero(self.rest > 0)
        key = np.zeros(len(self.text), dtype=np.uint64)
        found: list[_Substrings] = []
        for length in range(1, LONGEST_PIECE + 1):
            place = place[self.rest[place] >= length]
            key[place] = (key[place] ^ self.letters[place + length - 1]) * _FACTOR
            key[place] ^= key[place] >> np.uint64(29)
            _, example, which = np.unique(key[place], return_index=True, return_inverse=True)
            count = np.bincount(which, weights=self.weight[place], minlength=len(example)).astype(np.float64)
            kept = (count >= least) | (length == 1)  # substrings of rare ones are not frequent
            here, number = kept[which], np.cumsum(kept) - 1
            found.append(_Substrings(length, count[kept], place[example[kept]], place[here], number[which[here]]))
            place = place[here]
        counts = np.concatenate([substrings.counts for substrings in found])
        lengths = np.repeat([substrings.length for substrings in found], [len(s.counts) for s in found])
        cover = np.where(lengths == 1, np.inf, counts * lengths)
        chosen = np.zeros(len(cover), dtype=bool)
        chosen[np.argsort(-cover, kind="stable")[: max(most, len(found[0].counts))]] = True
        self.at = np.full((LONGEST_PIECE + 1, len(self.text) + LONGEST_PIECE), len(chosen), dtype=np.int32)
        start = 0
        for substrings in found:
            self.at[substrings.length, substrings.place] = start + substrings.which
            start += len(substrings.counts)
        self.length, self.example = lengths, np.concatenate([substrings.example for substrings in found])
        self._keep(chosen, counts)

    def fit(self) -> None:
        """Run one step of expectation (expected counts) and maximisation (probabilities)."""
        forward, backward = self._forward(), self._backward()
        total = backward[self.first]
        counts = np.zeros(self.none + 1)
        for length in range(1, LONGEST_PIECE + 1):
            place = np.flatnonzero(self.at[length, : len(self.text)] != self.none)
            piece = self.at[length, place]
            share = np.exp(forward[place] + self.score[piece] + backward[place + length] - total[place])
            counts += np.bincount(piece, weights=share * self.weight[place], minlength=len(counts))
        counts = counts[:-1]
        self._keep((counts >= 0.5) | (self.length == 1), counts)

    def prune(self, size: int) -> None:
        """Keep the pieces whose removal would cost the most likelihood, and all single letters."""
        counts = np.exp(self.score[:-1])
        loss = np.where(self.length == 1, np.inf, counts * (self.score[:-1] - self._alternative()))
        kept = np.zeros(self.none, dtype=bool)
        kept[np.argsort(-loss, kind="stable")[: max(size, int((self.length == 1).sum()))]] = True
        self._keep(kept, counts)

    def result(self) -> list[tuple[str, float]]:
        """Return pieces and log-probabilities, most likely first."""
        spelt = [self.text[e : e + n] for e, n in zip(self.example.tolist(), self.length.tolist(), strict=True)]
        rated = zip(spelt, np.round(self.score[:-1], 6).tolist(), strict=True)
        return sorted(rated, key=lambda item: (-item[1], item[0]))

    def _rate(self, counts: NDArray[np.float64]) -> None:
        counts = np.maximum(counts, 1e-12)
        self.score = np.append(np.log(counts) - np.log(counts.sum()), -np.inf)

    def _keep(self, kept: NDArray[np.bool_], counts: NDArray[np.float64]) -> None:
        number = np.append(np.where(kept, np.cumsum(kept) - 1, kept.sum()), kept.sum()).astype(np.int32)
        self.at = number[self.at]
        self.none = int(kept.sum())
        self.length, self.example = self.length[kept], self.example[kept]
        self._rate(counts[kept])

    def _forward(self) -> NDArray[np.float64]:
        """Return the log-probability of all paths from the start of a unit to each node."""
        value = np.zeros(len(self.text))
        for depth, nodes in enumerate(self.by_depth[1:], start=1):
            lengths = range(1, min(depth, LONGEST_PIECE) + 1)
            value[nodes] = _log_sum(
                [value[nodes - length] + self.score[self.at[length, nodes - length]] for length in lengths]
            )
        return value

    def _backward(self) -> NDArray[np.float64]:
        """Return the log-probability of all paths from each node to the end of its unit."""
        value = np.zeros(len(self.text) + LONGEST_PIECE)
        for rest, nodes in enumerate(self.by_rest[1:], start=1):
            lengths = range(1, min(rest, LONGEST_PIECE) + 1)
            value[nodes] = _log_sum([self.score[self.at[length, nodes]] + value[nodes + length] for length in lengths])
        return value

    def _alternative(self) -> NDArray[np.float64]:
        """Return the log-probability of the best segmentation of each piece into other pieces."""
        best = np.zeros((LONGEST_PIECE + 1, self.none))
        for end in range(1, LONGEST_PIECE + 1):
            ways = []
            for length in range(1, end + 1):
                score = self.score[self.at[length, np.minimum(self.example + end - length, self.at.shape[1] - 1)]]
                whole = (length == end) & (self.length == end)
                ways.append(best[end - length] + np.where(whole, -np.inf, score))
            best[end] = np.max(ways, axis=0)
        return np.asarray(best[self.length, np.arange(self.none)])


def _groups(values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the indices of the value 0, of the value 1, and so on."""
    order = np.argsort(values, kind="stable")
    return np.split(order, np.cumsum(np.bincount(values))[:-1])


def _log_sum(terms: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return log Σ exp, where some terms, but never all, are -∞."""
    if len(terms) == 1:
        return terms[0]
    stacked = np.stack(terms)
    highest = stacked.max(axis=0)
    return np.asarray(highest + np.log(np.exp(stacked - highest).sum(axis=0)))
