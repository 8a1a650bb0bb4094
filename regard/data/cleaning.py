"""Which pairs are kept: the fate of each is decided in one pass, and told."""

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
"""Characters added to both sides before their ratio is taken: a word against three is no misalignment."""

BOTH = ("source", "target")


class Fate(IntEnum):
    """What becomes of a pair."""

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
    """Pairs made by joining others, beside those kept."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Number of pairs dropped for each reason."""
    examples: dict[str, int] = field(default_factory=dict)
    """Number, from 1, of the first pair dropped for each reason."""
    overlap: int = 0
    """Validation pairs that also occur in training: they flatter the score."""
    notes: list[str] = field(default_factory=list)
    """What else should be known of the data, in sentences."""

    def drop(self, fate: Fate, number: int, count: int = 1) -> None:
        """Note that pairs were dropped, the first of them at a number counted from 1."""
        reason = REASONS[fate]
        self.dropped[reason] = self.dropped.get(reason, 0) + count
        self.examples[reason] = min(self.examples.get(reason, number), number)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """A small aligned table."""
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
"""Share of a corpus that a filter may drop unasked."""
FILTERS = {
    Fate.TOO_LONG: ("max_length", "max_characters"),
    Fate.RATIO: ("max_ratio",),
}
"""The settings of the filters that lose something; of repeats one is kept, and an empty side teaches nothing."""


def refuse_large_losses(cleaning: Cleaning, report: CleaningReport, noun: str) -> None:
    """Refuse to train where a filter whose limit nobody has set drops more than a quarter of the corpus."""
    for problem in large_losses(cleaning, report, noun):
        raise UsageError(problem)


def large_losses(cleaning: Cleaning, report: CleaningReport, noun: str) -> Iterator[str]:
    """Say which filters whose limit nobody has set drop more than a quarter of the corpus."""
    for fate, names in FILTERS.items():
        dropped = report.dropped.get(REASONS[fate], 0)
        if dropped <= MOST_LOST * report.pairs or any(name in cleaning.model_fields_set for name in names):
            continue
        limits = " and ".join(f"data.cleaning.{name} ({getattr(cleaning, name):g})" for name in names)
        yield (
            f"Cleaning would drop {dropped:,} of {report.pairs:,} training {noun} ({dropped / report.pairs:.0%}) by "
            f"{REASONS[fate]}, the first of them number {report.examples[REASONS[fate]]:,}. Raise {limits} to keep "
            "them, or write the present value into the configuration to drop them all the same."
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
    together: Callable[[Pair], str] = lambda pair: pair.source,
    progress: Progress | None = None,
) -> tuple[NDArray[np.uint8], CleaningReport]:
    """The `Fate` of each pair, in one pass and some bytes a pair; `texts` are the sides that hold text.

    `held_out` pairs for validation and `tested` pairs for the test (each at most a tenth) are set aside by a hash of
    their source, so that all pairs of a source share one fate; sources count as the same if they differ only in case
    and white space.
    """
    salt = hashlib.blake2b(str(seed).encode(), digest_size=16).digest()
    fates, whole, sources = array("B"), array("Q"), array("Q")
    for pair in reported(pairs, "reading", progress):
        fates.append(_fate(pair, cleaning, texts))
        whole.append(_pair_hash(pair))
        sources.append(_hash(" ".join(together(pair).split()).casefold(), salt) if held_out or tested else 0)
    fate = np.frombuffer(fates, dtype=np.uint8).copy()
    hashes = np.frombuffer(whole, dtype=np.uint64)
    if cleaning.duplicates == "drop":
        fate[_repeated(hashes) & (fate == Fate.TRAIN)] = Fate.DUPLICATE
    for count, aside in ((held_out, Fate.HELD_OUT), (tested, Fate.TEST)):
        if count:
            chosen = _chosen(np.frombuffer(sources, dtype=np.uint64), fate == Fate.TRAIN, count, aside)
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
    """The pairs of one fate, each with its number from 1; a corpus that changed since the survey is refused."""
    chosen = (fate == wanted).tobytes()
    for number, (pair, here) in enumerate(zip_longest(pairs, chosen), start=1):
        if pair is None or here is None:
            raise RegardError("the training corpus changed while it was being read: start again once it is at rest.")
        if here:
            yield number, pair


def _fate(pair: Pair, cleaning: Cleaning, texts: Sequence[str]) -> Fate:
    """What is to be seen from a pair alone."""
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


def _repeated(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which pairs are repeats of an earlier one."""
    order = np.argsort(hashes, kind="stable")
    repeated = np.zeros(len(hashes), dtype=bool)
    repeated[order[1:][hashes[order[1:]] == hashes[order[:-1]]]] = True
    return repeated


def _chosen(sources: NDArray[np.uint64], usable: NDArray[np.bool_], held_out: int, aside: Fate) -> NDArray[np.bool_]:
    """Which pairs to hold out: whole sources in the order of their hashes, as many as fit."""
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
    """How many of a few known hashes are among many."""
    found: list[NDArray[np.uint64]] = []
    for start in range(0, len(hashes), _CHUNK) if len(known) else ():
        chunk = slice(start, start + _CHUNK)
        found.append(np.intersect1d(known, hashes[chunk][usable[chunk]]))
    return int(np.isin(known, np.concatenate(found)).sum()) if found else 0


def _hash(text: str, salt: bytes = b"") -> int:
    """64 bits of a text, the same everywhere and always."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, salt=salt)
    return int.from_bytes(digest.digest(), "little")


def _pair_hash(pair: Pair) -> int:
    return _hash(f"{pair.source.strip()}\0{pair.target.strip()}")
