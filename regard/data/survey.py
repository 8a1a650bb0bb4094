"""The survey of a training corpus: one pass over its pairs decides what becomes of each.

Chunks of pairs can be surveyed in any process (`survey_chunk`). A `Survey` collects the results in the order of the
corpus. It keeps one byte per pair in memory, and two hashes per pair (16 bytes) in a temporary file; the duplicates are
found by sorting the hashes in parts, so that memory does not grow with the corpus.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from regard.config.data import Cleaning
from regard.data.cleaning import REASONS, CleaningReport, Fate
from regard.data.pair import Pair
from regard.data.shared_words import share_from_source
from regard.foundation.errors import TooFew
from regard.foundation.progress import Progress

BOTH = ("source", "target")
GRACE = 10
"""Characters added to both lengths before their ratio is taken, so that short pairs are not dropped."""

_PAIRS_AT_ONCE = 4096
_PART = 1 << 20
"""Hashes that are read at once."""
SORTED_AT_ONCE = 1 << 22
"""Hashes that are sorted at once, which takes about 30 bytes each."""

Hashes = NDArray[np.uint64]


def _source_of(pair: Pair) -> str:
    return pair.source


@dataclass(frozen=True)
class SurveyRules:
    """What determines the survey of a chunk."""

    cleaning: Cleaning
    texts: Sequence[str] = BOTH
    """The sides that hold text."""
    required: Sequence[str] = ()
    """The other sides that must not be empty."""
    together: Callable[[Pair], str] = _source_of
    """The group of a pair, which is held out as a whole or not at all."""
    salt: bytes | None = None
    """Salt of the hashes of groups; `None` if nothing is held out."""


@dataclass(frozen=True)
class SurveyedChunk:
    """The fate of each pair of a chunk as far as it depends on the pair alone, and the hashes that decide the rest."""

    fates: bytes
    pairs: Hashes
    """Hash of each pair."""
    groups: Hashes | None
    """Hash of the group of each pair; `None` if nothing is held out."""


def salt_of(seed: int) -> bytes:
    """Return the salt of the hashes by which pairs are held out."""
    return hashlib.blake2b(str(seed).encode(), digest_size=16).digest()


def survey_chunk(pairs: Sequence[Pair], rules: SurveyRules) -> SurveyedChunk:
    """Survey consecutive pairs of a corpus."""
    stripped = {side: [getattr(pair, side).strip() for pair in pairs] for side in BOTH}
    fates = _decide_alone([stripped[side] for side in rules.texts], rules.cleaning, len(pairs))
    for side in rules.required:
        fates[[not text for text in stripped[side]]] = Fate.EMPTY
    groups = None
    if rules.salt is not None:
        together = rules.together
        groups = _hash_texts([" ".join(together(pair).split()).casefold() for pair in pairs], rules.salt)
    return SurveyedChunk(fates.tobytes(), _hash_stripped(stripped["source"], stripped["target"]), groups)


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
    together: Callable[[Pair], str] = _source_of,
    progress: Progress | None = None,
) -> tuple[NDArray[np.uint8], CleaningReport]:
    """Return the `Fate` of each pair of a corpus and a report.

    `texts` are the sides that hold text; of the others, those `required` must not be empty. `held_out` pairs for
    validation and `tested` pairs for the test (each at most a tenth) are chosen by a hash of their source, so that all
    pairs of a source have the same fate. Sources that differ only in case and white space count as the same.
    """
    rules = SurveyRules(cleaning, texts, required, together, salt_of(seed) if held_out or tested else None)
    surveyed, pairs = Survey(cleaning), iter(pairs)
    while chunk := list(islice(pairs, _PAIRS_AT_ONCE)):
        surveyed.add(survey_chunk(chunk, rules))
        if progress:
            progress("reading", len(surveyed), None)
    return surveyed.finish(held_out=held_out, tested=tested, validation=validation)


class Survey:
    """Collects the surveys of the chunks of a corpus, in order."""

    def __init__(self, cleaning: Cleaning, directory: Path | None = None) -> None:
        self._drops_duplicates = cleaning.duplicates == "drop"
        self._fates = bytearray()
        self._pairs, self._groups = _HashFile(directory), _HashFile(directory)

    def __len__(self) -> int:
        return len(self._fates)

    def add(self, chunk: SurveyedChunk) -> None:
        """Add the next chunk."""
        self._fates += chunk.fates
        self._pairs.write(chunk.pairs)
        if chunk.groups is not None:
            self._groups.write(chunk.groups)

    def finish(
        self, *, held_out: int, tested: int = 0, validation: Iterable[Pair] = ()
    ) -> tuple[NDArray[np.uint8], CleaningReport]:
        """Return the `Fate` of each pair, and the report."""
        fate = np.frombuffer(self._fates, dtype=np.uint8)
        if self._drops_duplicates:
            for repeated in _find_repeated(self._pairs):
                fate[repeated[fate[repeated] == Fate.TRAIN]] = Fate.DUPLICATE
        for count, aside in ((held_out, Fate.HELD_OUT), (tested, Fate.TEST)):
            if count:
                _hold_out(self._groups, fate, count, aside)
        known = _hash_texts([f"{pair.source.strip()}\0{pair.target.strip()}" for pair in validation])
        report = CleaningReport(pairs=len(fate), overlap=_overlap(known, self._pairs, fate))
        for reason in REASONS:
            chosen = fate == reason
            if count := int(chosen.sum()):
                report.drop(reason, int(chosen.argmax()) + 1, count)
        report.train, report.held_out = int((fate == Fate.TRAIN).sum()), int((fate == Fate.HELD_OUT).sum())
        report.tested = int((fate == Fate.TEST).sum())
        self._pairs.close()
        self._groups.close()
        return fate, report


class _HashFile:
    """Hashes in a temporary file without a name, read in parts; in memory without a directory."""

    def __init__(self, directory: Path | None) -> None:
        self._parts: list[Hashes] = []
        self._file: IO[bytes] | None = tempfile.TemporaryFile(dir=directory) if directory else None  # noqa: SIM115
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def write(self, hashes: Hashes) -> None:
        """Add hashes."""
        self._count += len(hashes)
        if self._file is None:
            self._parts.append(hashes)
        else:
            self._file.write(hashes.tobytes())

    def parts(self) -> Iterator[tuple[int, Hashes]]:
        """Yield the hashes in parts, each with the number of its first hash, from 0."""
        start = 0
        if self._file is None:
            for part in self._parts:
                yield start, part
                start += len(part)
            return
        self._file.seek(0)
        while data := self._file.read(8 * _PART):
            part = np.frombuffer(data, dtype=np.uint64)
            yield start, part
            start += len(part)

    def close(self) -> None:
        """Delete the hashes."""
        self._parts = []
        if self._file is not None:
            self._file.close()


def _decide_alone(sides: Sequence[Sequence[str]], cleaning: Cleaning, count: int) -> NDArray[np.uint8]:
    """Return the fate of each pair as far as it depends on the pair alone, given its texts without outer space."""
    fates = np.full(count, Fate.TRAIN, dtype=np.uint8)
    if not sides:
        return fates
    lengths = np.array([list(map(len, texts)) for texts in sides], dtype=np.int64)
    longest, shortest = lengths.max(axis=0), lengths.min(axis=0)
    if cleaning.min_overlap and len(sides) == 2:
        shares = [share_from_source(source, target) for source, target in zip(*sides, strict=True)]
        fates[np.array(shares) < cleaning.min_overlap] = Fate.OVERLAP
    fates[(longest + GRACE) / (shortest + GRACE) > cleaning.max_ratio] = Fate.RATIO
    fates[shortest == 0] = Fate.EMPTY
    fates[longest > cleaning.max_characters] = Fate.TOO_LONG
    return fates


def _find_repeated(hashes: _HashFile) -> Iterator[NDArray[np.int64]]:
    """Yield the numbers of the pairs that repeat an earlier one; the range of hashes is divided into parts."""
    parts = -(-len(hashes) // SORTED_AT_ONCE)
    width = np.uint64((1 << 64) // max(parts, 1) - (parts < 2))
    for part in range(parts):
        least, last = np.uint64(part) * width, part == parts - 1
        places, found = [], []
        for start, some in hashes.parts():
            chosen = np.flatnonzero((some >= least) & (last | (some - least < width)))
            places.append(chosen + start)
            found.append(some[chosen])
        numbers, values = np.concatenate(places), np.concatenate(found)
        order = np.argsort(values, kind="stable")
        values = values[order]
        yield numbers[order[1:][values[1:] == values[:-1]]]


def _hold_out(groups: _HashFile, fate: NDArray[np.uint8], held_out: int, aside: Fate) -> None:
    """Set the fate of the pairs to hold out: whole groups in the order of their hashes, as many as fit."""
    count = int((fate == Fate.TRAIN).sum())
    most = max(min(held_out, count // 10), 1)
    if count > most:
        smallest = np.zeros(0, dtype=np.uint64)
        for start, some in groups.parts():
            usable = some[fate[start : start + len(some)] == Fate.TRAIN]
            smallest = np.concatenate((smallest, usable))
            if len(smallest) > most:
                smallest = np.partition(smallest, most)[: most + 1]
        first_that_does_not_fit, found = smallest.max(), False
        for start, some in groups.parts():
            here = fate[start : start + len(some)]
            chosen = (some < first_that_does_not_fit) & (here == Fate.TRAIN)
            here[chosen] = aside
            found = found or bool(chosen.any())
        if found:
            return
    purpose = "the test" if aside == Fate.TEST else "validation"
    raise TooFew(
        f"There are too few usable training pairs ({count:,}), or too few different sources, to hold any out for "
        f"{purpose}. Give more pairs, or name a data.{purpose.removeprefix('the ')} corpus."
    )


def _overlap(known: Hashes, hashes: _HashFile, fate: NDArray[np.uint8]) -> int:
    """Return how many of the known hashes occur among those of the training pairs."""
    if not len(known):
        return 0
    found = [
        np.intersect1d(known, some[fate[start : start + len(some)] == Fate.TRAIN]) for start, some in hashes.parts()
    ]
    return int(np.isin(known, np.concatenate(found)).sum()) if found else 0


def _hash_texts(texts: Iterable[str], salt: bytes = b"") -> Hashes:
    """Return 64-bit hashes of texts that are the same on every machine."""
    blake2b = hashlib.blake2b
    digests = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, salt=salt).digest() for text in texts]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64, copy=False)


def _hash_stripped(sources: Iterable[str], targets: Iterable[str]) -> Hashes:
    """Return the hashes of pairs, given both sides without outer space."""
    return _hash_texts([f"{source}\0{target}" for source, target in zip(sources, targets, strict=True)])
