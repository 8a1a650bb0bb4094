"""The result of an analysis: it becomes a page, a picture, JSON or a table, by the ending of a file."""

import copy
import json
import warnings
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from regard.foundation import durable
from regard.foundation.errors import UsageError
from regard.inspection.page import Panel, render
from regard.pages import notebook

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = ("png", "svg", "pdf")
ENDINGS = ("html", "json", "txt", *PICTURES)
"""What a result can be saved as."""


class Result(ABC):
    """What an analysis found. A subclass defines JSON, table, picture and page; saving and showing follow from them."""

    run_name: str = ""
    """The run that was analysed, as pages name it."""

    def named(self, run: Path | str) -> Self:
        """Return the same result with the name of its run."""
        copied = copy.copy(self)
        object.__setattr__(copied, "run_name", str(run))  # results are frozen
        return copied

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Plain data: all that was found."""

    @abstractmethod
    def __str__(self) -> str:
        """A table for the terminal."""

    @abstractmethod
    def draw(self) -> "Figure":
        """A picture for a paper."""

    @abstractmethod
    def panels(self) -> list[Panel]:
        """The parts of an interactive page."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What it is, in a few words: the heading of the page."""

    @property
    def size(self) -> str:
        """How large it is, in a few words; for `repr`."""
        return ""

    def __repr__(self) -> str:
        size = f", {self.size}" if self.size else ""
        return f"<{type(self).__name__}: {self.title}{size}>"

    def messages(self, *, saved: bool) -> list[str]:
        """What a command prints on standard error with the result; `saved` if it was written to a file."""
        return []

    def page(self) -> str:
        """A page that is one file, opens from disk and fetches nothing."""
        return render(self.title, self.panels(), run=self.run_name)

    def save(self, path: Path | str) -> None:
        """Write the result; the ending chooses the form: html, json, txt, png, svg or pdf."""
        path = Path(path)
        ending = path.suffix.lower().removeprefix(".")
        if ending == "html":
            durable.write(path, self.page())
        elif ending == "json":
            durable.write(path, _format_json(self.to_json()) + "\n")
        elif ending == "txt":
            durable.write(path, f"{self}\n")
        elif ending in PICTURES:
            figure = self.draw()
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Glyph .* missing")  # drawn as a box; the page has every letter
                durable.build(path, lambda aside: figure.savefig(aside, format=ending, dpi=160, bbox_inches="tight"))
        else:
            raise UsageError(f"{path} has no ending that says what to write: use one of .{', .'.join(ENDINGS)}.")

    def _repr_html_(self) -> str:
        """How a notebook shows it: the page in a frame of its own."""
        return notebook.show_page(self.page())


def _format_json(data: Any, indent: str = "") -> str:
    """JSON that can be read and is not long: rows of numbers and words stay on one line."""
    inner = indent + "  "
    if isinstance(data, dict) and data:
        items = [
            f"{inner}{json.dumps(str(name), ensure_ascii=False)}: {_format_json(data[name], inner)}" for name in data
        ]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(data, list) and any(isinstance(item, dict | list) for item in data):
        return "[\n" + ",\n".join(inner + _format_json(item, inner) for item in data) + f"\n{indent}]"
    return json.dumps(data, ensure_ascii=False)
