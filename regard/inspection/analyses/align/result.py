"""Which words belong together, as a model sees it: word alignment, and its error rate against people's.

Axes: S source words, T target words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from regard.foundation.display import columns
from regard.inspection.analyses.align.links import Combining, Gold, Link, Links, Scores, pharaoh, score
from regard.inspection.analyses.align.reading_choice import Chosen
from regard.inspection.analyses.align.word_weights import METHODS, Choice, Method
from regard.inspection.drawing import COLOURS, INK, KEY, QUIET, new_figure
from regard.inspection.page import Panel
from regard.inspection.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SHOWN = 2000
"""Pairs that a page holds."""

SHOWN_SKIPPED = 3
"""Bad links of a gold file that are printed."""

DRAWN = 6
"""Pairs of a picture."""

FOUND, POSSIBLE, WRONG, MISSED = "found, sure", "found, possible", "found, not in gold", "sure, not found"

INKS: dict[str, tuple[str, Literal["-", "--"]]] = {
    FOUND: (COLOURS[0], "-"),
    POSSIBLE: (COLOURS[5], "-"),
    WRONG: (COLOURS[1], "-"),
    MISSED: ("#9aa4b8", "--"),
}
"""The colour and the style of a line in a picture, as on the page."""


@dataclass(frozen=True)
class TriedReading:
    """One way of reading the maps of a model, and how well it did."""

    run: str
    """`run` or `reverse`."""
    choice: Choice
    agreement: float
    """With the other direction (0 to 1): of the other run, where there is one, else of the same map."""
    scores: Scores | None


@dataclass(frozen=True, repr=False)
class Alignments(Result):
    """Links between the words of each pair: each target word and the source word that counts most for it.

    A link to the end symbol is none. Two directions, where combined, are two runs, or the rows and columns of one map.
    """

    sources: list[list[str]]
    targets: list[list[str]]
    links: list[Links]
    method: Method
    combining: Combining
    choice: Choice
    reverse: Choice | None
    """How the second run is read, where there is one."""
    tried: list[TriedReading]
    chosen: Chosen
    """Why the first run is read so."""
    diagonals: list[Links]
    """The baseline without a model: each target word with the source word at the same relative position."""
    gold: list[Gold] | None = None
    skipped: tuple[str, ...] = ()
    """Links of the gold file that were left out, and what is wrong with each."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Which words belong together"

    @property
    def scores(self) -> Scores | None:
        """Against gold, if it was given."""
        return None if self.gold is None else score(self.links, self.gold)

    @property
    def diagonal_scores(self) -> Scores | None:
        """Those of the diagonal, against gold."""
        return None if self.gold is None else score(self.diagonals, self.gold)

    @property
    def on_diagonal(self) -> float:
        """The share of links that are the diagonal's."""
        found = sum(map(len, self.links))
        both = sum(len(links & other) for links, other in zip(self.links, self.diagonals, strict=True))
        return both / found if found else 0.0

    @property
    def basis(self) -> str:
        """In a sentence: what the reading was chosen on, and how the diagonal compares."""
        return f"{self.chosen}. {100 * self.on_diagonal:.0f} % of the links shown are those of the diagonal."

    @property
    def how(self) -> str:
        """In a sentence: what was read, and how directions were combined."""
        what = METHODS[self.method]
        sentence = f"{what[0].upper()}{what[1:]}: {self.choice}"
        if self.reverse is not None:
            return f"{sentence}; in the reverse run {self.reverse}; {self.combining}."
        if self.combining == "none":
            return f"{sentence}; for each target word the source word with the most weight."
        return f"{sentence}; {self.combining} of the maxima of its rows and of its columns (one model, not two)."

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.links):,} pairs of sentences"

    def to_json(self) -> dict[str, Any]:
        """Plain data: every pair with its links, and all that was tried."""
        scores, baseline = self.scores, self.diagonal_scores
        return {
            "how": self.how,
            "method": self.method,
            "combining": self.combining,
            "chosen": self.chosen.to_json(),
            "basis": self.basis,
            "links_on_diagonal": self.on_diagonal,
            "scores": None if scores is None else scores.to_json(),
            "diagonal": None if baseline is None else baseline.to_json(),
            "skipped": list(self.skipped),
            "tried": [
                {
                    "run": reading.run,
                    "layer": reading.choice.layer,
                    "head": reading.choice.head,
                    "reading": reading.choice.reading,
                    "agreement": reading.agreement,
                    "scores": None if reading.scores is None else reading.scores.to_json(),
                }
                for reading in self.tried
            ],
            "pairs": [self._pair(index) for index in range(len(self.links))],
        }

    def _pair(self, index: int) -> dict[str, Any]:
        data: dict[str, Any] = {
            "source": self.sources[index],
            "target": self.targets[index],
            "links": [list(link) for link in sorted(self.links[index])],
        }
        if self.gold is not None:
            gold = self.gold[index]
            data["sure"] = [list(link) for link in sorted(gold.sure)]
            data["possible"] = [list(link) for link in sorted(gold.possible - gold.sure)]
            data["aer"] = score([self.links[index]], [gold]).error_rate
        return data

    def messages(self, *, saved: bool) -> list[str]:
        """How the links were found, and how good they are."""
        return [self.summary]

    def __str__(self) -> str:
        """The links of each pair on a line: `0-0 1-2`, words counted from 0, the source's first."""
        return "\n".join(pharaoh(links) for links in self.links)

    @property
    def summary(self) -> str:
        """How the links were found; with gold, the error rates of this reading, the diagonal and all other readings."""
        scores, baseline = self.scores, self.diagonal_scores
        parts = [self.how, self.basis]
        if self.skipped:
            shown = "\n".join(f"  {problem}" for problem in self.skipped[:SHOWN_SKIPPED])
            parts.append(f"{len(self.skipped):,} bad links of the gold file were left out, such as:\n{shown}")
        if scores is None or baseline is None:
            return "\n".join(parts)
        rows = [["read", "AER", "95 %", "precision", "recall", "links"]]
        for reading in self.tried:
            if reading.scores is not None:
                rows.append([f"{reading.run}: {reading.choice}", *_figures(reading.scores)])
        rows.append([f"all in all ({self.combining})", *_figures(scores)])
        rows.append(["the diagonal, without a model", *_figures(baseline)])
        return "\n".join([*parts, columns(rows, right=(1, 2, 3, 4, 5))])

    def draw(self) -> "Figure":
        """The first pairs with lines between their words; with gold by what it says of each link."""
        shown = [index for index in range(len(self.links)) if self.sources[index] and self.targets[index]][:DRAWN]
        widths = [max(_width(self.sources[index]), _width(self.targets[index])) for index in shown]
        below = KEY if self.gold is not None else 0.1
        width, row_height = max(widths, default=4.0) + 0.4, 1.15
        height = row_height * max(1, len(shown)) + below
        figure = new_figure(width, height)
        for row, index in enumerate(shown):
            axes = figure.add_axes((0, 1 - (row + 1) * row_height / height, 1, row_height / height))
            axes.set(xlim=(0, width), ylim=(0, 1))
            axes.axis("off")
            self._draw_pair(axes, index)
        if self.gold is not None:
            from matplotlib.lines import Line2D

            known = [Line2D([], [], color=ink, linestyle=style, label=name) for name, (ink, style) in INKS.items()]
            figure.legend(
                handles=known, loc="lower left", ncols=len(known), frameon=False, fontsize=8, labelcolor=QUIET
            )
        return figure

    def _draw_pair(self, axes: "Axes", index: int) -> None:
        at = [_places(words) for words in (self.sources[index], self.targets[index])]
        for words, xs, y in ((self.sources[index], at[0], 0.85), (self.targets[index], at[1], 0.15)):
            for word, x in zip(words, xs, strict=True):
                axes.text(x, y, word.replace("$", r"\$"), ha="center", va="center", fontsize=9, color=INK)
        for (source, target), name in self._lines(index):
            ink, style = INKS[name]
            axes.plot([at[0][source], at[1][target]], [0.74, 0.27], color=ink, linewidth=1.2, linestyle=style)

    def _lines(self, index: int) -> list[tuple[Link, str]]:
        """Each line to be drawn, and what it is."""
        links = self.links[index]
        if self.gold is None:
            return [(link, FOUND) for link in sorted(links)]
        gold = self.gold[index]

        def name(link: Link) -> str:
            return FOUND if link in gold.sure else POSSIBLE if link in gold.possible else WRONG

        return [
            *((link, MISSED) for link in sorted(gold.sure - links)),
            *((link, name(link)) for link in sorted(links)),
        ]

    def panels(self) -> list[Panel]:
        """Pairs with lines between their words."""
        data = {key: value for key, value in self.to_json().items() if key != "pairs"}
        data["pairs"] = [self._pair(index) for index in range(min(len(self.links), MOST_SHOWN))]
        more = f" The first {MOST_SHOWN:,} of {len(self.links):,} pairs." if len(self.links) > MOST_SHOWN else ""
        return [Panel("align", data, note=f"{self.how} {self.basis}{more}")]


def _figures(scores: Scores) -> list[str]:
    shares = (scores.error_rate, scores.precision, scores.recall)
    rate, *rest = (f"{100 * share:.1f}" for share in shares)
    interval = "" if scores.interval is None else f"{100 * scores.interval[0]:.1f}–{100 * scores.interval[1]:.1f}"
    return [rate, interval, *rest, f"{scores.found:,}"]


def _width(words: Sequence[str]) -> float:
    return sum(len(word) * 0.085 + 0.16 for word in words)


def _places(words: Sequence[str]) -> list[float]:
    """Return the middle of each word in inches, in one line."""
    at, found = 0.2, []
    for word in words:
        wide = len(word) * 0.085 + 0.16
        found.append(at + wide / 2)
        at += wide
    return found
