"""Which input made this output: gradient × input, integrated gradients and occlusion, for every model of the grid.

Axes: S source tokens, T target tokens, V vocabulary, Q questions, B rows that are read at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.inspection.analyses.attribute.other_word import OtherWord, other_word
from regard.inspection.flow import flows
from regard.inspection.gain import NOTE, Gain
from regard.inspection.influence import Influence, draw_influences, listing, pane, token_text
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.inspection.vectors import Question, Vectors
from regard.tasks.trace import Side, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Method = Literal["occlusion", "integrated", "gradient"]
METHODS: dict[Method, str] = {
    "occlusion": "occlusion",
    "integrated": "integrated gradients",
    "gradient": "gradient × input",
}
"""In the order in which they are shown: occlusion first, for what docs/inspection.md measured."""

STEPS, MOST_STEPS = 50, 400
"""Points on the path of integrated gradients: at first, and at most where the gap stays wide."""

AGAIN = 2**21
"""Tokens that may be read again to narrow gaps: about a minute for a small model on one core."""

GAP = 0.01
"""The gap of integrated gradients that is borne: this share of what was to be explained, or these nats, if more."""

NUMBERS = 2**25
"""Logits held at once."""


@dataclass(frozen=True)
class Answer:
    """What every method says to one question about each target token."""

    question: str
    others: list[str] | None
    """T: the token each was set against."""
    methods: dict[Method, Influence]
    explained: Tensor
    """T: the value asked for, less what it is when every token is blank."""
    gaps: Tensor | None
    """T: how far integrated gradients are from summing to that."""
    steps: int
    """Points on the path that they took, where they took most."""

    @property
    def wide(self) -> list[int]:
        """The target tokens whose gap is wider than is borne."""
        if self.gaps is None:
            return []
        return [place for place, wide in enumerate((self.gaps > borne(self.explained)).tolist()) if wide]


@dataclass(frozen=True)
class Attribution(Result):
    """Which tokens, of source and prefix, made each target token likely, or unlikely."""

    trace: Trace
    answers: list[Answer]
    """The first is what tables and pictures show."""
    gain: Gain
    """What the source did for each word."""
    other: OtherWord | None = None
    """The word that one of those said was set against."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "What made the model say it"

    def to_json(self) -> dict[str, Any]:
        """Plain data: tokens, words, and the amounts of each method for each question, in nats."""
        asked = [(one.question, list(one.methods.values())) for one in self.answers]
        instead = None if self.other is None else self.other.facts()
        return pane(self.trace, self.gain, asked, explanations=self._explanations(), instead=instead)

    def _explanations(self) -> list[dict[str, Any]]:
        return [
            {
                "others": one.others,
                "explained": _rounded(one.explained),
                "gaps": None if one.gaps is None else _rounded(one.gaps),
                "steps": one.steps,
                "wide": one.wide,
                "covered": {METHODS[method]: _rounded(covered(found)) for method, found in one.methods.items()},
            }
            for one in self.answers
        ]

    def __str__(self) -> str:
        """For each target token what spoke most for it or against it, by the first method and question."""
        first = self.answers[0]
        method, found = next(iter(first.methods.items()))
        heads = [*([] if first.others is None else ["not"]), "covers"]
        cells = [
            [*([] if first.others is None else [first.others[place]]), f"{amount:+.2f} of {whole:+.2f}"]
            for place, (amount, whole) in enumerate(zip(covered(found).tolist(), first.explained.tolist(), strict=True))
        ]
        told = f"{METHODS[method]}: {first.question}, in nats"
        lines = [listing(self.trace, self.gain, found, heads, cells), told + self._gap(first, method), COVERAGE]
        if self.other is not None:
            lines.append(str(self.other))
        return "\n".join(lines)

    def _gap(self, answer: Answer, method: Method) -> str:
        """What the table says of completeness."""
        if method != "integrated" or answer.gaps is None:
            return "."
        told = f"; each row sums to what all its tokens did together, to {answer.gaps.max().item():.3f}."
        if answer.wide:
            worst = int(answer.gaps.argmax())
            told += (
                f"\nAt {len(answer.wide)} of {len(answer.gaps)} tokens, most at {self.trace.target.tokens[worst]}, the "
                f"gap stays wider than {GAP:.0%} in {answer.steps} steps: do not trust small amounts there."
            )
        return told

    def draw(self) -> "Figure":
        """One map per method: source to the left, prefix to the right, red where a token spoke against it."""
        return draw_influences(self.trace, self.gain, list(self.answers[0].methods.values()))

    def panels(self) -> list[Panel]:
        """The sentence pair with all methods, and those that read the attention beside them."""
        beside = flows(self.trace)
        asked = [(one.question, [*one.methods.values(), *beside]) for one in self.answers]
        instead = None if self.other is None else self.other.facts()
        data = pane(self.trace, self.gain, asked, explanations=self._explanations(), instead=instead)
        note = (
            "Pick a word that was said: blue tokens spoke for it, red ones against it, in nats of its log-probability "
            "or of its lead over another word. Start and end symbols are never taken away, so they have no part. "
            f"{COVERAGE[0].upper()}{COVERAGE[1:]} {NOTE}"
        )
        note = note if self.other is None else f"{self.other} {note}"
        return [Panel("influence", data, note=note)]


def attribute(
    trace: Trace,
    methods: Sequence[Method] = tuple(METHODS),
    *,
    instead: str | None = None,
    at: int | None = None,
    progress: Progress | None = None,
) -> Attribution:
    """What each token of source and prefix did for every target token, and for its lead over the runner-up.

    With `instead`, what it did for the lead of one whole word over that whole word: of target word `at` (counted from
    1), which may be left out where there is only one. Whatever a token is compared with is the blank: the vector of
    the unknown word, at the same position.
    """
    check_methods(methods)
    said = torch.tensor(trace.target.ids)
    gain = Gain.of(trace)
    if instead is not None:
        return _with_instead(trace, other_word(trace, instead, at), methods, gain, progress)
    others = runners_up(trace)
    asked = _ask(trace, [Question(said), Question(said, others)], methods, progress)
    texts = [token_text(trace, token) for token in others.tolist()]
    return Attribution(
        trace, [asked.answer(0, WHY, None), asked.answer(1, f"{WHY} and not the runner-up", texts)], gain
    )


WHY = "why it was said"


@dataclass(frozen=True)
class _Asked:
    """What all methods say to some questions about one trace."""

    found: list[dict[Method, Influence]]
    explained: Tensor
    """Q×T."""
    gaps: Tensor | None
    steps: int

    def answer(self, number: int, question: str, others: list[str] | None) -> Answer:
        """The answer to one question."""
        gaps = None if self.gaps is None else self.gaps[number]
        return Answer(question, others, self.found[number], self.explained[number], gaps, self.steps)


def _ask(trace: Trace, questions: Sequence[Question], methods: Sequence[Method], progress: Progress | None) -> _Asked:
    vectors = Vectors(trace)
    ends = _ends(vectors, questions)  # Q×2×T
    explained = (ends[:, 1] - ends[:, 0]).cpu()  # Q×T
    found: list[dict[Method, Influence]] = [{} for _ in questions]
    gaps, steps = None, 0
    for method in methods:
        match method:
            case "gradient":
                amounts = along(vectors, questions, _all(questions), torch.ones(1), torch.ones(1), progress)
                _put(found, method, trace, amounts, GRADIENT)
            case "integrated":
                amounts, gaps, steps = integrate(vectors, questions, explained, progress)
                _put(found, method, trace, amounts, INTEGRATED)
            case "occlusion":
                amounts, by_word = occlude(vectors, questions, ends[:, 1], trace.target, progress)
                _put(found, method, trace, amounts, OCCLUSION, by_word)
    return _Asked(found, explained, gaps, steps)


def _with_instead(
    trace: Trace, other: OtherWord, methods: Sequence[Method], gain: Gain, progress: Progress | None
) -> Attribution:
    """Why one word was said and not another: what speaks for the whole of it, less what speaks for the whole other.

    Both passes read the same up to the word, so that their columns correspond; what the pieces of a word do for each
    other is no reason for either.
    """
    mine = _ask(trace, [Question(torch.tensor(trace.target.ids))], methods, progress)
    theirs = _ask(other.trace, [Question(torch.tensor(other.trace.target.ids))], methods, progress)
    first = other.places[0]

    def row(one: Tensor, places: list[int]) -> Tensor:
        return one[places].sum(0)

    def alone(value: Tensor, size: int) -> Tensor:
        """Values of one word, at its first token or at its row, nothing elsewhere."""
        found = torch.zeros(size, *value.shape)
        found[first if size == len(trace.target) else other.word] = value
        return found

    found: dict[Method, Influence] = {}
    for method, said in mine.found[0].items():
        less = theirs.found[0][method]
        source = row(said.source, other.places) - row(less.source, other.own)
        prefix = torch.zeros(len(trace.inputs))
        prefix[: first + 1] = (row(said.prefix, other.places))[: first + 1] - row(less.prefix, other.own)[: first + 1]
        words, others = said.words(trace), less.words(other.trace)
        theirs_word = other.trace.target.words[other.own[0]]
        seen = trace.inputs.words[first] + 1
        by_prefix = torch.zeros(words[1].shape[1])
        by_prefix[:seen] = words[1][other.word, :seen] - others[1][theirs_word, :seen]
        count = len(words[0])
        by_word = torch.zeros(count, words[0].shape[1]), torch.zeros(count, len(by_prefix))
        by_word[0][other.word] = words[0][other.word] - others[0][theirs_word]
        by_word[1][other.word] = by_prefix
        size = len(trace.target)
        found[method] = replace(said, source=alone(source, size), prefix=alone(prefix, size), by_word=by_word)
    explained, gaps = torch.zeros(len(trace.target)), None
    explained[first] = row(mine.explained[0], other.places) - row(theirs.explained[0], other.own)
    if mine.gaps is not None and theirs.gaps is not None:
        gaps = torch.zeros(len(trace.target))
        gaps[first] = row(mine.gaps[0], other.places) + row(theirs.gaps[0], other.own)
    texts = [other.text if place == first else "" for place in range(len(trace.target))]
    steps = max(mine.steps, theirs.steps)
    lead = Answer(f"{WHY} and not “{other.text}”", texts, found, explained, gaps, steps)
    return Attribution(trace, [lead, mine.answer(0, WHY, None)], gain, other)


COVERAGE = (
    "covers: the sum of all amounts of a row, of what blanking all tokens at once would cost. Where the two are far "
    "apart, tokens stand in for each other, and single amounts explain little. The start symbol is never blanked, so "
    "no share of source and prefix is given."
)

GRADIENT = (
    "The slope at the real input, times the way from the blank to it (Shrikumar et al., 2017). By far the least "
    "faithful of the three: where the model is sure, slopes are near zero."
)
INTEGRATED = (
    "The slope averaged over the straight way from all blank to the real input, times that way (Sundararajan et al., "
    "2017). A row sums to what all tokens did together."
)
OCCLUSION = (
    "What is lost when this one token, or word, is blank (Zeiler and Fergus, 2014). It stands first because the "
    "tokens that it ranks highest did best alone, and were missed as much as those of integrated gradients, on 621 "
    "target tokens of one model (docs/inspection.md)."
)


def check_methods(methods: Sequence[str]) -> None:
    """Refuse a method that there is not."""
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise UsageError(f'There is no method "{unknown[0]}": use {", ".join(METHODS)}, or several of them.')


def along(
    vectors: Vectors,
    questions: Sequence[Question],
    asked: Sequence[tuple[int, int]],
    points: Tensor,
    weights: Tensor,
    progress: Progress | None = None,
) -> Tensor:
    """Σ_k w_k ∇f(x_k) · (x − blank) over points x_k of the way from blank to x: Q×T×(S+T), zero where not asked.

    The way is the same for every output position, so each chunk of points is read once, and asked once for each.
    """
    length = len(vectors.source) + len(vectors.inputs)
    device = vectors.full[0].device
    found = torch.zeros(len(questions), vectors.answers, length, device=device)
    rows = vectors.rows
    chunks = (len(points) + rows - 1) // rows
    for chunk in range(chunks):
        chosen = slice(chunk * rows, (chunk + 1) * rows)
        given = [vector.detach().requires_grad_() for vector in vectors.at(points[chosen])]
        share = weights[chosen].to(device)
        with torch.enable_grad():
            states = vectors.states(*given)  # B×T×E
            for done, (number, place) in enumerate(asked):
                values = questions[number].answer(vectors.model.scores(states[:, place]), place)  # B
                slopes = torch.autograd.grad((values * share).sum(), given, retain_graph=True, materialize_grads=True)
                parts = [(slope.sum(0) * shift).sum(-1) for slope, shift in zip(slopes, vectors.shifts, strict=True)]
                found[number, place] += torch.cat(parts)
                if progress and len(points) > 1:
                    progress(f"{len(points)} steps", chunk * len(asked) + done + 1, chunks * len(asked))
    return found.cpu()


def integrate(
    vectors: Vectors, questions: Sequence[Question], explained: Tensor, progress: Progress | None = None
) -> tuple[Tensor, Tensor, int]:
    """Integrated gradients Q×T×(S+T) by Gauss-Legendre, their gaps Q×T, and the points taken.

    Where the gap is wider than is borne, the points are doubled, as long as that is cheap.
    """
    steps, asked = STEPS, _all(questions)
    found = torch.zeros(*explained.shape, len(vectors.source) + len(vectors.inputs))
    while True:
        places, weights = np.polynomial.legendre.leggauss(steps)
        points = torch.from_numpy((places + 1) / 2).float()
        newer = along(vectors, questions, asked, points, torch.from_numpy(weights / 2).float(), progress)
        for number, place in asked:
            found[number, place] = newer[number, place]
        gaps = (found.sum(-1) - explained).abs()  # Q×T
        asked = [(number, place) for number, place in (gaps > borne(explained)).nonzero().tolist()]
        cost = 2 * steps * len(asked) * found.shape[-1]
        if not asked or steps >= MOST_STEPS or cost > AGAIN:
            return found, gaps, steps
        steps *= 2


def occlude(
    vectors: Vectors, questions: Sequence[Question], real: Tensor, target: Side, progress: Progress | None = None
) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
    """What is lost when a token is blank, Q×T×(S+T), and for each question the same of whole words.

    `real` is what the questions are worth when nothing is (Q×T); special tokens are not taken away.
    """
    sides = vectors.source, vectors.inputs
    tokens = [(number, (place,)) for number, side in enumerate(sides) for place in range(len(side))]
    words = [(number, places) for number, side in enumerate(sides) for places in _words(side)]
    gone = [one for one in dict.fromkeys([*tokens, *words]) if not sides[one[0]].special[one[1][0]]]
    limit = NUMBERS // vectors.trace.log_probabilities.numel()
    rows = max(1, min(vectors.rows, limit))
    lost: dict[tuple[int, tuple[int, ...]], Tensor] = {}
    for start in range(0, len(gone), rows):
        chosen = gone[start : start + rows]
        with torch.no_grad():
            given = vectors.without([(places, ()) if number == 0 else ((), places) for number, places in chosen])
            logits = vectors.model.scores(vectors.states(*given))  # B×T×V
        values = torch.stack([question.answers(logits) for question in questions])  # Q×B×T
        lost |= dict(zip(chosen, (real[:, None] - values).cpu().unbind(1), strict=True))
        if progress:
            progress("occlusion", start + len(chosen), len(gone))
    seen = torch.ones(len(vectors.inputs), len(vectors.inputs)).tril()  # no token has read those behind it
    lost |= {(1, places): loss * seen[:, places[0]] for (number, places), loss in lost.items() if number == 1}
    nothing = torch.zeros(real.shape)
    by_token = torch.stack([lost.get(one, nothing) for one in tokens], dim=-1)  # Q×T×(S+T)
    by_word = torch.stack([lost.get(one, nothing) for one in words], dim=-1)  # Q×T×(words of S + words of T)
    split = len(vectors.source.word_texts)
    merged = target.summed(by_word.mT).mT  # a word's log-probability is the sum of its tokens'
    return by_token, [(one[:, :split], one[:, split:]) for one in merged]


def borne(explained: Tensor) -> Tensor:
    """The gap that is borne where this much was to be explained."""
    return GAP * explained.abs().clamp(min=1.0)


def runners_up(trace: Trace) -> Tensor:
    """The likeliest token at each place that was not said: T."""
    said = torch.tensor(trace.target.ids)[:, None]
    return trace.log_probabilities.scatter(1, said, float("-inf")).argmax(-1)


def covered(found: Influence) -> Tensor:
    """Return how much all tokens of a row account for together: T."""
    return found.source.sum(-1) + found.prefix.sum(-1)


def _ends(vectors: Vectors, questions: Sequence[Question]) -> Tensor:
    """What the questions are worth when all is blank, and when nothing is: Q×2×T."""
    with torch.no_grad():
        logits = vectors.model.scores(vectors.states(*vectors.at(torch.tensor([0.0, 1.0]))))  # 2×T×V
        return torch.stack([question.answers(logits) for question in questions])


def _all(questions: Sequence[Question]) -> list[tuple[int, int]]:
    return [(number, place) for number, question in enumerate(questions) for place in range(len(question.said))]


def _put(
    found: Sequence[dict[Method, Influence]],
    method: Method,
    trace: Trace,
    amounts: Tensor,
    note: str,
    by_word: Sequence[tuple[Tensor, Tensor]] | None = None,
) -> None:
    """Add a method's amounts Q×T×(S+T) to the answers."""
    split = len(trace.source)
    for number, (answer, each) in enumerate(zip(found, amounts, strict=True)):
        words = None if by_word is None else by_word[number]
        source, prefix = each[:, :split], each[:, split:]
        answer[method] = Influence(METHODS[method], source, prefix, signed=True, by_word=words, note=note, splits=False)


def _words(side: Side) -> list[tuple[int, ...]]:
    """The places of each word's tokens."""
    places: list[list[int]] = [[] for _ in side.word_texts]
    for place, word in enumerate(side.words):
        places[word].append(place)
    return [tuple(each) for each in places]


def _rounded(values: Tensor) -> list[float]:
    return [round(value, 4) for value in values.tolist()]
