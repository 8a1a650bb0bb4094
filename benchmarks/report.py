"""Rounds become a table: medians, ratios and spread, as Markdown for people and JSON for programs."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.places import RESULTS


@dataclass
class Figure:
    """One quantity of one program, measured once a round; or the reason why it was not."""

    rounds: list[float] = field(default_factory=list)
    why_not: str = ""

    @property
    def median(self) -> float | None:
        """The middle of all rounds."""
        return statistics.median(self.rounds) if self.rounds else None

    @property
    def spread(self) -> float:
        """Largest minus smallest, as a share of the median."""
        middle = self.median
        return (max(self.rounds) - min(self.rounds)) / middle if middle else 0.0

    def shown(self, form: str = ",.0f", unit: str = "") -> str:
        """Median and spread in a cell of a table."""
        if self.median is None:
            return "–"
        spread = f" ±{self.spread / 2:.0%}" if len(self.rounds) > 1 else ""
        return f"{self.median:{form}}{unit}{spread}"

    def to_json(self) -> dict[str, Any]:
        """All of it, for programs."""
        return {"median": self.median, "spread": self.spread, "rounds": self.rounds, "why_not": self.why_not}


def best(figures: Mapping[str, Figure], names: Sequence[str], *, lowest: bool = False) -> float | None:
    """The best median among some programs; nothing if none was measured."""
    found = [median for name in names if (median := figures[name].median) is not None]
    return (min if lowest else max)(found) if found else None


def ratio(mine: float | None, theirs: float | None) -> str:
    """How often theirs goes into mine."""
    return f"{mine / theirs:.2f}×" if mine and theirs else "–"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, the first column flush left."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def reasons(figures: Mapping[str, Figure]) -> list[str]:
    """What could not be measured, a line each."""
    return [f"- {name}: not measured, {figure.why_not}." for name, figure in figures.items() if figure.why_not]


def write(name: str, text: str, facts: Mapping[str, Any], *, quick: bool) -> str:
    """Put a part's results where they belong, and give the text back; a smoke run keeps them apart."""
    place = RESULTS / "quick" if quick else RESULTS
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    (place / f"{name}.json").write_text(json.dumps(facts, indent=1, default=_plain) + "\n", encoding="utf-8")
    return text


def _plain(value: Any) -> Any:
    return value.to_json() if isinstance(value, Figure) else str(value)
