"""The result of watching a model: what it predicted at each position, what else it considered, and where it looked.

Axes: T output tokens, S source tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from regard.foundation.display import columns
from regard.inspection.analyses.attention.compute import attention
from regard.inspection.changes import Change, to_json
from regard.inspection.drawing import INK, QUIET, new_figure
from regard.inspection.page import Panel
from regard.inspection.plain_data import rounded_number, side_data
from regard.inspection.result import Result
from regard.search import Hypothesis
from regard.tasks.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTE = (
    "Each output token has the probability that the model gave it, after the source and the tokens before it. Choose a "
    "token to see what else was probable there."
)


class Candidate(NamedTuple):
    """A token, or a label, that could have been predicted."""

    token: int
    text: str
    """As people read it; a space in front begins a word."""
    probability: float


@dataclass(frozen=True)
class Prediction:
    """What the model predicted at one position."""

    probability: float
    """Of the token that was chosen."""
    rank: int
    """Of the token that was chosen; 1 is the most probable."""
    entropy: float
    """Of the whole distribution, in nats."""
    candidates: tuple[Candidate, ...]
    """The most probable ones, best first."""


@dataclass(frozen=True, repr=False)
class Watched(Result):
    """One answer of a model, as it is or with changes."""

    trace: Trace
    """The pass over the source and this output, with changes."""
    text: str
    predictions: tuple[Prediction, ...]
    """One for each token of `trace.target`; none if the prediction is a number."""
    changes: tuple[Change, ...] = ()
    found: tuple[Hypothesis, ...] = ()
    """What search found, best first, for runs that generate text."""
    tree: tuple[dict[str, Any], ...] = ()
    """The nodes of the search tree, as `SearchTree.to_json` describes them."""
    ended: str = ""
    prefix: int = 0
    """How many tokens the output had to begin with."""
    prompt: int = 0
    """How many of the target tokens are the prompt of a language model."""
    ctc: float = 0.0
    """The weight of CTC in the scores of search; `predictions` are those of the decoder alone."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "How the model answers" if not self.changes else "How the changed model answers"

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.trace.source)} source tokens, {len(self.trace.target)} output tokens"

    def to_json(self) -> dict[str, Any]:
        """Plain data: both sides, each prediction with its candidates, the search, the changes."""
        target = self.trace.target
        return {
            "text": self.text,
            "source": side_data(self.trace.source),
            "target": {**side_data(target), "ids": target.ids},
            "prompt": self.prompt,
            "prefix": self.prefix,
            "ended": self.ended,
            "ctc": self.ctc,
            "predictions": [
                {
                    "probability": rounded_number(prediction.probability),
                    "rank": prediction.rank,
                    "entropy": rounded_number(prediction.entropy),
                    "candidates": [
                        {"id": token, "text": text, "probability": rounded_number(probability)}
                        for token, text, probability in prediction.candidates
                    ],
                }
                for prediction in self.predictions
            ],
            "hypotheses": [
                {
                    "text": hypothesis.text,
                    "score": rounded_number(hypothesis.score),
                    "ended": hypothesis.ended,
                    "logProb": rounded_number(sum(hypothesis.log_probs)),
                    "length": len(hypothesis.log_probs),
                }
                for hypothesis in self.found
            ],
            "nodes": list(self.tree),
            "changes": [to_json(change) for change in self.changes],
        }

    def __str__(self) -> str:
        """A line for each output token: its probability, and the best candidates."""
        rows = [["output", "probability", "also probable"]]
        for token, prediction in zip(self.trace.target.tokens, self.predictions, strict=False):
            others = [candidate for candidate in prediction.candidates if candidate.text.strip() != token][:3]
            listed = ", ".join(f"{candidate.text.strip()} {candidate.probability:.2f}" for candidate in others)
            rows.append([token, f"{prediction.probability:.3f}", listed])
        return f"{self.text}\n\n{columns(rows)}"

    def draw(self) -> "Figure":
        """A bar for the probability of each output token."""
        tokens, shown = self.trace.target.tokens, self.predictions
        figure = new_figure(max(3.0, 0.42 * len(tokens) + 1), 2.4, self.title)
        axes = figure.add_axes((0.1, 0.34, 0.88, 0.5))
        axes.bar(range(len(shown)), [prediction.probability for prediction in shown], color=INK, width=0.7)
        axes.set_xticks(range(len(shown)), tokens[: len(shown)], rotation=60, ha="right", fontsize=8, color=INK)
        axes.set_ylim(0, 1)
        axes.set_ylabel("probability", fontsize=8, color=QUIET)
        return figure

    def panels(self) -> list[Panel]:
        """The steps, the search, and where the model looked."""
        found = [Panel("steps", self.to_json(), note=NOTE)]
        if self.tree:
            found.append(
                Panel("tree", {**self.to_json(), "source": self.trace.source.word_texts}, title="The beam search")
            )
        return [*found, *self.attention_panels()]

    def attention_panels(self) -> Sequence[Panel]:
        """Where the model looked; nothing if it has no attention."""
        if not self.trace.matching("*.weights"):
            return ()
        return attention(self.trace).panels()
