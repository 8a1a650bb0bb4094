"""Contrastive evaluation: does a model find the right target likelier than a wrong one? (Sennrich, 2017)."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.lines import read_lines
from regard.data.progress import Progress
from regard.errors import RegardError
from regard.evaluation.display import columns
from regard.evaluation.intervals import wilson
from regard.evaluation.likelihood import likelihoods
from regard.translator import Translator

Scorer = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""(sources, targets) → how good each target is, larger being better."""

_ENDINGS = (".gz", ".tsv", ".txt", ".csv", ".jsonl", ".json")


class Item(NamedTuple):
    """A source, its right target, wrong ones, and what is wrong with them."""

    source: str
    correct: str
    wrong: tuple[str, ...]
    category: str


@dataclass(frozen=True, kw_only=True)
class Category:
    """How often the right target won within a category."""

    right: int
    count: int
    margin: float
    """Mean of log P(right) − log P(best wrong), in nats."""
    chance: float
    """What guessing would give."""

    @property
    def accuracy(self) -> float:
        """Share of items whose right target won; a tie is lost."""
        return self.right / self.count

    def facts(self) -> dict[str, Any]:
        """All of it as JSON knows it, with the 95 % interval of the accuracy."""
        low, high = wilson(self.right, self.count)
        return {
            "accuracy": self.accuracy,
            "low": low,
            "high": high,
            "right": self.right,
            "count": self.count,
            "margin": self.margin,
            "chance": self.chance,
        }


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """The answer of a model to a suite."""

    items: Sequence[Item]
    margins: Sequence[float]
    """Score of the right target minus that of the best wrong one, for each item."""

    @property
    def total(self) -> Category:
        """All items together."""
        return _category(list(zip(self.items, self.margins, strict=True)))

    @property
    def categories(self) -> dict[str, Category]:
        """In the order in which they first come."""
        groups: dict[str, list[tuple[Item, float]]] = defaultdict(list)
        for item, margin in zip(self.items, self.margins, strict=True):
            groups[item.category].append((item, margin))
        return {name: _category(group) for name, group in groups.items()}

    def facts(self) -> dict[str, Any]:
        """Accuracy and margin, in all and by category, as JSON knows them."""
        return {
            "total": self.total.facts(),
            "categories": {name: one.facts() for name, one in self.categories.items()},
        }

    def __str__(self) -> str:
        rows = [("category", "accuracy", "95 %", "items", "margin", "chance")]
        for name, one in [*self.categories.items(), ("all", self.total)]:
            low, high = wilson(one.right, one.count)
            interval = f"{100 * low:.1f}–{100 * high:.1f}"
            shares = f"{100 * one.accuracy:.1f} %", interval, f"{one.count:,}"
            rows.append((name, *shares, f"{one.margin:+.2f}", f"{100 * one.chance:.0f} %"))
        return columns(rows, right=range(1, 6))


def contrast(items: Sequence[Item], scorer: Scorer) -> Contrast:
    """Score every target of every item at once; the order of items does not matter."""
    pairs = [(item.source, target) for item in items for target in (item.correct, *item.wrong)]
    scores = iter(scorer([source for source, _ in pairs], [target for _, target in pairs]))
    margins = []
    for item in items:
        right = next(scores)
        margins.append(right - max(next(scores) for _ in item.wrong))
    return Contrast(items=items, margins=margins)


def by_model(translator: Translator, *, per_token: bool = False, progress: Progress | None = None) -> Scorer:
    """Targets scored by their log-probability, or by its mean over their tokens."""

    def scorer(sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        found = likelihoods(translator, sources, targets, progress=progress)
        return [one.log_prob / (len(one.log_probs) if per_token else 1) for one in found]

    return scorer


def read_suite(path: Path) -> list[Item]:
    """The items of a file: tab-separated, with or without a header line, or JSON lines; plain or gzip.

    Without a header, columns are source, right target, and one or more wrong ones. With one, they are called `source`,
    `correct`, `wrong` (or beginning so, or `incorrect`) and `category`, as are the fields of a JSON object. What has no
    category has the file's name as one.
    """
    lines = [(number, line) for number, line in enumerate(read_lines(path, whole=True), start=1) if line.strip()]
    if not lines:
        raise RegardError(f"{path} is empty: one item a line is wanted.")
    name = path.name
    while any(name.endswith(ending) and name != ending for ending in _ENDINGS):
        name = name[: name.rindex(".")]
    if lines[0][1].lstrip().startswith("{"):
        return [_from_json(line, f"{path}:{number}", name) for number, line in lines]
    return list(_from_table(lines, path, name))


def _from_table(lines: Sequence[tuple[int, str]], path: Path, name: str) -> Iterator[Item]:
    titles = [title.strip().lower() for title in lines[0][1].split("\t")]
    if titled := {"source", "correct"} <= set(titles):
        if not any(map(_is_wrong, titles)):
            raise RegardError(f"{path} has no column `wrong`: its columns are {', '.join(titles)}.")
        lines = lines[1:]
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) < 3 or (titled and len(cells) != len(titles)):
            wanted = f"{len(titles)}, as the header has" if titled else "at least 3: source, correct, wrong"
            raise RegardError(f"{path}:{number} has {len(cells)} tab-separated columns; there must be {wanted}.")
        if titled:
            row = dict(zip(titles, cells, strict=True))
            wrong = tuple(cell for title, cell in zip(titles, cells, strict=True) if _is_wrong(title) and cell)
            if not wrong:
                raise RegardError(f"{path}:{number} has no wrong target: give it at least one.")
            yield Item(row["source"], row["correct"], wrong, row.get("category") or name)
        else:
            yield Item(cells[0], cells[1], tuple(cell for cell in cells[2:] if cell) or ("",), name)


def _from_json(line: str, place: str, name: str) -> Item:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RegardError(f"{place} is not valid JSON ({error}).") from None
    wrong = record.get("wrong") if isinstance(record, dict) else None
    listed = [wrong] if isinstance(wrong, str) else wrong
    texts: list[Any] = (
        [record.get("source"), record.get("correct"), *listed] if isinstance(listed, list) and listed else [None]
    )
    if not all(isinstance(text, str) for text in texts):
        raise RegardError(
            f'{place} is no item: an object such as {{"source": "…", "correct": "…", "wrong": ["…"]}} is wanted.'
        )
    return Item(texts[0], texts[1], tuple(texts[2:]), str(record.get("category") or name))


def _is_wrong(title: str) -> bool:
    return title.startswith(("wrong", "incorrect"))


def _category(group: Sequence[tuple[Item, float]]) -> Category:
    return Category(
        right=sum(margin > 0 for _, margin in group),
        count=len(group),
        margin=math.fsum(margin for _, margin in group) / len(group),
        chance=math.fsum(1 / (1 + len(item.wrong)) for item, _ in group) / len(group),
    )
