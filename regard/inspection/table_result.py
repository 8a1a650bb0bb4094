"""The result of an analysis that is one table: enough for most analyses of your own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from regard.foundation.display import columns
from regard.inspection.drawing import INK, LINE, QUIET, new_figure, token_labels
from regard.inspection.page import Panel
from regard.inspection.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | int | float | None

DRAWN_ROWS = 200
"""Rows of a picture; a longer table is cut, and says so."""

LONGEST = 60
"""Characters of a cell that a picture shows."""

CHARACTER, ROW, GAP = 0.078, 0.24, 0.3
"""Inches of an average character, of a row, and between columns."""


@dataclass(frozen=True, repr=False)
class TableResult(Result):
    """Column names and rows; it becomes a table, JSON, a page or a picture."""

    heading: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    """How to read it, in a sentence or two."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return self.heading

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.rows)} rows × {len(self.head)} columns"

    @cached_property
    def texts(self) -> list[list[str]]:
        """The cells as the table, the page and the picture show them."""
        return [[_text(cell) for cell in row] for row in self.rows]

    @cached_property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers only; they are aligned to the right and sorted by value."""
        return [
            any(_is_number(row[index]) for row in self.rows)
            and all(_is_number(row[index]) or _plain(row[index]) is None for row in self.rows)
            for index in range(len(self.head))
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything that the table shows."""
        rows = [[_plain(cell) for cell in row] for row in self.rows]
        return {"title": self.heading, "head": list(self.head), "rows": rows, "note": self.note}

    def __str__(self) -> str:
        right = [index for index, numeric in enumerate(self.numeric) if numeric]
        return columns([list(self.head), *self.texts], right=right)

    def draw(self) -> "Figure":
        """The table as a picture."""
        cut = len(self.texts) - DRAWN_ROWS
        lines = [list(self.head), *self.texts[:DRAWN_ROWS]]
        lines = [[cell if len(cell) <= LONGEST else f"{cell[: LONGEST - 1]}…" for cell in line] for line in lines]
        wide = [CHARACTER * max(_length(line[index]) for line in lines) for index in range(len(self.head))]
        margin, heading = 0.15, 0.42
        width = max(sum(wide) + GAP * (len(wide) - 1), 1.25 * CHARACTER * _length(self.heading)) + 2 * margin
        height = heading + ROW * (len(lines) + (cut > 0)) + margin
        figure = new_figure(width, height, token_labels([self.heading])[0])
        for number, line in enumerate(lines):
            y = 1 - (heading + ROW * (number + 0.5)) / height
            left = margin
            for index, cell in enumerate(line):
                x, side = (left + wide[index], "right") if self.numeric[index] else (left, "left")
                weight = "bold" if number == 0 else "normal"
                text = token_labels([cell])[0]
                figure.text(x / width, y, text, ha=side, va="center", fontsize=9, color=INK, fontweight=weight)
                left += wide[index] + GAP
        if cut > 0:
            more = f"… and {cut:,} more rows; the table and the page have them all."
            figure.text(margin / width, (margin + ROW / 2) / height, more, va="center", fontsize=9, color=QUIET)
        rule = figure.add_axes((margin / width, 1 - (heading + ROW) / height, 1 - 2 * margin / width, 0))
        rule.axis("off")
        rule.axhline(0, color=LINE, linewidth=1.2, clip_on=False)
        return figure

    def panels(self) -> list[Panel]:
        """The table on a page: the values to sort by, and the same texts as in the table."""
        rows = [
            [
                _plain(cell) if self.numeric[index] else text
                for index, (cell, text) in enumerate(zip(*both, strict=True))
            ]
            for both in zip(self.rows, self.texts, strict=True)
        ]
        return [Panel("formatted_table", {"head": list(self.head), "rows": rows, "texts": self.texts}, note=self.note)]


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool) and math.isfinite(cell)


def _plain(cell: Cell) -> Cell:
    """Return a cell as JSON can hold it: no infinite number, and none that is not a number."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _text(cell: Cell) -> str:
    """Return a cell as it is shown: four significant digits of a number (or all before the point), a dash for none."""
    if cell is None or _plain(cell) is None:
        return "–"
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:,.0f}" if 1e4 <= abs(cell) < 1e15 else f"{cell:.4g}"


def _length(text: str) -> int:
    """Return the width of a text in characters; those of East Asian scripts are twice as wide."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
