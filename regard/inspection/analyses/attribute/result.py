"""The result of attribution in a model that reads a source and writes a target.

Axes: S source tokens, T target tokens.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.inspection.analyses.attribute.methods import GAP, METHODS, Answer, Method, sum_amounts
from regard.inspection.analyses.attribute.other_word import OtherWord
from regard.inspection.gain import NOTE, Gain
from regard.inspection.influence import Influence, draw_influences, influence_data, influence_table
from regard.inspection.page import Panel
from regard.inspection.plain_data import rounded
from regard.inspection.result import Result
from regard.tasks.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COVERAGE = (
    "covers: the sum of all amounts of a row, of what blanking all tokens at once would cost. Where the two are far "
    "apart, tokens stand in for each other, and single amounts explain little. The start symbol is never blanked, so "
    "no share of source and prefix is given."
)


@dataclass(frozen=True, repr=False)
class Attribution(Result):
    """Which tokens, of source and prefix, made each target token likely, or unlikely."""

    trace: Trace
    answers: list[Answer]
    """The first is what tables and pictures show."""
    gain: Gain
    """What the source did for each word."""
    flows: list[Influence]
    """Methods that read the attention, to compare with: contributions, rollout and the weights themselves."""
    other: OtherWord | None = None
    """The word that one word of the output was compared with."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "What made the model say it"

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.trace.target)} target × {len(self.trace.source)} source tokens"

    def to_json(self) -> dict[str, Any]:
        """Plain data: tokens, words, and the amounts of each method for each question, in nats."""
        asked = [(answer.question, [*answer.methods.values(), *self.flows]) for answer in self.answers]
        instead = None if self.other is None else self.other.to_json()
        return influence_data(self.trace, self.gain, asked, explanations=self._explanations(), instead=instead)

    def _explanations(self) -> list[dict[str, Any]]:
        return [
            {
                "others": answer.others,
                "explained": rounded(answer.explained),
                "gaps": None if answer.gaps is None else rounded(answer.gaps),
                "steps": answer.steps,
                "wide": answer.wide,
                "covered": {METHODS[method]: rounded(sum_amounts(found)) for method, found in answer.methods.items()},
            }
            for answer in self.answers
        ]

    def __str__(self) -> str:
        """For each target token the tokens with the largest amounts, by the first method and question."""
        first = self.answers[0]
        method, found = next(iter(first.methods.items()))
        heads = [*([] if first.others is None else ["not"]), "covers"]
        cells = [
            [*([] if first.others is None else [first.others[position]]), f"{amount:+.2f} of {whole:+.2f}"]
            for position, (amount, whole) in enumerate(
                zip(sum_amounts(found).tolist(), first.explained.tolist(), strict=True)
            )
        ]
        sentence = f"{METHODS[method]}: {first.question}, in nats"
        lines = [
            influence_table(self.trace, self.gain, found, heads, cells),
            sentence + self._gap(first, method),
            COVERAGE,
        ]
        if self.other is not None:
            lines.append(str(self.other))
        return "\n".join(lines)

    def _gap(self, answer: Answer, method: Method) -> str:
        """What the table says of completeness."""
        if method != "integrated" or answer.gaps is None:
            return "."
        sentence = f"; each row sums to what all its tokens did together, to {answer.gaps.max().item():.3f}."
        if answer.wide:
            worst = int(answer.gaps.argmax())
            sentence += (
                f"\nAt {len(answer.wide)} of {len(answer.gaps)} tokens, most at {self.trace.target.tokens[worst]}, the "
                f"gap stays wider than {GAP:.0%} after {answer.steps} steps: do not trust small amounts there."
            )
        return sentence

    def draw(self) -> "Figure":
        """One map per method: source to the left, prefix to the right, red where an amount is negative."""
        return draw_influences(self.trace, self.gain, list(self.answers[0].methods.values()))

    def panels(self) -> list[Panel]:
        """The sentence pair with all methods, and those that read the attention, for comparison."""
        note = (
            "Pick a word of the output: blue tokens made it likelier, red ones less likely, in nats of log-probability "
            "or of its lead over another word. Start and end symbols are never blanked, so they have no amounts. "
            f"{COVERAGE[0].upper()}{COVERAGE[1:]} {NOTE}"
        )
        note = note if self.other is None else f"{self.other} {note}"
        return [Panel("influence", self.to_json(), note=note)]
