"""Cleaning of training pairs: one pass decides which are kept, held out or dropped, and reports why."""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.config.data import Cleaning
from regard.data.corpus import Pair
from regard.foundation.errors import RegardError, TooFew, UsageError
from regard.foundation.progress import Progress, reported

_CHUNK = 1 << 20
GRACE = 10
"""Characters added to both lengths before their ratio is taken, so that short pairs are not dropped."""

BOTH = ("source", "target")


class Fate(IntEnum):
    """Whether a pair is kept, held out or dropped, and for which reason."""

    TRAIN = 0
    HELD_OUT = 1
    EMPTY = 2
    TOO_LONG = 3
    RATIO = 4
    DUPLICATE = 5
    TEST = 6


REASONS = {
    Fate.EMPTY: "empty side",
    Fate.TOO_LONG: "too long",
    Fate.RATIO: "length ratio",
    Fate.DUPLICATE: "duplicate",
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


def survey(
    pairs: Iterable[Pair],
    cleaning: Cleaning,
    *,
    held_out: int,
    tested: int = 0,
    seed: int,
    validation: Iterable[Pair] = (),
    texts: Sequence[str] = BOTH,
    required: Sequence[str] = (),
    together: Callable[[Pair], str] = lambda pair: pair.source,
    progress: Progress | None = None,
) -> tuple[NDArray[np.uint8], CleaningReport]:
    """Return the `Fate` of each pair and a report, in one pass that keeps a few bytes per pair.

    `texts` are the sides that hold text; of the others, those `required` must not be empty. `held_out` pairs for
    validation and `tested` pairs for the test (each at most a tenth) are chosen by a hash of their source, so that all
    pairs of a source have the same fate. Sources that differ only in case and white space count as the same.
    """
    salt = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
    fates, whole, sources = array("B"), array("Q"), array("Q")
    for pair in reported(pairs, "reading", progress):
        is_empty = any(not getattr(pair, side).strip() for side in required)
        fates.append(Fate.EMPTY if is_empty else _fate(pair, cleaning, texts))
        whole.append(_pair_hash(pair))
        sources.append(_hash(" ".join(together(pair).split()).casefold(), salt) if held_out or tested else 0)
    fate = np.frombuffer(fates, dtype=np.uint8).copy()
    hashes = np.frombuffer(whole, dtype=np.uint64)
    if cleaning.duplicates == "drop":
        fate[_find_repeated(hashes) & (fate == Fate.TRAIN)] = Fate.DUPLICATE
    for count, aside in ((held_out, Fate.HELD_OUT), (tested, Fate.TEST)):
        if count:
            chosen = _choose_held_out(np.frombuffer(sources, dtype=np.uint64), fate == Fate.TRAIN, count, aside)
            fate[chosen & (fate == Fate.TRAIN)] = aside
    known = np.fromiter(map(_pair_hash, validation), dtype=np.uint64)
    report = CleaningReport(pairs=len(fate), overlap=_overlap(known, hashes, fate == Fate.TRAIN))
    for reason in REASONS:
        found = np.flatnonzero(fate == reason)
        if len(found):
            report.drop(reason, int(found[0]) + 1, len(found))
    report.train, report.held_out = int((fate == Fate.TRAIN).sum()), int((fate == Fate.HELD_OUT).sum())
    report.tested = int((fate == Fate.TEST).sum())
    return fate, report


def with_fate(pairs: Iterable[Pair], fate: NDArray[np.uint8], wanted: Fate) -> Iterator[tuple[int, Pair]]:
    """Yield the pairs of one fate, each with its number from 1; raises if the corpus has changed since the survey."""
    chosen = (fate == wanted).tobytes()
    for number, (pair, here) in enumerate(zip_longest(pairs, chosen), start=1):
        if pair is None or here is None:
            raise RegardError(
                "The training corpus changed while it was being read. Start again when it no longer changes."
            )
        if here:
            yield number, pair


def _fate(pair: Pair, cleaning: Cleaning, texts: Sequence[str]) -> Fate:
    """Return the fate of a pair as far as it depends on the pair alone."""
    lengths = [len(getattr(pair, text).strip()) for text in texts]
    if not lengths:
        return Fate.TRAIN
    if max(lengths) > cleaning.max_characters:
        return Fate.TOO_LONG
    if not min(lengths):
        return Fate.EMPTY
    if (max(lengths) + GRACE) / (min(lengths) + GRACE) > cleaning.max_ratio:
        return Fate.RATIO
    return Fate.TRAIN


def _find_repeated(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return a mask of the pairs that repeat an earlier one."""
    order = np.argsort(hashes, kind="stable")
    repeated = np.zeros(len(hashes), dtype=bool)
    repeated[order[1:][hashes[order[1:]] == hashes[order[:-1]]]] = True
    return repeated


def _choose_held_out(
    sources: NDArray[np.uint64], usable: NDArray[np.bool_], held_out: int, aside: Fate
) -> NDArray[np.bool_]:
    """Return a mask of the pairs to hold out: whole sources in the order of their hashes, as many as fit."""
    count = int(usable.sum())
    most = max(min(held_out, count // 10), 1)
    if count > most:
        first_that_does_not_fit = np.partition(sources[usable], most)[most]
        chosen: NDArray[np.bool_] = sources < first_that_does_not_fit
        if (chosen & usable).any():
            return chosen
    purpose = "the test" if aside == Fate.TEST else "validation"
    raise TooFew(
        f"There are too few usable training pairs ({count:,}), or too few different sources, to hold any out for "
        f"{purpose}. Give more pairs, or name a data.{purpose.removeprefix('the ')} corpus."
    )


def _overlap(known: NDArray[np.uint64], hashes: NDArray[np.uint64], usable: NDArray[np.bool_]) -> int:
    """Return how many of the known hashes occur among the usable ones."""
    found: list[NDArray[np.uint64]] = []
    for start in range(0, len(hashes), _CHUNK) if len(known) else ():
        chunk = slice(start, start + _CHUNK)
        found.append(np.intersect1d(known, hashes[chunk][usable[chunk]]))
    return int(np.isin(known, np.concatenate(found)).sum()) if found else 0


def _hash(text: str, salt: bytes = b"") -> int:
    """Return a 64-bit hash of a text that is the same on every machine."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, salt=salt)
    return int.from_bytes(digest.digest(), "little")


def _pair_hash(pair: Pair) -> int:
    return _hash(f"{pair.source.strip()}\0{pair.target.strip()}")
