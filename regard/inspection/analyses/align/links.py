"""Links between words of two texts: gold ones in files, two directions made one, and how far found ones are from gold.

A link is a pair (source word, target word), both counted from 0.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from regard.data.lines import read_lines
from regard.foundation.errors import RegardError
from regard.metrics.intervals import Interval, Totals, bootstrap_interval

Link = tuple[int, int]
Links = frozenset[Link]

Combining = Literal["none", "intersection", "union", "grow-diag"]
COMBINING: tuple[Combining, ...] = ("none", "intersection", "union", "grow-diag")

_PHARAOH = re.compile(r"(\d+)([-?p])(\d+)")
_NUMBERED = re.compile(r"\s*\d+\s+\d+\s+\d+(\s+[SP])?(\s+[\d.]+)?\s*")


@dataclass(frozen=True)
class Gold:
    """Links made by people: sure and possible ones; every sure link is also possible."""

    sure: Links
    possible: Links


@dataclass(frozen=True)
class Scores:
    """Found links A against sure ones S and possible ones P (Och and Ney, 2003).

    Precision |A∩P|/|A|, recall |A∩S|/|S|, alignment error rate 1 − (|A∩S| + |A∩P|)/(|A| + |S|).
    """

    found: int
    sure: int
    right: int
    """Found links that are possible."""
    covered: int
    """Found links that are sure."""
    interval: Interval | None = None
    """The 95 % interval of the error rate, by a bootstrap over sentences; none for a single one."""

    @property
    def precision(self) -> float:
        """The share of found links that are right."""
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """The share of sure links that are found."""
        return self.covered / self.sure if self.sure else 0.0

    @property
    def error_rate(self) -> float:
        """The alignment error rate, AER."""
        total = self.found + self.sure
        return 1 - (self.covered + self.right) / total if total else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "aer": self.error_rate,
            "aer_95": None if self.interval is None else list(self.interval),
            "precision": self.precision,
            "recall": self.recall,
            "found": self.found,
            "sure": self.sure,
        }


def score(found: Iterable[Links], gold: Iterable[Gold]) -> Scores:
    """The scores of a corpus: counts are added up over its sentences."""
    rows = [
        (len(links), len(want.sure), len(links & want.possible), len(links & want.sure))
        for links, want in zip(found, gold, strict=True)
    ]
    interval = bootstrap_interval(rows, _error_rates, low=0.0, high=1.0) if len(rows) > 1 else None
    found_, sure, right, covered = (sum(row[column] for row in rows) for column in range(4))
    return Scores(found_, sure, right, covered, interval)


def _error_rates(totals: Totals) -> Totals:
    """Return the error rates of totals (…×4): found, sure, right, covered."""
    whole = totals[..., 0] + totals[..., 1]
    right = totals[..., 2] + totals[..., 3]
    rates: Totals = 1 - np.divide(right, whole, out=np.ones_like(whole), where=whole > 0)
    return rates


def combine(forward: Links, backward: Links, how: Combining) -> Links:
    """Links of two directions as one set."""
    if how == "none":
        return forward
    if how == "intersection":
        return forward & backward
    return forward | backward if how == "union" else grow_diag(forward, backward)


def grow_diag(forward: Links, backward: Links) -> Links:
    """Their intersection, grown by neighbours from their union that link a word which has no link (Koehn, 2003)."""
    union, found = forward | backward, set(forward & backward)
    sources, targets = {s for s, _ in found}, {t for _, t in found}
    grown = True
    while grown:
        grown = False
        for s, t in sorted(found, key=lambda link: (link[1], link[0])):
            for new in ((s + across, t + down) for across in (-1, 0, 1) for down in (-1, 0, 1)):
                if new in union and new not in found and (new[0] not in sources or new[1] not in targets):
                    found.add(new)
                    sources.add(new[0])
                    targets.add(new[1])
                    grown = True
    return frozenset(found)


def pharaoh(links: Links) -> str:
    """Links as a line of text: `0-0 1-2`."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def read_gold(path: Path | str, lengths: Sequence[tuple[int, int]], *, skipped: list[str] | None = None) -> list[Gold]:
    """Gold links of sentence pairs with these numbers of words, in either of two formats.

    Pharaoh: a line for each pair, `0-0` for sure and `0?1` or `0p1` for possible links, counted from 0. The shared
    task of 2003 (Mihalcea and Pedersen): a line for each link, `sentence source target S` (or `P`), counted from 1.

    A bad link is refused; with a list of those `skipped` it is left out, and what is wrong with it is added there.
    """
    lines = list(read_lines(path))
    filled = [line for line in lines if line.strip()]
    numbered = sum(_NUMBERED.fullmatch(line) is not None for line in filled)
    if filled and (numbered == len(filled) or (skipped is not None and numbered > len(filled) / 2)):
        return _number_links(path, lines, lengths, skipped)
    while len(lines) > len(lengths) and not lines[-1].strip():
        lines.pop()
    if len(lines) != len(lengths):
        raise RegardError(
            f"{path} has {len(lines):,} lines for {len(lengths):,} sentence pairs: it needs one for each, empty where "
            "a pair has no links."
        )
    found = []
    for number, (line, sizes) in enumerate(zip(lines, lengths, strict=True), start=1):
        sure: set[Link] = set()
        possible: set[Link] = set()
        for word in line.split():
            try:
                link, is_sure = _pharaoh_link(word, sizes, f"{path}:{number}")
            except RegardError as error:
                _skip(error, skipped)
                continue
            (sure if is_sure else possible).add(link)
        found.append(Gold(frozenset(sure), frozenset(sure | possible)))
    return found


def _pharaoh_link(word: str, sizes: tuple[int, int], where: str) -> tuple[Link, bool]:
    """Return the link of a word such as `0-1`, and whether it is sure."""
    match = _PHARAOH.fullmatch(word)
    if match is None:
        raise RegardError(
            f'{where}: "{word}" is not a link: write 0-1 for a sure and 0?1 for a possible one, or a line "sentence '
            'source target S" for each link. With --skip-bad such links are left out.'
        )
    link = int(match[1]), int(match[3])
    _check(link, sizes, where, word, "0")
    return link, match[2] == "-"


def _number_links(
    path: Path | str, lines: Sequence[str], lengths: Sequence[tuple[int, int]], skipped: list[str] | None
) -> list[Gold]:
    """Links of lines `sentence source target [S|P]`."""
    sure: list[set[Link]] = [set() for _ in lengths]
    possible: list[set[Link]] = [set() for _ in lengths]
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            pair, link, is_sure = _numbered_link(line, lengths, f"{path}:{number}")
        except RegardError as error:
            _skip(error, skipped)
            continue
        (sure if is_sure else possible)[pair].add(link)
    return [Gold(frozenset(certain), frozenset(certain | other)) for certain, other in zip(sure, possible, strict=True)]


def _numbered_link(line: str, lengths: Sequence[tuple[int, int]], where: str) -> tuple[int, Link, bool]:
    """Return the pair, the link and whether it is sure, of a line `sentence source target [S|P]`."""
    if _NUMBERED.fullmatch(line) is None:
        raise RegardError(f'{where}: "{line.strip()[:60]}" is not a link: write "sentence source target S" (or P).')
    sentence, source, target, *rest = line.split()
    pair = int(sentence) - 1
    if not 0 <= pair < len(lengths):
        raise RegardError(
            f"{where} is about sentence {sentence}, but there are {len(lengths):,} pairs, counted from 1. With "
            "--skip-bad such links are left out."
        )
    link = int(source) - 1, int(target) - 1
    _check(link, lengths[pair], where, line.strip(), "1")
    return pair, link, rest[:1] != ["P"]


def _skip(error: RegardError, skipped: list[str] | None) -> None:
    """Note a bad link, or refuse it where none may be left out."""
    if skipped is None:
        raise error
    skipped.append(str(error))


def _check(link: Link, sizes: tuple[int, int], where: str, text: str, first: str) -> None:
    if not (0 <= link[0] < sizes[0] and 0 <= link[1] < sizes[1]):
        raise RegardError(
            f'{where}: "{text}" points outside its pair of {sizes[0]} source and {sizes[1]} target words (counted from '
            f"{first}, by white space). Is this the text that was aligned, source before target? With --skip-bad such "
            "links are left out."
        )
