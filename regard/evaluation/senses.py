"""Word senses in translations: does the output contain a right or a wrong word for an ambiguous source word?

Suites of the MuCoW kind (Raganato et al., 2019) list good and bad target words for each source sentence. The model
translates the sentence, and the words are searched in its output; probabilities are not used.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.lines import read_lines
from regard.foundation.display import columns
from regard.foundation.errors import RegardError, UsageError
from regard.metrics.intervals import wilson
from regard.metrics.meteor import words

RIGHT, WRONG, NEITHER = "right", "wrong", "neither"
KEY_COLUMNS = 5
"""Columns of a MuCoW key file: id, corpus, ambiguous word, good words, bad words."""


class SenseItem(NamedTuple):
    """A source sentence, and words that a translation with the right sense, or with a wrong one, may contain."""

    source: str
    good: tuple[str, ...]
    bad: tuple[str, ...]
    category: str


@dataclass(frozen=True, kw_only=True)
class SenseCounts:
    """Number of outputs of a category with a good word, a bad word, or neither."""

    right: int
    wrong: int
    neither: int

    @property
    def count(self) -> int:
        """Number of items."""
        return self.right + self.wrong + self.neither

    @property
    def precision(self) -> float:
        """right / (right + wrong)."""
        return self.right / max(1, self.right + self.wrong)

    @property
    def recall(self) -> float:
        """right / (right + neither), as defined in the MuCoW papers."""
        return self.right / max(1, self.right + self.neither)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    @property
    def coverage(self) -> float:
        """Share of items whose output contains a good or a bad word."""
        return (self.right + self.wrong) / max(1, self.count)

    def facts(self) -> dict[str, Any]:
        """Return everything as plain data for JSON, with the 95 % interval of the precision."""
        low, high = wilson(self.right, self.right + self.wrong)
        return {
            "right": self.right,
            "wrong": self.wrong,
            "neither": self.neither,
            "count": self.count,
            "precision": self.precision,
            "low": low,
            "high": high,
            "recall": self.recall,
            "f1": self.f1,
            "coverage": self.coverage,
        }


@dataclass(frozen=True, kw_only=True)
class Senses:
    """The outputs of a system for a word-sense suite, and what was found in them."""

    items: Sequence[SenseItem]
    outputs: Sequence[str]
    found: Sequence[str]
    """`right`, `wrong` or `neither` for each item."""

    @property
    def total(self) -> SenseCounts:
        """Counts over all items."""
        return _count(self.found)

    @property
    def categories(self) -> dict[str, SenseCounts]:
        """Counts by category, in the order in which categories first occur."""
        groups: dict[str, list[str]] = {}
        for item, verdict in zip(self.items, self.found, strict=True):
            groups.setdefault(item.category, []).append(verdict)
        return {name: _count(verdicts) for name, verdicts in groups.items()}

    def facts(self) -> dict[str, Any]:
        """Return all counts and shares as plain data for JSON."""
        return {
            "total": self.total.facts(),
            "categories": {name: counts.facts() for name, counts in self.categories.items()},
        }

    def __str__(self) -> str:
        rows = [["category", "right", "wrong", "neither", "precision", "95 %", "recall", "F1", "coverage"]]
        for name, counts in [*self.categories.items(), ("all", self.total)]:
            facts = counts.facts()
            shares = [f"{100 * facts[share]:.1f} %" for share in ("recall", "f1", "coverage")]
            interval = f"{100 * facts['low']:.1f}–{100 * facts['high']:.1f}"
            numbers = [f"{facts[verdict]:,}" for verdict in (RIGHT, WRONG, NEITHER)]
            rows.append([name, *numbers, f"{100 * counts.precision:.1f} %", interval, *shares])
        note = "An output is right if it contains a good word and no bad one, wrong if it contains a bad one."
        return f"{columns(rows, right=range(1, 9))}\n\n{note}"

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row for each item, the wrong ones first, with a header row before them."""
        order = [WRONG, NEITHER, RIGHT]
        found = sorted(zip(self.found, self.items, self.outputs, strict=True), key=lambda row: order.index(row[0]))
        return [
            ("found", "category", "source", "output", "good", "bad"),
            *((verdict, i.category, i.source, out, " ".join(i.good), " ".join(i.bad)) for verdict, i, out in found),
        ]


def count_senses(items: Sequence[SenseItem], outputs: Sequence[str]) -> Senses:
    """Look for the good and bad words of each item in its output, as whole words, ignoring case."""
    if len(items) != len(outputs):
        raise UsageError(f"There are {len(outputs):,} outputs for {len(items):,} items. The numbers must be equal.")
    found = []
    for item, output in zip(items, outputs, strict=True):
        output_words = words(output)
        good, bad = (any(_contains(output_words, words(word)) for word in some) for some in (item.good, item.bad))
        found.append(WRONG if bad else RIGHT if good else NEITHER)
    return Senses(items=items, outputs=outputs, found=found)


def read_senses(path: Path, name: str, lines: Sequence[tuple[int, str]]) -> list[SenseItem] | None:
    """Read the numbered lines of a file as a word-sense suite, or return `None` if they are something else.

    A suite is JSON lines with the fields `source`, `good`, `bad` and, if wanted, `category`; or tab-separated with a
    header line that names these columns, where spaces separate words.
    """
    first = lines[0][1]
    if first.lstrip().startswith("{"):
        records = [(number, _parse(line, f"{path}:{number}")) for number, line in lines]
        if not any(isinstance(record, dict) and ("good" in record or "bad" in record) for _, record in records):
            return None
        return [_from_record(record, f"{path}:{number}", name) for number, record in records]
    titles = [title.strip().lower() for title in first.split("\t")]
    if "source" not in titles or not {"good", "bad"} & set(titles):
        return None
    found = []
    for number, line in lines[1:]:
        cells = line.split("\t")
        if len(cells) != len(titles):
            raise RegardError(
                f"{path}:{number} has {len(cells)} tab-separated columns, but the header names {len(titles)}. Give "
                "every line as many columns."
            )
        row: dict[str, Any] = dict(zip(titles, cells, strict=True))
        row |= {side: row.get(side, "").split() for side in ("good", "bad")}
        found.append(_from_record(row, f"{path}:{number}", name))
    return found


def read_key(path: Path, sentences: Path) -> list[SenseItem]:
    """Read a MuCoW key file with the file of its source sentences, which belong together line by line."""
    keys = [line for line in read_lines(path, whole=True) if line.strip()]
    sources = list(read_lines(sentences, whole=True))
    if len(keys) != len(sources):
        raise UsageError(
            f"{path} has {len(keys):,} lines, but {sentences} has {len(sources):,}. Name the sentences that belong to "
            "this key, line by line."
        )
    found = []
    for number, (line, source) in enumerate(zip(keys, sources, strict=True), start=1):
        cells = line.split("\t")
        if len(cells) < KEY_COLUMNS:
            raise RegardError(
                f"{path}:{number} has {len(cells)} tab-separated columns. A MuCoW key has {KEY_COLUMNS}: id, corpus, "
                "ambiguous word, good words, bad words."
            )
        record = {"source": source, "good": cells[3].split(), "bad": cells[4].split(), "category": cells[1]}
        found.append(_from_record(record, f"{path}:{number}", path.name))
    return found


def _from_record(record: object, place: str, name: str) -> SenseItem:
    fields: Mapping[str, Any] = record if isinstance(record, dict) else {}
    good, bad = ([listed] if isinstance(listed := fields.get(side, []), str) else listed for side in ("good", "bad"))
    source = fields.get("source")
    lists = isinstance(good, list) and isinstance(bad, list)
    if not isinstance(source, str) or not lists or not good or not all(isinstance(w, str) for w in (*good, *bad)):
        raise RegardError(
            f'{place} is not an item of a word-sense suite. Write {{"source": "…", "good": ["…"], "bad": ["…"]}}, with '
            "at least one good word."
        )
    if empty := [word for word in (*good, *bad) if not words(word)]:
        raise RegardError(f"{place}: {empty[0]!r} is not a word that an output can contain. Remove it.")
    return SenseItem(source, tuple(good), tuple(bad), str(fields.get("category") or name))


def _parse(line: str, place: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RegardError(f"{place} is not valid JSON ({error}).") from None


def _contains(output_words: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether the output contains the wanted words consecutively."""
    return any(
        list(output_words[at : at + len(wanted)]) == list(wanted) for at in range(len(output_words) - len(wanted) + 1)
    )


def _count(verdicts: Sequence[str]) -> SenseCounts:
    return SenseCounts(right=verdicts.count(RIGHT), wrong=verdicts.count(WRONG), neither=verdicts.count(NEITHER))
