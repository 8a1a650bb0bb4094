"""Three methods of attribution: gradient × input, integrated gradients and occlusion, for every model of the grid.

Axes: S source tokens, T target tokens, V vocabulary, Q questions, B rows that are read at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.inspection.influence import Influence
from regard.inspection.vectors import Question, Vectors
from regard.tasks.trace import Side, Trace

Method = Literal["occlusion", "integrated", "gradient"]
METHODS: dict[Method, str] = {
    "occlusion": "occlusion",
    "integrated": "integrated gradients",
    "gradient": "gradient × input",
}
"""In the order in which they are shown: occlusion first, for what docs/inspection.md measured."""

STEPS, MOST_STEPS = 50, 400
"""Points on the path of integrated gradients: at first, and at most if the gap stays wide."""

AGAIN = 2**21
"""Tokens that may be read again to narrow gaps: about a minute for a small model on one core."""

GAP = 0.01
"""The accepted gap of integrated gradients: this share of the value to be explained, or these nats, if more."""

NUMBERS = 2**25
"""Logits held at once."""

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

NOTES: dict[Method, str] = {"gradient": GRADIENT, "integrated": INTEGRATED, "occlusion": OCCLUSION}
"""How to read each method."""


@dataclass(frozen=True)
class Answer:
    """The values of every method for one question about each target token."""

    question: str
    others: list[str] | None
    """T: the token (or label) that each was compared with."""
    methods: dict[Method, Influence]
    explained: Tensor
    """T: the value to be explained, less its value when every token is blank."""
    gaps: Tensor | None
    """T: how far integrated gradients are from summing to that."""
    steps: int
    """Points on the path that they took, at most."""

    @property
    def wide(self) -> list[int]:
        """The target tokens whose gap is wider than the tolerance."""
        if self.gaps is None:
            return []
        return [position for position, wide in enumerate((self.gaps > tolerance(self.explained)).tolist()) if wide]


@dataclass(frozen=True)
class Asked:
    """The values of all methods for some questions about one trace."""

    found: list[dict[Method, Influence]]
    explained: Tensor
    """Q×T."""
    gaps: Tensor | None
    steps: int

    def answer(self, number: int, question: str, others: list[str] | None) -> Answer:
        """Return the answer to one question."""
        gaps = None if self.gaps is None else self.gaps[number]
        return Answer(question, others, self.found[number], self.explained[number], gaps, self.steps)


def check_methods(methods: Sequence[str]) -> None:
    """Refuse an unknown method."""
    unknown = [method for method in methods if method not in METHODS]
    if unknown:
        raise UsageError(f'There is no method "{unknown[0]}": use {", ".join(METHODS)}, or several of them.')


def ask(trace: Trace, questions: Sequence[Question], methods: Sequence[Method], progress: Progress | None) -> Asked:
    """Apply some methods to some questions about a trace."""
    vectors = Vectors(trace)
    ends = _end_values(vectors, questions)  # Q×2×T
    explained = (ends[:, 1] - ends[:, 0]).cpu()  # Q×T
    found: list[dict[Method, Influence]] = [{} for _ in questions]
    gaps, steps = None, 0
    split = len(trace.source)
    for method in methods:
        by_word: Sequence[tuple[Tensor, Tensor] | None] = [None for _ in questions]
        match method:
            case "gradient":
                amounts = gradients_along_path(
                    vectors, questions, _all_positions(questions), torch.ones(1), torch.ones(1), progress
                )
            case "integrated":
                amounts, gaps, steps = integrate(vectors, questions, explained, progress)
            case "occlusion":
                amounts, by_word = occlude(vectors, questions, ends[:, 1], trace.target, progress)
        for number, (question_amounts, words) in enumerate(zip(amounts, by_word, strict=True)):  # each T×(S+T)
            found[number][method] = Influence(
                METHODS[method],
                question_amounts[:, :split],
                question_amounts[:, split:],
                signed=True,
                by_word=words,
                note=NOTES[method],
                splits=False,
            )
    return Asked(found, explained, gaps, steps)


def gradients_along_path(
    vectors: Vectors,
    questions: Sequence[Question],
    asked: Sequence[tuple[int, int]],
    points: Tensor,
    weights: Tensor,
    progress: Progress | None = None,
) -> Tensor:
    """Σ_k w_k ∇f(x_k) · (x − blank) over points x_k of the path from blank to x: Q×T×(S+T), zero where not requested.

    The path is the same for every output position, so each chunk of points is read once for all of them.
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
            for done, (number, position) in enumerate(asked):
                values = questions[number].answer(vectors.model.scores(states[:, position]), position)  # B
                slopes = torch.autograd.grad((values * share).sum(), given, retain_graph=True, materialize_grads=True)
                parts = [(slope.sum(0) * shift).sum(-1) for slope, shift in zip(slopes, vectors.shifts, strict=True)]
                found[number, position] += torch.cat(parts)
                if progress and len(points) > 1:
                    progress(f"{len(points)} steps", chunk * len(asked) + done + 1, chunks * len(asked))
    return found.cpu()


def integrate(
    vectors: Vectors, questions: Sequence[Question], explained: Tensor, progress: Progress | None = None
) -> tuple[Tensor, Tensor, int]:
    """Integrated gradients Q×T×(S+T) by Gauss-Legendre, their gaps Q×T, and the points taken.

    Where the gap is wider than the tolerance, the points are doubled, as long as that is cheap.
    """
    steps, asked = STEPS, _all_positions(questions)
    found = torch.zeros(*explained.shape, len(vectors.source) + len(vectors.inputs))
    while True:
        places, weights = np.polynomial.legendre.leggauss(steps)
        points = torch.from_numpy((places + 1) / 2).float()
        newer = gradients_along_path(vectors, questions, asked, points, torch.from_numpy(weights / 2).float(), progress)
        for number, position in asked:
            found[number, position] = newer[number, position]
        gaps = (found.sum(-1) - explained).abs()  # Q×T
        asked = [(number, position) for number, position in (gaps > tolerance(explained)).nonzero().tolist()]
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
    tokens = [(number, (index,)) for number, side in enumerate(sides) for index in range(len(side))]
    words = [(number, places) for number, side in enumerate(sides) for places in _words(side)]
    gone = [span for span in dict.fromkeys([*tokens, *words]) if not sides[span[0]].special[span[1][0]]]
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
    seen = torch.ones(len(vectors.inputs), len(vectors.inputs)).tril()  # no token has read those after it
    lost |= {(1, places): loss * seen[:, places[0]] for (number, places), loss in lost.items() if number == 1}
    nothing = torch.zeros(real.shape)
    by_token = torch.stack([lost.get(token, nothing) for token in tokens], dim=-1)  # Q×T×(S+T)
    by_word = torch.stack([lost.get(word, nothing) for word in words], dim=-1)  # Q×T×(words of S + words of T)
    split = len(vectors.source.word_texts)
    merged = target.summed(by_word.mT).mT  # a word's log-probability is the sum of its tokens'
    return by_token, [(amounts[:, :split], amounts[:, split:]) for amounts in merged]


def tolerance(explained: Tensor) -> Tensor:
    """Return the gap of integrated gradients that is accepted for a value of this size."""
    return GAP * explained.abs().clamp(min=1.0)


def runners_up(trace: Trace) -> Tensor:
    """Return the likeliest other token at each target position: T."""
    targets = torch.tensor(trace.target.ids)[:, None]
    return trace.log_probabilities.scatter(1, targets, float("-inf")).argmax(-1)


def sum_amounts(found: Influence) -> Tensor:
    """Return how much all tokens of a row account for together: T."""
    return found.source.sum(-1) + found.prefix.sum(-1)


def _end_values(vectors: Vectors, questions: Sequence[Question]) -> Tensor:
    """What the questions are worth when all is blank, and when nothing is: Q×2×T."""
    with torch.no_grad():
        logits = vectors.model.scores(vectors.states(*vectors.at(torch.tensor([0.0, 1.0]))))  # 2×T×V
        return torch.stack([question.answers(logits) for question in questions])


def _all_positions(questions: Sequence[Question]) -> list[tuple[int, int]]:
    return [
        (number, position) for number, question in enumerate(questions) for position in range(len(question.targets))
    ]


def _words(side: Side) -> list[tuple[int, ...]]:
    """The places of each word's tokens."""
    places: list[list[int]] = [[] for _ in side.word_texts]
    for position, word in enumerate(side.words):
        places[word].append(position)
    return [tuple(positions) for positions in places]
