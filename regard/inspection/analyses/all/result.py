"""The report: the results of every analysis that applies to one answer."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.foundation.errors import UsageError
from regard.inspection.page import Panel, Part, render_parts
from regard.inspection.result import Result
from regard.text.joined import TAB

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Report(Result):
    """The results that apply to one answer, and why the others do not."""

    run: str
    model: str
    """The cell of the grid."""
    what: str
    """What the answer is called: a translation, a text, an answer."""
    source: str
    target: str
    results: dict[str, Result]
    """By the name of the command."""
    left_out: dict[str, str]
    """Reasons, by the name of the command."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return f"Inside one {self.what}"

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.results)} analyses, {len(self.left_out)} left out"

    def to_json(self) -> dict[str, Any]:
        """Plain data: that of every analysis, by its name."""
        about = {"run": self.run, "model": self.model, "source": self.source, "target": self.target}
        found = {name: result.to_json() for name, result in self.results.items()}
        return {**about, "results": found, "left_out": self.left_out}

    def __str__(self) -> str:
        """All tables, one below the other."""
        parts = [f"{self._read}\n→ {self.target}" if self.target else self._read]
        parts += [f"── {name}: {result.title} ──\n\n{_with_messages(result)}" for name, result in self.results.items()]
        if self.left_out:
            parts.append("\n".join(["── left out ──", "", *(f"{name}: {why}" for name, why in self.left_out.items())]))
        return "\n\n".join(parts)

    def messages(self, *, saved: bool) -> list[str]:
        """Name what a page leaves out; the table says so itself."""
        return [f"left out: {name}: {why}" for name, why in self.left_out.items()] if saved else []

    @property
    def _read(self) -> str:
        """What was read, on one line."""
        return " · ".join(self.source.split(TAB))

    def draw(self) -> "Figure":
        """Refused: a picture is of one analysis."""
        raise UsageError(
            "A report is no picture: write it as .html, .json or .txt, and draw single analyses, such as "
            "regard inspect attention RUN TEXT -o picture.png."
        )

    def panels(self) -> list[Panel]:
        """Those of all analyses."""
        return [panel for result in self.results.values() for panel in result.panels()]

    def page(self) -> str:
        """A page with a table of contents."""
        parts = [Part(name, result.title, result.panels()) for name, result in self.results.items()]
        lead = [f"{self._read} → {self.target}" if self.target else self._read]
        return render_parts(self.title, lead, parts, self.left_out, run=f"{self.run}: {self.model}")


def _with_messages(result: Result) -> str:
    """Return a result as text, followed by what a command would print with it."""
    return "\n\n".join([str(result), *result.messages(saved=False)])
