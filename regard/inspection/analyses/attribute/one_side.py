"""The result of attribution in a model that reads one side only, such as a classifier or a language model.

Axes: N tokens that were read, T answers, C classes (or V tokens).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.foundation.display import columns
from regard.inspection.analyses.attribute.methods import METHODS, Answer, sum_amounts
from regard.inspection.drawing import CELL, INK, draw_map, new_figure
from regard.inspection.influence import Influence, token_text
from regard.inspection.page import Panel
from regard.inspection.plain_data import rounded, rounded_number
from regard.inspection.result import Result
from regard.tasks.trace import Side, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 5
"""How many answers are shown with their probabilities."""


@dataclass(frozen=True, repr=False)
class OneSideAttribution(Result):
    """How much each word that was read made every answer likelier, or less likely."""

    trace: Trace
    answers: list[Answer]
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

    def words(self, found: Influence) -> Tensor:
        """Return the amounts of a method by the words that were read: T×words."""
        return self.read.summed(amounts_of(found))

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.trace.target)} answers × {len(self.read)} tokens"

    def to_json(self) -> dict[str, Any]:
        """Plain data: what was read, the answers with their probabilities, and the amounts of each method."""
        return {
            "read": {"tokens": self.read.tokens, "words": self.read.word_texts, "wordOf": self.read.words},
            "special": self.read.special,
            "answers": self.trace.target.tokens,
            "places": self._places(),
            "probabilities": None if self.trace.numeric else rounded(self.trace.target_log_probs.exp()),
            "likeliest": self._likeliest(),
            "unit": self.unit,
            "questions": [
                {
                    "name": answer.question,
                    "others": answer.others,
                    "explained": rounded(answer.explained),
                    "gaps": None if answer.gaps is None else rounded(answer.gaps),
                    "methods": [
                        {
                            "name": METHODS[method],
                            "note": found.note,
                            "tokens": rounded(amounts_of(found)),
                            "words": rounded(self.words(found)),
                            "covered": rounded(sum_amounts(found)),
                        }
                        for method, found in answer.methods.items()
                    ],
                }
                for answer in self.answers
            ],
        }

    def _places(self) -> list[int] | None:
        """The token that each answer is about, where there is one: a tagged word, a blank, the word itself."""
        if not len(self.trace.source):
            return [index + 1 for index in range(len(self.trace.target) - 1)] + [len(self.trace.target) - 1]
        given = self.trace.given
        return None if given is None or given.asked == [0] else given.asked

    def _likeliest(self) -> list[list[list[Any]]]:
        if self.trace.numeric:
            return [[]]
        best = self.trace.log_probabilities.exp().topk(min(MOST, self.trace.log_probabilities.shape[1]))
        return [
            [
                [answer_text(self.trace, token_id), rounded_number(chance)]
                for token_id, chance in zip(ids, chances, strict=True)
            ]
            for ids, chances in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    def __str__(self) -> str:
        """For each answer the words with the largest amounts for and against it, by the first method and question."""
        first = self.answers[0]
        method, found = next(iter(first.methods.items()))
        against = [] if first.others is None else ["not"]
        head = ["answer", *([] if self.trace.numeric else ["P"]), *against, "covers", "for it", "against it"]
        rows = [head]
        texts = self.read.word_texts
        for index, row in enumerate(self.words(found)):
            order = row.argsort(descending=True).tolist()
            supporting = [f"{texts[column]} {row[column]:+.2f}" for column in order[:4] if row[column] > 0.005]
            opposing = [f"{texts[column]} {row[column]:+.2f}" for column in order[::-1][:3] if row[column] < -0.005]
            chance = [] if self.trace.numeric else [f"{self.trace.target_log_probs[index].exp():.2f}"]
            other = [] if first.others is None else [first.others[index]]
            covers = f"{float(row.sum()):+.2f} of {float(first.explained[index]):+.2f}"
            rows.append(
                [self.trace.target.tokens[index], *chance, *other, covers, "  ".join(supporting), "  ".join(opposing)]
            )
        sentence = f"{METHODS[method]}: {first.question}, in {self.unit}"
        if method == "integrated" and first.gaps is not None:
            sentence += f"; each row sums to what all words did together, to {first.gaps.max().item():.3f}"
        return f"{columns(rows)}\n\n{sentence}."

    def draw(self) -> "Figure":
        """One map per method: answers down, words across, red where an amount is negative."""
        methods = self.answers[0].methods
        names, wide = self.read.word_texts, len(self.read.word_texts) * CELL
        tall, above, left, right = len(self.trace.target) * CELL, 1.1, 1.2, 0.5
        width, height = max(wide + left + right, 3.5), len(methods) * (tall + above) + 0.2
        figure = new_figure(width, height)
        for number, (method, found) in enumerate(methods.items()):
            bottom = height - (number + 1) * (tall + above)
            axes = figure.add_axes((left / width, bottom / height, wide / width, tall / height))
            values = self.words(found)
            largest = values.abs().amax(-1, keepdim=True).clamp(min=1e-9)
            draw_map(axes, values / largest, self.trace.target.tokens, names, signed=True)
            heading_height = (bottom + tall + above - 0.15) / height
            figure.text(0.01, heading_height, METHODS[method], fontsize=10, fontweight="bold", color=INK)
        return figure

    def panels(self) -> list[Panel]:
        """The text, tinted by what each word did for the answer that is picked."""
        note = (
            f"Pick an answer: blue words made it likelier, red ones less likely, in {self.unit}. Each is compared with "
            "a blank, the vector of the unknown word at the same position; start, end and separator are never "
            "blanked and have no amounts."
        )
        return [Panel("reasons", self.to_json(), note=note)]


def amounts_of(found: Influence) -> Tensor:
    """Return the amounts of a method for all tokens that were read: T×N."""
    return torch.cat([found.source, found.prefix], dim=1)


def answer_text(trace: Trace, number: int) -> str:
    """Return a label, or a token as people read it."""
    return trace.labels[number] if trace.labels else token_text(trace, number)
