"""What was found out about the heads of a model, and how it is shown."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from regard.foundation.display import columns
from regard.inspection.analyses.heads.dependencies import BEYOND_BASELINE, LEAST_ACCURACY, Relation
from regard.inspection.attention_kinds import KINDS, Kind
from regard.inspection.drawing import INK, LINE, PAPER, QUIET, new_figure, reserve_title, style_axes
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.metrics.intervals import Interval
from regard.metrics.scoring import NAMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROLES: dict[str, tuple[str, str]] = {
    "positional": ("#2f5fae", "positional: at least 90 % of its maxima are at one offset, where there is one"),
    "syntactic": (
        "#4f8f5b",
        "syntactic: follows a relation, significantly better than any fixed offset in sentences it was not chosen by",
    ),
    "rare": ("#e0a030", "rare tokens: half of its maxima are on the two rarest tokens"),
    "copy": ("#7a5ea8", "copy: looks at the very token it stands for"),
    "dead": ("#8a8f9c", "dead: the loss does not depend on it"),
}
"""The colour of a role, and what it means."""


SPLIT_NOTE = (
    "Heads are chosen by one half of the sentences; all figures here are of the other half. A head follows a relation "
    f"if it is right at least {100 * LEAST_ACCURACY:.0f} % of the time and {BEYOND_BASELINE} times as often as the "
    "best fixed offset, in both halves, and beats that offset with p < 0.05 (sign test over sentences, corrected by "
    "Holm's method for all relations, directions and heads). Punctuation is left out."
)
"""How to read the relations."""


@dataclass(frozen=True, kw_only=True)
class Followed:
    """A relation that a head follows, in the sentences that are reported on."""

    relation: str
    direction: str
    accuracy: float
    interval: Interval
    """The 95 % interval of the accuracy, by a bootstrap over sentences."""
    baseline: float
    p: float
    """Corrected for all relations, directions and heads."""


@dataclass(frozen=True)
class HeadFigures:
    """One head; shares are of the rows that were counted, special symbols being left out."""

    attention: str
    kind: Kind
    layer: int
    head: int
    confidence: float
    """The mean of its largest weight."""
    offset: int | None
    """Where it looks most often, relative to the token that looks; nothing where it looks at places of a picture."""
    at_offset: float
    """The share of its maxima there."""
    of_possible: float
    """The same among the tokens that have such a neighbour at all."""
    offsets: Mapping[int, int]
    """How often it looked at each of its most frequent offsets."""
    rows: int
    same: float | None
    """The share of its maxima on a token equal to the one that looks (to the source: to the one that is written)."""
    rarest: float | None
    """The share of its maxima on the rarest token, in sentences that have a rare one."""
    two_rarest: float | None
    chance: float | None
    """What `two_rarest` would be for a head that looks anywhere."""
    slope: float
    """E|∂loss/∂ξ|."""
    importance: float
    """The same as a part of a vector of length one over the heads of its attention."""
    rise: float
    """How much the loss rises without it, in nats a token."""
    score_lost: float | None
    """How much of the run's own score is lost without it."""
    followed: Sequence[Followed]
    """Relations that it follows; the farthest above its baseline first."""
    intervals: Mapping[str, Interval | None]
    """95 % intervals over sentences or examples of `confidence`, `of_possible`, `same`, `two_rarest`, `importance`,
    `rise` and `score_lost`."""
    roles: list[str]

    @property
    def name(self) -> str:
        """Layer and head, counted from 0, such as `2.3`."""
        return f"{self.layer}.{self.head}"

    @property
    def offset_shares(self) -> dict[int, float]:
        """The share of its maxima at each of its most frequent offsets."""
        return {offset: count / max(1, self.rows) for offset, count in self.offsets.items()}

    @property
    def role_label(self) -> str:
        """Its main role in a word or two."""
        if not self.roles:
            return ""
        match self.roles[0]:
            case "positional":
                return signed(self.offset or 0)
            case "syntactic":
                return self.followed[0].relation
            case role:
                return role


@dataclass(frozen=True, repr=False)
class Roles(Result):
    """What every head of a model does."""

    cell: str
    corpus: str | None
    """The corpus that was read, besides the run's validation examples."""
    sentences: int
    """How many sentences of it were read."""
    read: list[str]
    """The attentions that read it; the others were described over validation examples."""
    examples: int
    """How many validation examples were read."""
    pairs: int
    """How many examples importance was measured on."""
    noun: str
    """What examples are called."""
    loss: float
    """Of the whole model on these."""
    loss_name: str
    """What the loss is: nats per token, …"""
    metric: str | None
    """The score that heads were left out for, if any."""
    heads: list[HeadFigures]
    relations: list[Relation]
    parsed: bool
    """Whether the corpus says which word depends on which."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "What the heads do"

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of attention that the model has, the encoder's first."""
        order: tuple[Kind, ...] = ("encoder", "between", "decoder", "source", "picture", "places")
        return [kind for kind in order if self.of_kind(kind)]

    def of_kind(self, kind: Kind) -> list[HeadFigures]:
        """The heads of one kind of attention."""
        return [head for head in self.heads if head.kind == kind]

    def over(self, kind: Kind) -> str:
        """What the heads of a kind were described over."""
        names = {head.attention for head in self.of_kind(kind)}
        parts = [f"{self.sentences:,} sentences of {self.corpus}"] if names & set(self.read) else []
        examples = f"{self.examples:,} {self.noun}"
        if parts and not names <= set(self.read):
            return f"{parts[0]}; those of the looks over {examples}"
        return parts[0] if parts else examples

    @property
    def by(self) -> str:
        """What importance was measured on, in a sentence."""
        return f"Importance by {self.pairs} {self.noun}; the whole model's loss there is {self.loss:.3f} " + (
            f"({self.loss_name})."
        )

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.heads)} heads, {len(self.relations)} relations"

    def to_json(self) -> dict[str, Any]:
        """Plain data: all figures of all heads, and all relations."""
        heads = [
            asdict(head) | {"name": head.name, "role_label": head.role_label, "offset_shares": head.offset_shares}
            for head in self.heads
        ]
        return asdict(self) | {"heads": heads}

    def __str__(self) -> str:
        """A line for each head, and a line for each relation."""
        parts = []
        for kind in self.kinds:
            if chosen := self.of_kind(kind):
                listing = _listing(chosen, NAMES.get(self.metric or "", self.metric))
                parts.append(f"Heads {KINDS[kind]}, over {self.over(kind)}\n{listing}")
        parts.append(self.by)
        if self.relations:
            parts.append("Relations\n" + self._relations())
        elif self.sentences and not self.parsed:
            parts.append("No relations: the corpus is plain text; give one in CoNLL-U.")
        elif self.parsed:
            parts.append("No relations: none has enough pairs in both halves of the corpus. Give a larger one.")
        return "\n\n".join(parts)

    def best(self, relation: Relation) -> tuple[HeadFigures, float]:
        """The head that is best in the half that heads are chosen by, and how well it does in the other."""
        every = [head for head in self.heads if head.attention in relation.accuracy]
        best = max(every, key=lambda head: relation.chosen[head.attention][head.head])
        return best, relation.accuracy[best.attention][best.head]

    def _relations(self) -> str:
        rows = [["relation", "direction", "pairs", "offset", "baseline", "head", "accuracy", "95 %", "p", "follows"]]
        for relation in self.relations:
            head, accuracy = self.best(relation)
            low, high = relation.intervals[head.attention][head.head]
            rows.append(
                [
                    relation.name,
                    relation.direction,
                    f"{relation.pairs:,}",
                    signed(relation.offset),
                    percent(relation.baseline),
                    head.name,
                    percent(accuracy),
                    f"{100 * low:.0f}–{100 * high:.0f}",
                    f"{relation.p[head.attention][head.head]:.2g}",
                    "✓" if relation.follows[head.attention][head.head] else "",
                ]
            )
        return f"{columns(rows, right=(2, 3, 4, 6, 7, 8))}\n{SPLIT_NOTE}"

    def draw(self) -> "Figure":
        """The grid of heads, coloured by role, and the relations against their baselines."""
        kinds = self.kinds
        shown = self.relations[:16]
        width = 2.2 + 2.9 * len(kinds) + (4.6 if shown else 0)
        figure = new_figure(width, 4.8, f"{self.title}: role; confidence · importance", layout="constrained")
        reserve_title(figure)
        ratios = [1.0] * len(kinds) + ([1.5] if shown else [])
        axes = figure.subplots(1, len(ratios), width_ratios=ratios, squeeze=False)[0]
        for axis, kind in zip(axes, kinds, strict=False):
            _draw_grid(axis, self.of_kind(kind), KINDS[kind])
        if shown:
            self._draw_relations(axes[-1], shown)
        present = [role for role in ROLES if any(role in head.roles[:1] for head in self.heads)]
        handles = [_patch(ROLES[role][0], ROLES[role][1]) for role in present]
        if not all(head.roles for head in self.heads):
            handles.append(_patch(PAPER, "none of the roles looked for"))
        figure.legend(
            handles=handles,
            loc="outside lower left",
            ncols=2,
            frameon=False,
            fontsize=9,
            labelcolor=INK,
        )
        return figure

    def _draw_relations(self, axes: "Axes", shown: Sequence[Relation]) -> None:
        places = range(len(shown))
        heads = [self.best(relation)[0] for relation in shown]
        best = [relation.accuracy[head.attention][head.head] for relation, head in zip(shown, heads, strict=True)]
        ahead = [relation.follows[head.attention][head.head] for relation, head in zip(shown, heads, strict=True)]
        colours = [ROLES["syntactic"][0] if wins else LINE for wins in ahead]
        axes.barh(places, best, color=colours, height=0.7)
        axes.vlines(
            [relation.baseline for relation in shown],
            [y - 0.42 for y in places],
            [y + 0.42 for y in places],
            color=INK,
            lw=1.6,
        )
        arrows = {"to head": "→ head", "to dependent": "← head"}
        axes.set_yticks(places, [f"{relation.name} {arrows[relation.direction]}" for relation in shown])
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        ends = [relation.intervals[head.attention][head.head] for relation, head in zip(shown, heads, strict=True)]
        spread = [[value - low for value, (low, _) in zip(best, ends, strict=True)]]
        spread.append([high - value for value, (_, high) in zip(best, ends, strict=True)])
        axes.errorbar(best, list(places), xerr=spread, fmt="none", ecolor=QUIET, elinewidth=1)
        title = "best head (bar, 95 %; green: follows it) and best fixed offset (line)"
        axes.set_title(title, loc="left", fontsize=9, color=INK)
        style_axes(axes)
        axes.grid(visible=False, axis="y")
        axes.grid(axis="x", color=LINE, linewidth=0.8)

    def panels(self) -> list[Panel]:
        """The grid of heads with their figures, and the relations."""
        note = (
            "Each tile is a head, coloured by its importance at first. Special symbols are left out: a head is judged "
            "by where real tokens look among real tokens. Pick a head to see its figures."
        )
        meanings = {role: {"colour": colour, "meaning": meaning} for role, (colour, meaning) in ROLES.items()}
        return [
            Panel(
                "heads",
                self.to_json()
                | {
                    "kinds": {kind: KINDS[kind] for kind in self.kinds},
                    "over": {kind: self.over(kind) for kind in self.kinds},
                    "by": self.by,
                    "metricName": NAMES.get(self.metric or "", self.metric),
                    "meanings": meanings,
                    "splitNote": SPLIT_NOTE,
                },
                note=note,
            )
        ]


def _listing(chosen: Sequence[HeadFigures], metric: str | None) -> str:
    rare = any(figures.rarest is not None for figures in chosen)
    ordered = any(figures.offset is not None for figures in chosen)
    head = ["head", "role", "confidence", *(["offset", "share", "same"] if ordered else [])]
    head += ["rarest", "two"] if rare else []
    rows = [[*head, "gradient", "loss +", "95 %", *([f"{metric} −", "95 %"] if metric else []), "follows"]]
    for figures in chosen:
        row = [figures.name, ", ".join(figures.roles) or "–", f"{figures.confidence:.2f}"]
        if ordered:
            row += [
                "–" if figures.offset is None else signed(figures.offset),
                percent(figures.of_possible),
                percent(figures.same),
            ]
        row += [percent(figures.rarest), percent(figures.two_rarest)] if rare else []
        rise = figures.intervals.get("rise")
        row += [
            f"{figures.importance:.2f}",
            f"{figures.rise:.3f}",
            "–" if rise is None else f"{rise[0]:.3f}–{rise[1]:.3f}",
        ]
        if figures.score_lost is not None:
            ends = figures.intervals.get("score_lost")
            row += [f"{figures.score_lost:.1f}", "–" if ends is None else f"{ends[0]:.1f}–{ends[1]:.1f}"]
        followed = dict.fromkeys(relation.relation for relation in figures.followed)
        row.append(", ".join(list(followed)[:3]) + (" …" if len(followed) > 3 else ""))
        rows.append(row)
    return columns(rows, right=range(2, len(rows[0]) - 1), indent="  ")


def signed(offset: int) -> str:
    """An offset as people write it: −1, 0, +1."""
    return f"{offset:+d}".replace("-", "−") if offset else "0"


def percent(share: float | None) -> str:
    """A share as a percentage."""
    return "–" if share is None else f"{100 * share:.0f} %"


def _draw_grid(axes: "Axes", chosen: Sequence[HeadFigures], title: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    most = max(figures.head for figures in chosen) + 1
    layers = max(figures.layer for figures in chosen) + 1
    for figures in chosen:
        face = ROLES[figures.roles[0]][0] if figures.roles else PAPER
        form = "round,pad=0,rounding_size=0.08"
        box = FancyBboxPatch(
            (figures.head - 0.42, figures.layer - 0.38), 0.84, 0.76, boxstyle=form, facecolor=face, edgecolor=LINE
        )
        axes.add_patch(box)
        ink = PAPER if figures.roles else QUIET
        axes.text(
            figures.head,
            figures.layer - 0.08,
            figures.role_label or "–",
            ha="center",
            va="center",
            fontsize=8.5,
            color=ink,
        )
        text = f"{figures.confidence:.2f} · {figures.importance:.2f}"
        axes.text(figures.head, figures.layer + 0.22, text, ha="center", va="center", fontsize=6.5, color=ink)
    axes.set_xlim(-0.6, most - 0.4)
    axes.set_ylim(layers - 0.4, -0.6)
    axes.set_xticks(range(most), [f"head {head}" for head in range(most)])
    axes.set_yticks(range(layers), [f"layer {layer}" for layer in range(layers)])
    axes.tick_params(length=0, labelsize=8, labelcolor=INK)
    axes.spines[:].set_visible(False)
    axes.set_title(title, loc="left", fontsize=9, color=INK)


def _patch(colour: str, meaning: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=colour, edgecolor=LINE, label=meaning)
