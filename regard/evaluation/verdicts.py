"""Answers of human judges, read from their files and counted by system."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np

from regard.data.lines import read_lines
from regard.evaluation.form import LETTERS, Key, read_json
from regard.foundation.display import columns
from regard.foundation.errors import RegardError, UsageError
from regard.metrics.agreement import krippendorff
from regard.metrics.intervals import wilson

ASPECTS = ("adequate", "fluent")
SAMPLES = 1000
_YES = {"yes", "y", "1", "true", "x", "ja", "oui", "sí", "si"}
_NO = {"no", "n", "0", "false", "nein", "non"}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answers of one judge for one item; `None` where there is none."""

    adequate: tuple[bool | None, ...]
    fluent: tuple[bool | None, ...]
    better: int | Literal["equal"] | None = None
    """Index of the better candidate."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """All answers of one judge."""

    judge: str
    form: str
    items: Mapping[int, Answer]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The result of a system: shares of yes with their 95 % intervals, and of comparisons won."""

    system: str
    rates: Mapping[str, tuple[int, int]]
    """Number of yes and of answers, by aspect."""
    wins: float
    """Share of comparisons won; a tie counts half; ½ if there are none."""
    low: float
    high: float
    """Its 95 % bootstrap interval over items."""
    first: float
    """Share of the resamples in which it ranks first; tied systems divide the resample, so that shares sum to 1."""
    comparisons: int
    """Number of comparisons that it took part in."""

    def facts(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        rates = {
            aspect: {"rate": yes / count if count else None, "interval": wilson(yes, count), "answers": count}
            for aspect, (yes, count) in self.rates.items()
        }
        if not self.comparisons:
            return {**rates, "wins": {"rate": None, "interval": None, "first": None, "comparisons": 0}}
        wins = {"rate": self.wins, "interval": (self.low, self.high), "first": self.first}
        return {**rates, "wins": {**wins, "comparisons": self.comparisons}}


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """The ranking, best system first, and the agreement of the judges."""

    standings: Sequence[Standing]
    agreement: Mapping[str, float | None]
    """Krippendorff's alpha by question; `None` if it is undefined, as with one judge."""
    judges: Mapping[str, int]
    """Number of items that each judge answered."""
    items: int

    def facts(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        return {
            "systems": {standing.system: standing.facts() for standing in self.standings},
            "agreement": dict(self.agreement),
            "judges": dict(self.judges),
            "items": self.items,
        }

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("", *ASPECTS, "better than others", "first")]
        for standing in self.standings:
            shares = [
                _share(yes / count, wilson(yes, count)) if count else "–" for yes, count in standing.rates.values()
            ]
            wins = _share(standing.wins, (standing.low, standing.high)) if standing.comparisons else "–"
            first = f"{100 * standing.first:.1f} % of resamples" if standing.comparisons else "–"
            rows.append((standing.system, *shares, wins, first))
        alphas = ", ".join(
            f"{name} {'–' if alpha is None else f'{alpha:.2f}'}" for name, alpha in self.agreement.items()
        )
        judges = ", ".join(f"{name} {count} of {self.items}" for name, count in self.judges.items())
        return f"{columns(rows)}\n\nagreement (Krippendorff's alpha): {alphas}\nitems answered: {judges}"


def read_answers(path: Path) -> Answers:
    """Read the answers from a JSON file that the page saved, or from a completed CSV form."""
    return _from_csv(path) if path.suffix.lower() == ".csv" else _from_json(path)


def count_verdicts(key: Key, everyone: Sequence[Answers], *, seed: int = 1) -> Verdicts:
    """Count answers by system; systems are ranked by comparisons won, then by adequacy and fluency."""
    _check(key, everyone)
    rates = {name: {aspect: [0, 0] for aspect in ASPECTS} for name in key.systems}
    contests = np.zeros((len(key.items), len(key.systems), 2))  # items × systems × (won, of how many)
    for row, (item, candidates) in enumerate(key.items.items()):
        for answer in (answers.items[item] for answers in everyone if item in answers.items):
            for aspect in ASPECTS:
                for names, value in zip(candidates, getattr(answer, aspect), strict=True):
                    for name in names if value is not None else ():
                        rates[name][aspect][0] += bool(value)
                        rates[name][aspect][1] += 1
            contests[row] += _contest(key, candidates, answer)
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, len(contests), (SAMPLES, len(contests)))
    resampled = np.stack([_shares(contests[places].sum(0)) for places in drawn])  # samples × systems
    low, high = np.quantile(resampled, (0.025, 0.975), axis=0)
    best = resampled >= resampled.max(1, keepdims=True)  # samples × systems
    first = (best / best.sum(1, keepdims=True)).mean(0)
    wins = _shares(contests.sum(0))
    standings = [
        Standing(
            system=name,
            rates={aspect: (yes, count) for aspect, (yes, count) in rates[name].items()},
            wins=float(wins[at]),
            low=float(low[at]),
            high=float(high[at]),
            first=float(first[at]),
            comparisons=int(contests[:, at, 1].sum()),
        )
        for at, name in enumerate(key.systems)
    ]
    return Verdicts(
        standings=sorted(standings, key=_merit, reverse=True),
        agreement=_agreement(key, everyone),
        judges={answers.judge: len(answers.items) for answers in everyone},
        items=len(key.items),
    )


def _contest(key: Key, candidates: Sequence[Sequence[str]], answer: Answer) -> np.ndarray[Any, Any]:
    """Return comparisons won and taken part in, systems × 2: the better one beats each other one, or all tie.

    Systems with equal outputs are not compared.
    """
    found = np.zeros((len(key.systems), 2))
    if answer.better is None:
        return found
    place = {name: at for at, names in enumerate(candidates) for name in names}
    for number, name in enumerate(key.systems):
        for rival in key.systems:
            mine, theirs = place[name], place[rival]
            if mine == theirs or (answer.better != "equal" and answer.better not in (mine, theirs)):
                continue
            found[number] += (0.5 if answer.better == "equal" else float(mine == answer.better), 1.0)
    return found


def _shares(totals: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the share of comparisons won for each system; ½ if it took part in none."""
    won, count = totals.T
    return np.where(count > 0, won / np.maximum(count, 1), 0.5)


def _merit(standing: Standing) -> tuple[float, ...]:
    return standing.wins, *(yes / count if count else 0.0 for yes, count in standing.rates.values())


def _agreement(key: Key, everyone: Sequence[Answers]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for aspect in ASPECTS:
        units = [
            [
                value
                for answers in everyone
                if item in answers.items and (value := getattr(answers.items[item], aspect)[at]) is not None
            ]
            for item, candidates in key.items.items()
            for at in range(len(candidates))
        ]
        found[aspect] = krippendorff(units)
    better = [  # the systems of a candidate, since its index differs between items
        [
            value if value == "equal" else key.items[item][value]
            for answers in everyone
            if item in answers.items and (value := answers.items[item].better) is not None
        ]
        for item in key.items
    ]
    found["better"] = krippendorff(better)
    return found


def _check(key: Key, everyone: Sequence[Answers]) -> None:
    """Raise if answers do not belong to the form and its items, or two files are by one judge."""
    seen: set[str] = set()
    for answers in everyone:
        if answers.form != key.form:
            raise UsageError(
                f"The answers of {answers.judge} belong to form {answers.form}, but the key to form {key.form}. Name "
                "the key that was made with it."
            )
        if answers.judge in seen:
            raise UsageError(
                f"Two files are by judge {answers.judge}. Leave one out, or change the name in one of them."
            )
        seen.add(answers.judge)
        for item, answer in answers.items.items():
            count = len(key.items.get(item, ()))
            places = answer.better is None or answer.better == "equal" or answer.better in range(count)
            if not count or len(answer.adequate) != count or len(answer.fluent) != count or not places:
                raise RegardError(
                    f"The answer of {answers.judge} to item {item} does not fit the form. The file was changed."
                )


def _from_json(path: Path) -> Answers:
    facts = read_json(path)
    try:
        items = {
            int(answer["item"]): Answer(
                adequate=tuple(map(_boolean, answer["adequate"])),
                fluent=tuple(map(_boolean, answer["fluent"])),
                better=answer["better"] if answer["better"] in (None, "equal") else int(answer["better"]),
            )
            for answer in facts["answers"]
        }
        return Answers(judge=str(facts.get("judge") or path.stem), form=str(facts["form"]), items=items)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise RegardError(f"{path} contains no answers. Name a file that the form saved.") from None


def _boolean(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise ValueError(value)


def _from_csv(path: Path) -> Answers:
    lines = list(read_lines(path))
    mark = ";" if lines and lines[0].count(";") > lines[0].count(",") else ","
    rows = list(csv.DictReader(io.StringIO("\n".join(lines), newline=""), delimiter=mark))
    wanted = {"form", "item", "candidate", "adequate", "fluent", "better"}
    if not rows or not wanted <= set(rows[0]):
        raise RegardError(f"{path} is not a form. Its columns must include {', '.join(sorted(wanted))}.")
    items: dict[int, Answer] = {}
    try:
        ordered = sorted(rows, key=lambda row: (int(row["item"]), LETTERS.index(row["candidate"])))
    except (ValueError, TypeError):
        raise RegardError(f"{path}: an item or a candidate was changed. Change only the last three columns.") from None
    for item, group in groupby(ordered, key=lambda row: int(row["item"])):
        some = list(group)
        answer = {
            aspect: tuple(_yes(row[aspect], f"{path}, item {item}") for row in some) for aspect in (*ASPECTS, "better")
        }
        chosen = [at for at, better in enumerate(answer["better"]) if better]
        if 1 < len(chosen) < len(some):
            raise RegardError(f"{path}, item {item}: mark one candidate as better, or all if they are equal.")
        better: int | Literal["equal"] | None = None if not chosen else "equal" if len(chosen) > 1 else chosen[0]
        if any(value is not None for values in answer.values() for value in values):
            items[item] = Answer(adequate=answer["adequate"], fluent=answer["fluent"], better=better)
    return Answers(judge=path.stem, form=str(rows[0]["form"]), items=items)


def _yes(text: str | None, place: str) -> bool | None:
    answer = (text or "").strip().lower()
    if answer and answer not in _YES | _NO:
        raise RegardError(f"{place}: `{answer[:40]}` is neither yes nor no. Write one of them, or leave it empty.")
    return answer in _YES if answer else None


def _share(share: float, interval: tuple[float, float]) -> str:
    return f"{100 * share:.0f} % ({100 * interval[0]:.0f}–{100 * interval[1]:.0f})"
