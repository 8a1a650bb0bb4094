"""The result of an analysis that is one table: enough for most analyses of your own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.foundation.display import columns
from regard.inspection.page import Panel
from regard.inspection.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = str | int | float


@dataclass(frozen=True)
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

    def to_json(self) -> dict[str, Any]:
        """Everything that the table shows."""
        return {"title": self.heading, "head": list(self.head), "rows": [list(row) for row in self.rows]}

    def __str__(self) -> str:
        rows = [[_text(cell) for cell in row] for row in self.rows]
        numbers = [place for place, cell in enumerate(self.rows[0])] if self.rows else []
        right = [place for place in numbers if not isinstance(self.rows[0][place], str)]
        return columns([list(self.head), *rows], right=right)

    def draw(self) -> "Figure":
        """The table as a picture."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(1.6 * len(self.head), 0.4 + 0.28 * len(self.rows)))
        axes = figure.subplots()
        axes.axis("off")
        axes.set_title(self.heading)
        cells = [[_text(cell) for cell in row] for row in self.rows] or [[""] * len(self.head)]
        axes.table(cellText=cells, colLabels=list(self.head), loc="center")
        return figure

    def panels(self) -> list[Panel]:
        """The table on a page."""
        return [Panel("table", {"head": list(self.head), "rows": [list(row) for row in self.rows]}, note=self.note)]


def _text(cell: Cell) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
