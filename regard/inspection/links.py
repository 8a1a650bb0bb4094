"""Links between words of two texts: gold ones in files, two directions made one, and how far found ones are from gold.

A link is a pair (source word, target word), both counted from 0.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.data.lines import read_lines
from regard.errors import RegardError

Link = tuple[int, int]
Links = frozenset[Link]

Combining = Literal["none", "intersection", "union", "grow-diag"]
COMBINING: tuple[Combining, ...] = ("none", "intersection", "union", "grow-diag")

_PHARAOH = re.compile(r"(\d+)([-?p])(\d+)")
_NUMBERED = re.compile(r"\s*\d+\s+\d+\s+\d+(\s+[SP])?(\s+[\d.]+)?\s*")


@dataclass(frozen=True)
class Gold:
    """What people say belongs together: surely, or possibly; whatever is sure is possible."""

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

    def facts(self) -> dict[str, Any]:
        """All of it as JSON knows it."""
        return {
            "aer": self.error_rate,
            "precision": self.precision,
            "recall": self.recall,
            "found": self.found,
            "sure": self.sure,
        }


def score(found: Iterable[Links], gold: Iterable[Gold]) -> Scores:
    """The scores of a corpus: counts are added up over its sentences."""
    counts = [0, 0, 0, 0]
    for links, want in zip(found, gold, strict=True):
        for place, some in enumerate((links, want.sure, links & want.possible, links & want.sure)):
            counts[place] += len(some)
    return Scores(*counts)


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


def read_gold(path: Path | str, lengths: Sequence[tuple[int, int]]) -> list[Gold]:
    """Gold links of sentence pairs with these numbers of words, in either of two formats.

    Pharaoh: a line for each pair, `0-0` for sure and `0?1` or `0p1` for possible links, counted from 0. The shared
    task of 2003 (Mihalcea and Pedersen): a line for each link, `sentence source target S` (or `P`), counted from 1.
    """
    lines = list(read_lines(path))
    filled = [line for line in lines if line.strip()]
    if filled and all(_NUMBERED.fullmatch(line) for line in filled):
        return _numbered(path, lines, lengths)
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
            match = _PHARAOH.fullmatch(word)
            if match is None:
                raise RegardError(
                    f'{path}:{number}: "{word}" is no link: write 0-1 for a sure and 0?1 for a possible one, or a line '
                    '"sentence source target S" for each link.'
                )
            link = int(match[1]), int(match[3])
            _check(link, sizes, f"{path}:{number}", word, "0")
            (sure if match[2] == "-" else possible).add(link)
        found.append(Gold(frozenset(sure), frozenset(sure | possible)))
    return found


def _numbered(path: Path | str, lines: Sequence[str], lengths: Sequence[tuple[int, int]]) -> list[Gold]:
    """Links of lines `sentence source target [S|P]`."""
    sure: list[set[Link]] = [set() for _ in lengths]
    possible: list[set[Link]] = [set() for _ in lengths]
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        sentence, source, target, *rest = line.split()
        pair = int(sentence) - 1
        if not 0 <= pair < len(lengths):
            raise RegardError(
                f"{path}:{number} is about sentence {sentence}, but there are {len(lengths):,} pairs, counted from 1."
            )
        link = int(source) - 1, int(target) - 1
        _check(link, lengths[pair], f"{path}:{number}", line.strip(), "1")
        (possible if rest[:1] == ["P"] else sure)[pair].add(link)
    return [Gold(frozenset(one), frozenset(one | other)) for one, other in zip(sure, possible, strict=True)]


def _check(link: Link, sizes: tuple[int, int], where: str, text: str, first: str) -> None:
    if not (0 <= link[0] < sizes[0] and 0 <= link[1] < sizes[1]):
        raise RegardError(
            f'{where}: "{text}" points outside its pair of {sizes[0]} source and {sizes[1]} target words (counted from '
            f"{first}, by white space). Is this the text that was aligned, source before target?"
        )
