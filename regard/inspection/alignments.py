"""Which words belong together, as a model sees it: word alignment, and its error rate against people's.

Axes: S source words, T target words.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from regard.data.progress import Progress
from regard.errors import UsageError
from regard.evaluation.display import columns
from regard.inspection.drawing import COLOURS, INK, KEY, QUIET, blank
from regard.inspection.links import COMBINING, Combining, Gold, Link, Links, Scores, combine, pharaoh, read_gold, score
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.inspection.word_weights import (
    METHODS,
    READINGS,
    Choice,
    Method,
    Pair,
    Reading,
    token_maps,
    word_weights,
)
from regard.translator import Translator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SAMPLE = 500
"""Pairs by which a layer is chosen where there is no gold."""

MOST_SHOWN = 2000
"""Pairs that a page holds."""

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
    gold: list[Gold] | None = None

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Which words belong together"

    @property
    def scores(self) -> Scores | None:
        """Against gold, if it was given."""
        return None if self.gold is None else score(self.links, self.gold)

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
        scores = self.scores
        return {
            "how": self.how,
            "method": self.method,
            "combining": self.combining,
            "scores": None if scores is None else scores.facts(),
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
        """How it was done, and with gold how well, beside all that was tried."""
        scores = self.scores
        if scores is None:
            return self.how
        rows = [["read", "AER", "precision", "recall", "links"]]
        for one in self.tried:
            if one.scores is not None:
                rows.append([f"{one.run}: {one.choice}", *_figures(one.scores)])
        rows.append([f"all in all ({self.combining})", *_figures(scores)])
        chosen = len([one for one in self.tried if one.run == "run"])
        note = f"\nThe best of {chosen} readings was chosen on this gold itself." if chosen > 1 else ""
        return f"{self.how}\n{columns(rows, right=(1, 2, 3, 4))}{note}"

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
        return [Panel("align", data, note=self.how + more)]


def align(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    gold: Path | str | None = None,
    reverse: Translator | None = None,
    method: Method = "attention",
    layer: int | None = None,
    head: int | None = None,
    reading: Reading | None = None,
    combining: Combining | None = None,
    progress: Progress | None = None,
) -> Alignments:
    """Align the words of texts with those of their translations.

    Of the layers and readings not asked for, the best is taken: by error rate where there is `gold`, else by how well
    two directions agree: with the `reverse` run (which translates targets into sources), or within the same map.
    """
    if not any(source.strip() for source in sources):
        raise UsageError("There is nothing to align: the texts are empty.")
    _check(sources, targets, method, reading, combining)
    pairs = [Pair.of(translator, source, target) for source, target in zip(sources, targets, strict=True)]
    wanted = read_gold(gold, [(len(pair.source), len(pair.target)) for pair in pairs]) if gold is not None else None
    combining = combining or ("none" if reverse is None else "grow-diag")
    some = len(pairs) if wanted is not None else min(SAMPLE, len(pairs))
    ask = _Asked(method, layer, head, reading)
    forward = _directed(translator, pairs[:some], ask, None, progress)
    if reverse is None:
        tried = [_tried("run", choice, rows, columns_, wanted) for choice, (rows, columns_) in forward.items()]
        best = _best(tried)
        rows, others = _all(forward, best, translator, pairs, some, ask, progress)
        links = [combine(one, other, combining) for one, other in zip(rows, others, strict=True)]
        texts = [pair.source for pair in pairs], [pair.target for pair in pairs]
        return Alignments(*texts, links, method, combining, best, None, tried, wanted)
    flipped = [Pair.of(reverse, target, source) for source, target in zip(sources, targets, strict=True)]
    free = _Asked(method, None, None, None)
    backward = {
        choice: ([_flip(one) for one in rows], [_flip(one) for one in others])
        for choice, (rows, others) in _directed(reverse, flipped[:some], free, None, progress).items()
    }
    tried, best, second = _of_two(forward, backward, wanted)
    rows, _ = _all(forward, best, translator, pairs, some, ask, progress)
    back = backward[second][0]
    if some < len(pairs):
        back = back + [_flip(one) for one in _directed(reverse, flipped[some:], free, second, progress)[second][0]]
    links = [combine(one, other, combining) for one, other in zip(rows, back, strict=True)]
    texts = [pair.source for pair in pairs], [pair.target for pair in pairs]
    return Alignments(*texts, links, method, combining, best, second, tried, wanted)


def agreement(one: Iterable[Links], other: Iterable[Links]) -> float:
    """How far two sets of links are the same: 2 |A∩B| / (|A| + |B|)."""
    both, total = 0, 0
    for first, second in zip(one, other, strict=True):
        both, total = both + len(first & second), total + len(first) + len(second)
    return 2 * both / total if total else 0.0


def maxima(weights: Tensor, pair: Pair) -> tuple[Links, Links]:
    """Of weights T×(S+1): the best source word of each target word, and the best target word of each source word.

    A target word whose best is the end symbol (the last column) has no link; nor has a word without tokens.
    """
    rows = [
        (int(source), target)
        for target, source in enumerate(weights.argmax(1).tolist())
        if pair.target_tokens[target] and source < len(pair.source)
    ]
    best = weights[:, : len(pair.source)].argmax(0).tolist()
    columns_ = [(source, int(target)) for source, target in enumerate(best) if pair.source_tokens[source]]
    return frozenset(rows), frozenset(columns_)


@dataclass(frozen=True)
class _Asked:
    """What the user wants of the maps; the rest is tried."""

    method: Method
    layer: int | None
    head: int | None
    reading: Reading | None

    def choices(self, keys: Iterable[tuple[int | None, int | None]]) -> list[Choice]:
        """All readings of the maps that fit."""
        keys = list(keys)
        layers = sorted({layer for layer, _ in keys if layer is not None})
        heads = sorted({head for layer, head in keys if self.layer in (None, layer) and head is not None})
        if self.layer is not None and self.layer not in layers:
            raise UsageError(
                f"There is no layer {self.layer} that looks at the source: layers are {', '.join(map(str, layers))}."
            )
        if self.head is not None and self.head not in heads:
            which = f"heads are {', '.join(map(str, heads))}" if heads else "contributions are of all heads together"
            raise UsageError(f"There is no head {self.head} there: {which}.")
        wanted: list[int | None] = [layer for layer in layers if (layer, self.head) in keys]
        if self.layer is not None:
            wanted = [self.layer]
        elif self.head is None and len(layers) > 1:
            wanted.append(None)
        readings = [self.reading] if self.reading is not None else list(READINGS)
        return [Choice(layer, self.head, reading) for layer in wanted for reading in readings]


_Directed = dict[Choice, tuple[list[Links], list[Links]]]
"""For each choice the links of every pair: the maxima of rows, and those of columns."""


def _directed(
    translator: Translator, pairs: Sequence[Pair], asked: _Asked, only: Choice | None, progress: Progress | None
) -> _Directed:
    none: Links = frozenset()
    found: _Directed = {}
    for place, maps in token_maps(translator, pairs, asked.method, progress=progress):
        for choice in found or ([only] if only is not None else asked.choices(maps)):
            rows, columns_ = found.setdefault(choice, ([none] * len(pairs), [none] * len(pairs)))
            weights = word_weights(maps[choice.layer, choice.head], pairs[place], choice.reading)
            rows[place], columns_[place] = maxima(weights, pairs[place])
    if not found:
        choice = only or Choice(asked.layer, asked.head, asked.reading or "reads")
        found[choice] = [none] * len(pairs), [none] * len(pairs)
    return found


def _all(
    found: _Directed,
    choice: Choice,
    translator: Translator,
    pairs: Sequence[Pair],
    some: int,
    asked: _Asked,
    progress: Progress | None,
) -> tuple[list[Links], list[Links]]:
    """The links of all pairs by a choice that was made on some."""
    rows, columns_ = found[choice]
    if some < len(pairs):
        more = _directed(translator, pairs[some:], asked, choice, progress)[choice]
        rows, columns_ = rows + more[0], columns_ + more[1]
    return rows, columns_


def _tried(run: str, choice: Choice, rows: list[Links], others: list[Links], gold: list[Gold] | None) -> Tried:
    return Tried(run, choice, agreement(rows, others), None if gold is None else score(rows, gold))


def _best(tried: Sequence[Tried]) -> Choice:
    """The choice with the lowest error rate or, without gold, the best agreement; the first of equals."""
    return min(tried, key=lambda one: -one.agreement if one.scores is None else one.scores.error_rate).choice


def _of_two(forward: _Directed, backward: _Directed, gold: list[Gold] | None) -> tuple[list[Tried], Choice, Choice]:
    """The best choices in two runs: each by gold, or the pair that agrees best."""
    pairs = {
        (one, other): agreement(rows, back)
        for one, (rows, _) in forward.items()
        for other, (back, _) in backward.items()
    }

    def tried(run: str, found: _Directed, place: int) -> list[Tried]:
        best = {choice: max(value for key, value in pairs.items() if key[place] == choice) for choice in found}
        return [
            Tried(run, choice, best[choice], None if gold is None else score(rows, gold))
            for choice, (rows, _) in found.items()
        ]

    both = tried("run", forward, 0), tried("reverse", backward, 1)
    if gold is not None:
        return [*both[0], *both[1]], _best(both[0]), _best(both[1])
    best = max(pairs, key=lambda key: pairs[key])
    return [*both[0], *both[1]], *best


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
    return [*(f"{100 * share:.1f}" for share in shares), f"{scores.found:,}"]


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
