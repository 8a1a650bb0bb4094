"""Cleaning of training pairs: which are kept, held out or dropped, and the report of it."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.config.data import Cleaning
from regard.data.pair import Pair
from regard.foundation.errors import RegardError, UsageError


class Fate(IntEnum):
    """Whether a pair is kept, held out or dropped, and for which reason."""

    TRAIN = 0
    HELD_OUT = 1
    EMPTY = 2
    TOO_LONG = 3
    RATIO = 4
    DUPLICATE = 5
    TEST = 6
    OVERLAP = 7


REASONS = {
    Fate.EMPTY: "empty side",
    Fate.TOO_LONG: "too long",
    Fate.RATIO: "length ratio",
    Fate.DUPLICATE: "duplicate",
    Fate.OVERLAP: "too few words of the source",
}


@dataclass
class CleaningReport:
    """How many training pairs were kept, held out and dropped, and why."""

    pairs: int = 0
    """Pairs read."""
    train: int = 0
    """Pairs kept for training."""
    held_out: int = 0
    """Pairs set aside for validation."""
    tested: int = 0
    """Pairs set aside for the test."""
    joined: int = 0
    """Pairs made by joining others, in addition to those kept."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Number of pairs dropped for each reason."""
    examples: dict[str, int] = field(default_factory=dict)
    """Number, from 1, of the first pair dropped for each reason."""
    overlap: int = 0
    """Validation pairs that also occur in training, which makes scores too high."""
    notes: list[str] = field(default_factory=list)
    """Further remarks about the data, as whole sentences."""

    def drop(self, fate: Fate, number: int, count: int = 1) -> None:
        """Record that `count` pairs were dropped, the first of which is pair `number`, counted from 1."""
        reason = REASONS[fate]
        self.dropped[reason] = self.dropped.get(reason, 0) + count
        self.examples[reason] = min(self.examples.get(reason, number), number)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the report as an aligned table."""
        rows = [("read", self.pairs, ""), ("kept for training", self.train, "")]
        if self.held_out:
            rows.append(("held out", self.held_out, ""))
        if self.tested:
            rows.append(("held out for the test", self.tested, ""))
        if self.joined:
            rows.append(("made by joining", self.joined, ""))
        rows += [
            (f"dropped: {reason}", count, f"first: pair {self.examples[reason]:,}")
            for reason, count in self.dropped.items()
        ]
        name, number = max(len(row[0]) for row in rows), max(len(f"{row[1]:,}") for row in rows)
        lines = [f"{label:<{name}}  {count:>{number},}  {note}".rstrip() for label, count, note in rows]
        if self.overlap:
            lines.append(f"warning: {self.overlap:,} validation pairs also occur in the training data")
        return "\n".join(lines)


MOST_LOST = 0.25
"""Share of a corpus that a filter with its default limit may drop."""
FILTERS = {
    Fate.TOO_LONG: ("max_length", "max_characters"),
    Fate.RATIO: ("max_ratio",),
}
"""Settings of the filters that lose examples. Dropping repeats and empty sides loses nothing."""


def refuse_large_losses(cleaning: Cleaning, report: CleaningReport, noun: str) -> None:
    """Raise if a filter whose limit is left at its default drops more than a quarter of the corpus."""
    for problem in large_losses(cleaning, report, noun):
        raise UsageError(problem)


def large_losses(cleaning: Cleaning, report: CleaningReport, noun: str) -> Iterator[str]:
    """Yield a message for each filter whose default limit drops more than a quarter of the corpus."""
    for fate, names in FILTERS.items():
        dropped = report.dropped.get(REASONS[fate], 0)
        if dropped <= MOST_LOST * report.pairs or any(name in cleaning.model_fields_set for name in names):
            continue
        limits = " and ".join(f"data.cleaning.{name} ({getattr(cleaning, name):g})" for name in names)
        yield (
            f"Cleaning would drop {dropped:,} of {report.pairs:,} training {noun} ({dropped / report.pairs:.0%}) by "
            f"{REASONS[fate]}, the first of them number {report.examples[REASONS[fate]]:,}. Raise {limits} to keep "
            "them, or write the current value into the configuration to drop them anyway."
        )


def with_fate(pairs: Iterable[Pair], fate: NDArray[np.uint8], wanted: Fate) -> Iterator[tuple[int, Pair]]:
    """Yield the pairs of one fate, each with its number from 1; raises if the corpus has changed since the survey."""
    chosen = (fate == wanted).tobytes()
    for number, (pair, here) in enumerate(zip_longest(pairs, chosen), start=1):
        if pair is None or here is None:
            raise changed_corpus()
        if here:
            yield number, pair


def changed_corpus() -> RegardError:
    """Return the error for a corpus that does not have the pairs that were surveyed."""
    return RegardError("The training corpus changed while it was being read. Start again when it no longer changes.")
