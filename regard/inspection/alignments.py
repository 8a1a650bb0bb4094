"""Which words belong together, as a model sees it: word alignment, and its error rate against people's.

Axes: S source words, T target words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regard.foundation.display import columns
from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.inspection.drawing import COLOURS, INK, KEY, QUIET, blank
from regard.inspection.links import COMBINING, Combining, Gold, Link, Links, Scores, combine, pharaoh, read_gold, score
from regard.inspection.page import Panel
from regard.inspection.reading_choice import (
    Asked,
    Chosen,
    Directed,
    agreement,
    choose,
    choose_for_run,
    diagonal,
    directed,
)
from regard.inspection.result import Result
from regard.inspection.word_weights import METHODS, READINGS, Choice, Method, Pair, Reading
from regard.tasks.loaded import LoadedRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SAMPLE = 500
"""Pairs by which a layer is chosen where there is neither a run with validation pairs nor gold."""

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
class Tried:
    """One way of reading the maps of a model, and how well it did."""

    run: str
    """`run` or `reverse`."""
    choice: Choice
    agreement: float
    """With the other direction (0 to 1): of the other run, where there is one, else of the same map."""
    scores: Scores | None


@dataclass(frozen=True)
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
    tried: list[Tried]
    chosen: Chosen
    """Why the first run is read so."""
    diagonals: list[Links]
    """The baseline that looks at no model: each target word with the source word at the same relative place."""
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
        said = f"{what[0].upper()}{what[1:]}: {self.choice}"
        if self.reverse is not None:
            return f"{said}; in the reverse run {self.reverse}; {self.combining}."
        if self.combining == "none":
            return f"{said}; for each target word the source word with the most weight."
        return f"{said}; {self.combining} of the maxima of its rows and of its columns (one model, not two)."

    def to_json(self) -> dict[str, Any]:
        """Plain data: every pair with its links, and all that was tried."""
        scores, baseline = self.scores, self.diagonal_scores
        return {
            "how": self.how,
            "method": self.method,
            "combining": self.combining,
            "chosen": self.chosen.facts(),
            "basis": self.basis,
            "links_on_diagonal": self.on_diagonal,
            "scores": None if scores is None else scores.facts(),
            "diagonal": None if baseline is None else baseline.facts(),
            "skipped": list(self.skipped),
            "tried": [
                {
                    "run": one.run,
                    "layer": one.choice.layer,
                    "head": one.choice.head,
                    "reading": one.choice.reading,
                    "agreement": one.agreement,
                    "scores": None if one.scores is None else one.scores.facts(),
                }
                for one in self.tried
            ],
            "pairs": [self._pair(place) for place in range(len(self.links))],
        }

    def _pair(self, place: int) -> dict[str, Any]:
        data: dict[str, Any] = {
            "source": self.sources[place],
            "target": self.targets[place],
            "links": [list(link) for link in sorted(self.links[place])],
        }
        if self.gold is not None:
            gold = self.gold[place]
            data["sure"] = [list(link) for link in sorted(gold.sure)]
            data["possible"] = [list(link) for link in sorted(gold.possible - gold.sure)]
            data["aer"] = score([self.links[place]], [gold]).error_rate
        return data

    def __str__(self) -> str:
        """The links of each pair on a line: `0-0 1-2`, words counted from 0, the source's first."""
        return "\n".join(pharaoh(links) for links in self.links)

    @property
    def summary(self) -> str:
        """How it was done and what it was chosen on; with gold how well, beside the diagonal and all that was tried."""
        scores, baseline = self.scores, self.diagonal_scores
        parts = [self.how, self.basis]
        if self.skipped:
            shown = "\n".join(f"  {problem}" for problem in self.skipped[:SHOWN_SKIPPED])
            parts.append(f"{len(self.skipped):,} bad links of the gold file were left out, such as:\n{shown}")
        if scores is None or baseline is None:
            return "\n".join(parts)
        rows = [["read", "AER", "95 %", "precision", "recall", "links"]]
        for one in self.tried:
            if one.scores is not None:
                rows.append([f"{one.run}: {one.choice}", *_figures(one.scores)])
        rows.append([f"all in all ({self.combining})", *_figures(scores)])
        rows.append(["the diagonal, without a model", *_figures(baseline)])
        return "\n".join([*parts, columns(rows, right=(1, 2, 3, 4, 5))])

    def draw(self) -> "Figure":
        """The first pairs with lines between their words; with gold by what it says of each link."""
        shown = [place for place in range(len(self.links)) if self.sources[place] and self.targets[place]][:DRAWN]
        widths = [max(_width(self.sources[place]), _width(self.targets[place])) for place in shown]
        below = KEY if self.gold is not None else 0.1
        width, each = max(widths, default=4.0) + 0.4, 1.15
        height = each * max(1, len(shown)) + below
        figure = blank(width, height)
        for row, place in enumerate(shown):
            axes = figure.add_axes((0, 1 - (row + 1) * each / height, 1, each / height))
            axes.set(xlim=(0, width), ylim=(0, 1))
            axes.axis("off")
            self._draw_pair(axes, place)
        if self.gold is not None:
            from matplotlib.lines import Line2D

            known = [Line2D([], [], color=ink, linestyle=style, label=name) for name, (ink, style) in INKS.items()]
            figure.legend(
                handles=known, loc="lower left", ncols=len(known), frameon=False, fontsize=8, labelcolor=QUIET
            )
        return figure

    def _draw_pair(self, axes: "Axes", place: int) -> None:
        at = [_places(words) for words in (self.sources[place], self.targets[place])]
        for words, xs, y in ((self.sources[place], at[0], 0.85), (self.targets[place], at[1], 0.15)):
            for word, x in zip(words, xs, strict=True):
                axes.text(x, y, word.replace("$", r"\$"), ha="center", va="center", fontsize=9, color=INK)
        for (source, target), name in self._lines(place):
            ink, style = INKS[name]
            axes.plot([at[0][source], at[1][target]], [0.74, 0.27], color=ink, linewidth=1.2, linestyle=style)

    def _lines(self, place: int) -> list[tuple[Link, str]]:
        """Each line to be drawn, and what it is."""
        links = self.links[place]
        if self.gold is None:
            return [(link, FOUND) for link in sorted(links)]
        gold = self.gold[place]

        def name(link: Link) -> str:
            return FOUND if link in gold.sure else POSSIBLE if link in gold.possible else WRONG

        return [
            *((link, MISSED) for link in sorted(gold.sure - links)),
            *((link, name(link)) for link in sorted(links)),
        ]

    def panels(self) -> list[Panel]:
        """Pairs with lines between their words."""
        data = {key: value for key, value in self.to_json().items() if key != "pairs"}
        data["pairs"] = [self._pair(place) for place in range(min(len(self.links), MOST_SHOWN))]
        more = f" The first {MOST_SHOWN:,} of {len(self.links):,} pairs." if len(self.links) > MOST_SHOWN else ""
        return [Panel("align", data, note=f"{self.how} {self.basis}{more}")]


def align(
    translator: LoadedRun,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    run: Path | str | None = None,
    gold: Path | str | None = None,
    skip_bad: bool = False,
    reverse: LoadedRun | None = None,
    reverse_run: Path | str | None = None,
    method: Method = "attention",
    layer: int | None = None,
    head: int | None = None,
    reading: Reading | None = None,
    combining: Combining | None = None,
    progress: Progress | None = None,
) -> Alignments:
    """Align the words of texts with those of their translations.

    Which layer and row is read is chosen on the validation pairs of the `run` (the directory of `translator`), once,
    and stored there. Without a run it is chosen on the gold links, or on the pairs given. `reverse` translates targets
    into sources; its reading is chosen likewise, by `reverse_run`. With `skip_bad`, bad links of `gold` are left out.
    """
    if not any(source.strip() for source in sources):
        raise UsageError("There is nothing to align: the texts are empty.")
    _check(sources, targets, method, reading, combining)
    pairs = [Pair.of(translator, source, target) for source, target in zip(sources, targets, strict=True)]
    skipped: list[str] | None = [] if skip_bad else None
    wanted = None
    if gold is not None:
        wanted = read_gold(gold, [(len(pair.source), len(pair.target)) for pair in pairs], skipped=skipped)
        if skipped and not any(one.possible for one in wanted):
            raise UsageError(f"{gold} has no link that fits the sentences: all {len(skipped):,} were skipped.")
    forward = _side("run", translator, pairs, Asked(method, layer, head, reading), run, wanted, progress)
    links, tried, second = forward.rows, forward.tried, None
    combining = combining or ("none" if reverse is None else "grow-diag")
    others = forward.columns
    if reverse is not None:
        flipped = [Pair.of(reverse, target, source) for source, target in zip(sources, targets, strict=True)]
        turned = None if wanted is None else [Gold(_flip(one.sure), _flip(one.possible)) for one in wanted]
        backward = _side("reverse", reverse, flipped, Asked(method), reverse_run, turned, progress)
        tried, second = [*tried, *backward.tried], backward.chosen.choice
        others = [_flip(one) for one in backward.rows]
    return Alignments(
        sources=[pair.source for pair in pairs],
        targets=[pair.target for pair in pairs],
        links=[combine(one, other, combining) for one, other in zip(links, others, strict=True)],
        method=method,
        combining=combining,
        choice=forward.chosen.choice,
        reverse=second,
        tried=tried,
        chosen=forward.chosen,
        diagonals=[diagonal(pair) for pair in pairs],
        gold=wanted,
        skipped=tuple(skipped or ()),
    )


@dataclass(frozen=True)
class _Side:
    """The links that one model gives, and how it was read."""

    chosen: Chosen
    rows: list[Links]
    columns: list[Links]
    tried: list[Tried]


def _side(
    name: str,
    translator: LoadedRun,
    pairs: Sequence[Pair],
    asked: Asked,
    run: Path | str | None,
    gold: list[Gold] | None,
    progress: Progress | None,
) -> _Side:
    """Choose how a model is read, and read it; with gold all other readings are measured as well."""
    chosen = choose_for_run(translator, run, asked, progress) if run is not None else None
    some = len(pairs) if gold is not None else 0 if chosen is not None else min(SAMPLE, len(pairs))
    found: Directed = directed(translator, pairs[:some], asked, None, progress) if some else {}
    tried = [
        Tried(name, choice, agreement(rows, across), None if gold is None else score(rows, gold))
        for choice, (rows, across) in found.items()
    ]
    if chosen is None:
        chosen = choose(pairs[:some], found, "given")
        if gold is not None:
            best = min(tried, key=lambda one: one.scores.error_rate if one.scores else 1.0)
            chosen = replace(chosen, choice=best.choice, basis="gold")
        if len(found) == 1:
            chosen = replace(chosen, basis="asked")
    elif not tried:
        tried = [Tried(name, one.choice, one.agreement, None) for one in chosen.candidates]
    rows, across = found.get(chosen.choice, ([], []))
    if some < len(pairs):
        more = directed(translator, pairs[some:], asked, chosen.choice, progress)[chosen.choice]
        rows, across = rows + more[0], across + more[1]
    return _Side(chosen, rows, across, tried)


def _flip(links: Links) -> Links:
    return frozenset((target, source) for source, target in links)


def _check(
    sources: Sequence[str],
    targets: Sequence[str],
    method: str,
    reading: str | None,
    combining: str | None,
) -> None:
    if len(sources) != len(targets):
        raise UsageError(f"There are {len(sources):,} sources for {len(targets):,} targets: they must be as many.")
    given: Mapping[str, tuple[str | None, Iterable[str]]] = {
        "method": (method, METHODS),
        "reading": (reading, READINGS),
        "way to combine": (combining, COMBINING),
    }
    for name, (value, known) in given.items():
        if value is not None and value not in known:
            raise UsageError(f'There is no {name} "{value}": use one of {", ".join(known)}.')


def _figures(scores: Scores) -> list[str]:
    shares = (scores.error_rate, scores.precision, scores.recall)
    rate, *rest = (f"{100 * share:.1f}" for share in shares)
    interval = "" if scores.interval is None else f"{100 * scores.interval[0]:.1f}–{100 * scores.interval[1]:.1f}"
    return [rate, interval, *rest, f"{scores.found:,}"]


def _width(words: Sequence[str]) -> float:
    return sum(len(word) * 0.085 + 0.16 for word in words)


def _places(words: Sequence[str]) -> list[float]:
    """The middle of each word in inches, one behind the other."""
    at, found = 0.2, []
    for word in words:
        wide = len(word) * 0.085 + 0.16
        found.append(at + wide / 2)
        at += wide
    return found
