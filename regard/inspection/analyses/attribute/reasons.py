"""Which words made this answer: attribution in models that read one side only, such as acceptors and language models.

Axes: N tokens that were read, T answers, C classes (or V tokens).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.foundation.display import columns
from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.inspection.analyses.attribute.compute import (
    GRADIENT,
    INTEGRATED,
    METHODS,
    OCCLUSION,
    Attribution,
    Method,
    along,
    attribute,
    borne,
    check_methods,
    integrate,
    occlude,
    runners_up,
)
from regard.inspection.analyses.attribute.other_word import word_ids
from regard.inspection.drawing import CELL, INK, blank, draw_map
from regard.inspection.influence import token_text
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.inspection.vectors import Question, Vectors
from regard.tasks.trace import Side, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTES: dict[Method, str] = {"gradient": GRADIENT, "integrated": INTEGRATED, "occlusion": OCCLUSION}
MOST = 5
"""Answers shown with their probabilities."""


@dataclass(frozen=True)
class Reason:
    """What every method says to one question about each answer."""

    question: str
    others: list[str] | None
    """T: the answer each was set against."""
    methods: dict[Method, Tensor]
    """T×N: what each token did."""
    gaps: Tensor | None
    """T: how far integrated gradients are from summing to what all tokens did together."""
    explained: Tensor
    """T: that: the value asked for, less what it is when every token is blank."""


@dataclass(frozen=True)
class Reasons(Result):
    """What each word that was read did for every answer, or against it."""

    trace: Trace
    reasons: list[Reason]
    """The first is what tables and pictures show."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "What made the model say it"

    @property
    def read(self) -> Side:
        """The side that was read: the source, or of a language model the words before."""
        return self.trace.source if len(self.trace.source) else self.trace.inputs

    @property
    def unit(self) -> str:
        """What amounts are counted in."""
        return "of the number" if self.trace.numeric else "nats"

    def words(self, amounts: Tensor) -> Tensor:
        """Amounts T×N by the words that were read: T×words."""
        return self.read.summed(amounts)

    def to_json(self) -> dict[str, Any]:
        """Plain data: what was read, the answers with their probabilities, and the amounts of each method."""
        return {
            "read": {"tokens": self.read.tokens, "words": self.read.word_texts, "wordOf": self.read.words},
            "special": self.read.special,
            "answers": self.trace.target.tokens,
            "places": self._places(),
            "likeliest": self._likeliest(),
            "unit": self.unit,
            "questions": [
                {
                    "name": one.question,
                    "others": one.others,
                    "explained": _rounded(one.explained),
                    "gaps": None if one.gaps is None else _rounded(one.gaps),
                    "methods": [
                        {
                            "name": METHODS[method],
                            "note": NOTES[method],
                            "tokens": _rounded(amounts),
                            "words": _rounded(self.words(amounts)),
                            "covered": _rounded(amounts.sum(-1)),
                        }
                        for method, amounts in one.methods.items()
                    ],
                }
                for one in self.reasons
            ],
        }

    def _places(self) -> list[int] | None:
        """The token that each answer is about, where there is one: a tagged word, a blank, the word itself."""
        if not len(self.trace.source):
            return [place + 1 for place in range(len(self.trace.target) - 1)] + [len(self.trace.target) - 1]
        given = self.trace.given
        return None if given is None or given.asked == [0] else given.asked

    def _likeliest(self) -> list[list[list[Any]]]:
        if self.trace.numeric:
            return [[]]
        best = self.trace.log_probabilities.exp().topk(min(MOST, self.trace.log_probabilities.shape[1]))
        return [
            [[_name(self.trace, one), round(chance, 4)] for one, chance in zip(ids, chances, strict=True)]
            for ids, chances in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def __str__(self) -> str:
        """For each answer the words that spoke most for it and against it, by the first method and question."""
        first = self.reasons[0]
        method, amounts = next(iter(first.methods.items()))
        against = [] if first.others is None else ["not"]
        head = ["answer", *([] if self.trace.numeric else ["P"]), *against, "covers", "for it", "against it"]
        rows = [head]
        texts = self.read.word_texts
        for place, row in enumerate(self.words(amounts)):
            order = row.argsort(descending=True).tolist()
            spoke = [f"{texts[one]} {row[one]:+.2f}" for one in order[:4] if row[one] > 0.005]
            denied = [f"{texts[one]} {row[one]:+.2f}" for one in order[::-1][:3] if row[one] < -0.005]
            chance = [] if self.trace.numeric else [f"{self.trace.said[place].exp():.2f}"]
            other = [] if first.others is None else [first.others[place]]
            covers = f"{float(row.sum()):+.2f} of {float(first.explained[place]):+.2f}"
            rows.append([self.trace.target.tokens[place], *chance, *other, covers, "  ".join(spoke), "  ".join(denied)])
        told = f"{METHODS[method]}: {first.question}, in {self.unit}"
        if method == "integrated" and first.gaps is not None:
            told += f"; each row sums to what all words did together, to {first.gaps.max().item():.3f}"
        return f"{columns(rows)}\n\n{told}."

    def draw(self) -> "Figure":
        """One map per method: answers down, words across, red where a word spoke against it."""
        found = self.reasons[0].methods
        names, wide = self.read.word_texts, len(self.read.word_texts) * CELL
        tall, above, left, right = len(self.trace.target) * CELL, 1.1, 1.2, 0.5
        width, height = max(wide + left + right, 3.5), len(found) * (tall + above) + 0.2
        figure = blank(width, height)
        for number, (method, amounts) in enumerate(found.items()):
            bottom = height - (number + 1) * (tall + above)
            axes = figure.add_axes((left / width, bottom / height, wide / width, tall / height))
            values = self.words(amounts)
            largest = values.abs().amax(-1, keepdim=True).clamp(min=1e-9)
            draw_map(axes, values / largest, self.trace.target.tokens, names, signed=True)
            place = (bottom + tall + above - 0.15) / height
            figure.text(0.01, place, METHODS[method], fontsize=10, fontweight="bold", color=INK)
        return figure

    def panels(self) -> list[Panel]:
        """The text, tinted by what each word did for the answer that is picked."""
        note = (
            f"Pick an answer: blue words spoke for it, red ones against it, in {self.unit}. Each is compared with a "
            "blank, the vector of the unknown word at the same place; start, end and separator are never taken "
            "away and have no part."
        )
        return [Panel("reasons", self.to_json(), note=note)]


def explain_words(
    trace: Trace,
    methods: Sequence[Method] = tuple(METHODS),
    *,
    instead: str | None = None,
    at: int | None = None,
    progress: Progress | None = None,
) -> Attribution | Reasons:
    """Attribution, where a model has both a source and a prefix; otherwise the reasons of what it read."""
    analysis = attribute if len(trace.source) and len(trace.inputs) else reasons
    return analysis(trace, methods, instead=instead, at=at, progress=progress)


def reasons(
    trace: Trace,
    methods: Sequence[Method] = tuple(METHODS),
    *,
    instead: str | None = None,
    at: int | None = None,
    progress: Progress | None = None,
) -> Reasons:
    """What each token that was read did for every answer, and for its lead over the runner-up, or over `instead`.

    Another label is set against every answer; another word against the answer `at` (counted from 1), which may be left
    out where there is only one.
    """
    check_methods(methods)
    said = torch.tensor(trace.target.ids)
    names: list[tuple[str, list[str] | None]]
    if trace.numeric:
        if instead is not None:
            raise UsageError("A number has no other answer to be set against: leave out --instead.")
        questions, names = [Question(said, number=True)], [("what made the number", None)]
    else:
        others, places = runners_up(trace), list(range(len(said)))
        if instead is not None:
            others, places = _instead(trace, instead, at)
        questions = [Question(said), Question(said, others)]
        against = "and not the runner-up" if instead is None else f"and not “{instead.strip()}”"
        texts = [_name(trace, one) if place in places else "" for place, one in enumerate(others.tolist())]
        names = [("why it was said", None), (f"why it was said {against}", texts)]
    vectors = Vectors(trace)
    with torch.no_grad():
        logits = vectors.model.scores(vectors.states(*vectors.at(torch.tensor([0.0, 1.0]))))  # 2×T×C
        ends = torch.stack([question.answers(logits) for question in questions])  # Q×2×T
    explained = (ends[:, 1] - ends[:, 0]).cpu()  # Q×T
    every = [(number, place) for number in range(len(questions)) for place in range(len(said))]
    found: list[dict[Method, Tensor]] = [{} for _ in questions]
    gaps = None
    for method in methods:
        match method:
            case "gradient":
                amounts = along(vectors, questions, every, torch.ones(1), torch.ones(1), progress)
            case "integrated":
                amounts, gaps, _ = integrate(vectors, questions, explained, progress)
            case "occlusion":
                amounts, _ = occlude(vectors, questions, ends[:, 1], trace.target, progress)
        for number, each in enumerate(amounts):
            found[number][method] = each
    if not trace.numeric and instead is not None:
        elsewhere = [place for place in range(len(said)) if place not in places]
        explained[1, elsewhere] = 0.0
        for amounts in found[1].values():
            amounts[elsewhere] = 0.0
    told = [
        Reason(question, other, found[number], None if gaps is None else gaps[number], explained[number])
        for number, (question, other) in enumerate(names)
    ]
    return Reasons(trace, told if instead is None else told[::-1])


def trusted(reason: Reason) -> bool:
    """Whether integrated gradients sum to what was to be explained, as nearly as is borne."""
    return reason.gaps is None or bool((reason.gaps <= borne(reason.explained)).all())


def _instead(trace: Trace, text: str, at: int | None) -> tuple[Tensor, list[int]]:
    """Return another answer to set each against (T), and the places where it is."""
    count = len(trace.target)
    if trace.labels is None:
        ids = word_ids(trace, text)
        if len(ids) > 1:
            raise UsageError(
                f'"{text.strip()[:80]}" has {len(ids)} tokens in this vocabulary, but this model answers with one '
                "token at a time: give a word that is one token."
            )
        answers = [place for place, special in enumerate(trace.target.special) if not special]
        if at is not None and not 1 <= at <= len(answers):
            raise UsageError(f"There is no answer {at} to be replaced: there are answers 1 to {len(answers)}.")
        if at is None and len(answers) > 1:
            raise UsageError(
                f'There are {len(answers)} answers, and "{text.strip()[:80]}" can be compared with any of them: name '
                "one with --at N (in Python at=N)."
            )
        return torch.full((count,), ids[0]), [answers[(at or 1) - 1]]
    if text.strip() not in trace.labels:
        known = ", ".join(trace.labels[:10])
        raise UsageError(f"`{text.strip()[:40]}` is no label of this run: it has {known}.")
    places = list(range(count)) if at is None else [at - 1]
    if not set(places) <= set(range(count)):
        raise UsageError(f"There is no answer {at} to be replaced: there are answers 1 to {count}.")
    return torch.full((count,), trace.labels.index(text.strip())), places


def _name(trace: Trace, number: int) -> str:
    return trace.labels[number] if trace.labels else token_text(trace, number)


def _rounded(values: Tensor) -> list[Any]:
    rounded: list[Any] = (values.double() * 1e4).round().div(1e4).tolist()
    return rounded
