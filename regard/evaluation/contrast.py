"""Contrastive evaluation: is the right target more probable than a wrong one? (Sennrich, 2017).

A model also prefers some targets regardless of the source, such as short or frequent ones. With a control, every target
is also scored with the source of another item. The pointwise mutual information,
log P(target | source) − log P(target | another source), is free of such preferences.
"""

import json
import math
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.lines import read_lines
from regard.evaluation.likelihood import likelihoods
from regard.evaluation.senses import SenseItem, read_senses
from regard.evaluation.slices import by_length
from regard.foundation.display import columns
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.metrics.intervals import wilson
from regard.tasks.loaded import LoadedRun

Scorer = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""(sources, targets) → a score of each target; larger is better."""

MANY_IDS = 0.1
"""A warning is given if at least this share of sources look like ids."""

_ENDINGS = (".gz", ".tsv", ".txt", ".csv", ".jsonl", ".json")


class Item(NamedTuple):
    """A source, its right target, wrong ones, and the category of the error."""

    source: str
    correct: str
    wrong: tuple[str, ...]
    category: str


@dataclass(frozen=True, kw_only=True)
class Category:
    """The results of one category."""

    right: int
    count: int
    margin: float
    """Mean of log P(right) − log P(best wrong), in nats."""
    chance: float
    """Accuracy of random guessing."""
    gained: int | None = None
    """With a control: items whose right target gains more from its own source than any wrong one."""

    @property
    def accuracy(self) -> float:
        """Share of items whose right target scores best; a tie counts as wrong."""
        return self.right / self.count

    def facts(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON, with the 95 % interval of the accuracy."""
        low, high = wilson(self.right, self.count)
        control: dict[str, float] = {}
        if self.gained is not None:
            ends = wilson(self.gained, self.count)
            control = {
                "accuracy_by_source": self.gained / self.count,
                "by_source_low": ends[0],
                "by_source_high": ends[1],
            }
        return {
            "accuracy": self.accuracy,
            "low": low,
            "high": high,
            "right": self.right,
            "count": self.count,
            "margin": self.margin,
            "chance": self.chance,
            **control,
        }


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """The results of a model on a suite."""

    items: Sequence[Item]
    margins: Sequence[float]
    """Score of the right target minus that of the best wrong one, for each item."""
    lifts: Sequence[float] | None = None
    """With a control: the same for the score that the own source adds."""

    @property
    def total(self) -> Category:
        """All items together."""
        return self._category(range(len(self.items)))

    @property
    def categories(self) -> dict[str, Category]:
        """Results by category, in order of first occurrence."""
        return {name: self._category(places) for name, places in _by_category(self.items).items()}

    @property
    def lengths(self) -> dict[str, dict[str, Category]]:
        """Results by length of the source in words, then by category."""
        groups = _by_category(self.items)
        found: dict[str, dict[str, Category]] = {}
        for words, within in by_length([item.source for item in self.items]).items():
            inside = set(within)
            here = {name: [index for index in places if index in inside] for name, places in groups.items()}
            found[words] = {name: self._category(places) for name, places in here.items() if places}
        return found

    def _category(self, places: Sequence[int]) -> Category:
        margins = [self.margins[index] for index in places]
        return Category(
            right=sum(margin > 0 for margin in margins),
            count=len(margins),
            margin=math.fsum(margins) / len(margins),
            chance=math.fsum(1 / (1 + len(self.items[index].wrong)) for index in places) / len(places),
            gained=None if self.lifts is None else sum(self.lifts[index] > 0 for index in places),
        )

    def facts(self) -> dict[str, Any]:
        """Return accuracy and margin, overall and by category, as plain data for JSON."""
        return {
            "total": self.total.facts(),
            "categories": {name: category.facts() for name, category in self.categories.items()},
            "lengths": {
                words: {name: category.facts() for name, category in several.items()}
                for words, several in self.lengths.items()
            },
        }

    def __str__(self) -> str:
        rows = [["category", "accuracy", "95 %", "items", "margin", "chance"]]
        rows[0] += [] if self.lifts is None else ["by source", "95 %"]
        for name, category in [*self.categories.items(), ("all", self.total)]:
            low, high = wilson(category.right, category.count)
            interval = f"{100 * low:.1f}–{100 * high:.1f}"
            shares = f"{100 * category.accuracy:.1f} %", interval, f"{category.count:,}"
            rows.append([name, *shares, f"{category.margin:+.2f}", f"{100 * category.chance:.0f} %"])
            if category.gained is not None:
                low, high = wilson(category.gained, category.count)
                rows[-1] += [f"{100 * category.gained / category.count:.1f} %", f"{100 * low:.1f}–{100 * high:.1f}"]
        table = columns(rows, right=range(1, 8))
        return f"{table}\n\n{self._by_length()}" if len(self.lengths) > 1 else table

    def _by_length(self) -> str:
        """Return a table of accuracy (and items) by length of the source, with a column for each category."""
        names = list(self.categories)
        rows = [["words in the source", *names]]
        for words, several in self.lengths.items():
            cells = [
                f"{100 * category.accuracy:.1f} % ({category.count:,})" if (category := several.get(name)) else ""
                for name in names
            ]
            rows.append([words, *cells])
        return columns(rows, right=range(1, len(names) + 1))


def contrast(items: Sequence[Item], scorer: Scorer, *, control: bool = False) -> Contrast:
    """Score every target of every item; with `control`, also with the source of another item of its category."""
    own = _scores(items, [item.source for item in items], scorer)
    margins = [right - max(wrong) for right, *wrong in own]
    if not control:
        return Contrast(items=items, margins=margins)
    lifts = []
    for mine, other in zip(own, _scores(items, _others(items), scorer), strict=True):
        right, *wrong = (with_own - without for with_own, without in zip(mine, other, strict=True))
        lifts.append(right - max(wrong))
    return Contrast(items=items, margins=margins, lifts=lifts)


def _scores(items: Sequence[Item], sources: Sequence[str], scorer: Scorer) -> list[list[float]]:
    """Return the scores of each item's targets with a given source, the right one first, in one call of the scorer."""
    targets = [(item.correct, *item.wrong) for item in items]
    asked = [source for source, several in zip(sources, targets, strict=True) for _ in several]
    scores = iter(scorer(asked, [target for several in targets for target in several]))
    return [[next(scores) for _ in several] for several in targets]


def _others(items: Sequence[Item]) -> list[str]:
    """Return for each item the source of another item of its category, half a category away."""
    found = [item.source for item in items]
    for name, places in _by_category(items).items():
        if len({items[number].source for number in places}) < 2:
            raise UsageError(f'A control needs other sources, but category "{name}" has only one.')
        for at, number in enumerate(places):
            away = next(
                other
                for step in range(len(places))
                if items[other := places[(at + len(places) // 2 + step) % len(places)]].source != items[number].source
            )
            found[number] = items[away].source
    return found


def _by_category(items: Sequence[Item]) -> dict[str, list[int]]:
    """Return the indices of the items of each category, in order of first occurrence."""
    groups: dict[str, list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        groups[item.category].append(index)
    return groups


def by_model(translator: LoadedRun, *, per_token: bool = False, progress: Progress | None = None) -> Scorer:
    """Return a scorer that uses the log-probability of targets, or its mean per token."""

    def scorer(sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        found = likelihoods(translator, sources, targets, progress=progress)
        return [likelihood.log_prob / (len(likelihood.log_probs) if per_token else 1) for likelihood in found]

    return scorer


def read_suite(path: Path) -> list[Item] | list[SenseItem]:
    """Return the items of a file: tab-separated, with or without a header line, or JSON lines; plain or gzip.

    Without a header, columns are source, right target, and one or more wrong ones. With one, they are called `source`,
    `correct`, `wrong` (or a name that begins so, or `incorrect`) and `category`, as are the fields of a JSON object.
    The default category is the name of the file. A file with `good` and `bad` words instead of targets is a word-sense
    suite.
    """
    lines = [(number, line) for number, line in enumerate(read_lines(path, whole=True), start=1) if line.strip()]
    if not lines:
        raise RegardError(f"{path} is empty. Write one item per line.")
    name = path.name
    while any(name.endswith(ending) and name != ending for ending in _ENDINGS):
        name = name[: name.rindex(".")]
    if (senses := read_senses(path, name, lines)) is not None:
        return senses
    if lines[0][1].lstrip().startswith("{"):
        return [_from_json(line, f"{path}:{number}", name) for number, line in lines]
    return list(_from_table(lines, path, name))


def looks_like_id(source: str) -> bool:
    """Return whether a source looks like an id: it has no letters, or no spaces in a script that uses them."""
    kinds = {unicodedata.category(character) for character in source}
    if not any(kind.startswith("L") for kind in kinds):
        return True
    return not any(map(str.isspace, source.strip())) and "Lo" not in kinds  # Lo: Chinese, Japanese, Thai and others


def warn_of_ids(items: Sequence[Item] | Sequence[SenseItem]) -> str | None:
    """Return a warning if many sources look like ids, such as those of a key file; otherwise `None`."""
    odd = [item.source for item in items if looks_like_id(item.source)]
    if len(odd) < MANY_IDS * len(items) or not odd:
        return None
    return (
        f"{len(odd):,} of {len(items):,} sources have no letters or no spaces, such as `{odd[0][:60]}`. They look like "
        "ids, not like sentences. Check that the first column holds the source text. A MuCoW key file is read with "
        "--source FILE, the file of its sentences."
    )


def warn_of_equals(items: Sequence[Item]) -> str | None:
    """Return a warning if a wrong target of some items equals the right one; otherwise `None`."""
    equal = [number for number, item in enumerate(items, start=1) if item.correct in item.wrong]
    if not equal:
        return None
    first = items[equal[0] - 1]
    has = "has" if len(equal) == 1 else "have"
    return (
        f"{len(equal):,} of {len(items):,} items {has} a wrong target that equals the right one, the first of them "
        f"item {equal[0]:,} (`{first.correct[:60]}`). They count as wrong answers for every model. "
        "Correct or remove them."
    )


def _from_table(lines: Sequence[tuple[int, str]], path: Path, name: str) -> Iterator[Item]:
    titles = [title.strip().lower() for title in lines[0][1].split("\t")]
    if titled := {"source", "correct"} <= set(titles):
        if not any(map(_is_wrong, titles)):
            raise RegardError(f"{path} has no column `wrong`. Its columns are {', '.join(titles)}.")
        lines = lines[1:]
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) < 3 or (titled and len(cells) != len(titles)):
            wanted = f"{len(titles)}, as the header has" if titled else "at least 3: source, correct, wrong"
            raise RegardError(f"{path}:{number} has {len(cells)} tab-separated columns, but there must be {wanted}.")
        if titled:
            row = dict(zip(titles, cells, strict=True))
            wrong = tuple(cell for title, cell in zip(titles, cells, strict=True) if _is_wrong(title) and cell)
            if not wrong:
                raise RegardError(f"{path}:{number} has no wrong target. Give it at least one.")
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
            f'{place} is not an item. Write an object such as {{"source": "…", "correct": "…", "wrong": ["…"]}}.'
        )
    return Item(texts[0], texts[1], tuple(texts[2:]), str(record.get("category") or name))


def _is_wrong(title: str) -> bool:
    return title.startswith(("wrong", "incorrect"))
