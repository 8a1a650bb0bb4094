"""The result of `reference`: an output and a reference side by side, and the way of the reference through search."""

import math
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, Any, Literal

from regard.foundation.display import columns
from regard.inspection.analyses.reference.watched_search import Fate, Step
from regard.inspection.page import Panel
from regard.inspection.plain_data import rounded_number, side_data
from regard.inspection.result import Result
from regard.inspection.table_result import Cell, TableResult
from regard.search.hypothesis import Ended
from regard.tasks.trace import Side

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Verdict = Literal["same", "search error", "model error"]


@dataclass(frozen=True, kw_only=True)
class ScoredText:
    """A target with the model's log-probability of each token, the end symbol last."""

    text: str
    side: Side
    log_probs: tuple[float, ...]
    score: float
    """The sum of `log_probs`, divided by their number to the power of the length penalty."""
    ended: Ended
    """Why an output ended; a reference always ends at its end symbol."""
    ranks: list[int]
    """The rank of each token in the model's distribution after the tokens before it, from 1."""
    likeliest: list[str]
    """The most probable token at each position."""
    likeliest_log_probs: list[float]

    @property
    def log_prob(self) -> float:
        """The log-probability of the whole target."""
        return math.fsum(self.log_probs)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "text": self.text,
            **side_data(self.side),
            "positions": list(range(len(self.side))),
            "log_probs": [rounded_number(value) for value in self.log_probs],
            "totals": [rounded_number(value) for value in accumulate(self.log_probs)],
            "ranks": self.ranks,
            "likeliest": self.likeliest,
            "likeliest_log_probs": [rounded_number(value) for value in self.likeliest_log_probs],
            "log_prob": rounded_number(self.log_prob),
            "score": rounded_number(self.score),
            "length": len(self.log_probs),
            "ended": self.ended,
        }


@dataclass(frozen=True, repr=False, kw_only=True)
class ReferenceCost(Result):
    """The scores of an output and of a reference, and where beam search left the reference."""

    source: Side
    beam: int
    length_penalty: float
    ctc: float = 0.0
    """The weight of CTC in the scores of search, which are then (1 − λ) · decoder + λ · CTC instead of log P."""
    missing: tuple[int, int] | None = None
    """With `decoding.complete`: how many values of the record output and reference leave out, which decides first."""
    output: ScoredText
    reference: ScoredText
    verdict: Verdict
    fate: Fate
    steps: list[Step]
    """The steps of search at which the reference's prefix was in the beam."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "What the reference would have cost"

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{self.verdict}, {len(self.output.log_probs)} and {len(self.reference.log_probs)} tokens"

    @property
    def common(self) -> int:
        """How many tokens both begin with."""
        pairs = zip(self.output.side.ids, self.reference.side.ids, strict=False)
        return next((place for place, (one, other) in enumerate(pairs) if one != other), self._shorter)

    @property
    def _shorter(self) -> int:
        return min(len(self.output.side), len(self.reference.side))

    @property
    def difference(self) -> float:
        """The score of the reference minus that of the output."""
        return self.reference.score - self.output.score

    @property
    def explanation(self) -> str:
        """The verdict in sentences."""
        if self.ctc:
            mixture = f"{1 - self.ctc:.3g} · decoder + {self.ctc:.3g} · CTC"
            return f"{self._verdict} Scores and log P are those of search: {mixture}."
        return self._verdict

    @property
    def _verdict(self) -> str:
        scores = f"{self.reference.score:.4g} for the reference and {self.output.score:.4g} for the output"
        if self.verdict == "same":
            return f"The output is the reference, with a score of {self.output.score:.4g}."
        if self.missing is not None and self.missing[0] != self.missing[1]:
            output, reference = self.missing
            counts = f"{reference:,} for the reference and {output:,} for the output"
            preferred = "the reference" if self.verdict == "search error" else "its own output"
            not_found = ", but search did not find it" if self.verdict == "search error" else ""
            return (
                f"{self.verdict.capitalize()}: the run prefers {preferred}, which leaves out fewer values of the "
                f"record ({counts}; decoding.complete){not_found}. The scores, which decide second, are {scores}. "
                f"{self._way}"
            )
        if self.verdict == "search error":
            cut_off = " (which was cut off)" if self.output.ended != "end" else ""
            return (
                f"Search error: the model scores {scores}{cut_off}, but search did not find the reference. {self._way}"
            )
        return f"Model error: the model prefers its own output (scores: {scores}). {self._way}"

    @property
    def _way(self) -> str:
        """What became of the reference in search, in a sentence."""
        beam = f"a beam of width {self.beam}"
        if self.fate == "found":
            preferred = "that the run prefers" if self.missing else "with a higher score"
            return f"With {beam}, search found the reference and another output {preferred}."
        last, place = self.steps[-1], len(self.steps) - 1
        token = self.reference.side.tokens[place]
        if self.fate == "stopped":
            return f"With {beam}, search ended at step {place} while the reference was still in the beam."
        return (
            f"With {beam}, search left the reference at step {place}, before “{token}”: it was candidate "
            f"{last.rank:,}, and the beam had room for {last.room:,}."
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything that was found; steps and positions are counted from 0."""
        return {
            "source": side_data(self.source),
            "beam": self.beam,
            "length_penalty": self.length_penalty,
            "ctc": self.ctc,
            "missing": None if self.missing is None else dict(zip(("output", "reference"), self.missing, strict=True)),
            "verdict": self.verdict,
            "explanation": self.explanation,
            "difference": rounded_number(self.difference),
            "common": self.common,
            "output": self.output.to_json(),
            "reference": self.reference.to_json(),
            "search": {
                "fate": self.fate,
                "step": None if self.fate == "found" else len(self.steps) - 1,
                "rank": None if self.fate == "found" else self.steps[-1].rank,
                "steps": [
                    {
                        "step": number,
                        "rank": step.rank,
                        "room": step.room,
                        "log_prob": rounded_number(step.log_prob),
                        "total": rounded_number(step.total),
                        "cut": rounded_number(step.cut),
                    }
                    for number, step in enumerate(self.steps)
                ],
            },
        }

    def _rows(self) -> list[list[Cell]]:
        """Return the cells of the table, position by position."""
        rows: list[list[Cell]] = []
        both = zip_longest(self._columns(self.output), self._columns(self.reference), fillvalue=("–", None))
        for place, (output, reference) in enumerate(both):
            step = self.steps[place] if place < len(self.steps) else None
            rank, room = (None, None) if step is None else (step.rank, step.room)
            rows.append([place, *output, *reference, rank, room])
        return rows

    @staticmethod
    def _columns(text: ScoredText) -> list[tuple[Cell, Cell]]:
        numbers = (rounded_number(value) for value in text.log_probs)
        return list(zip(text.side.tokens, numbers, strict=True))

    @property
    def _table(self) -> TableResult:
        return TableResult(self.title, HEAD, self._rows())

    def __str__(self) -> str:
        """The verdict, the scores, and a row for each position."""
        scores = [
            ["", "log P", "tokens", "score"],
            *(
                [name, f"{text.log_prob:.5g}", str(len(text.log_probs)), f"{text.score:.5g}"]
                for name, text in (("output", self.output), ("reference", self.reference))
            ),
        ]
        return "\n\n".join([self.explanation, columns(scores, right=[1, 2, 3]), str(self._table)])

    def draw(self) -> "Figure":
        """The table as a picture."""
        return self._table.draw()

    def panels(self) -> list[Panel]:
        """Both texts, token by token, and the rank of the reference at each step."""
        note = (
            "Each token has its log-probability given the tokens before it; the score is their sum divided by their "
            "number to the power of the length penalty. The rank is that of the reference's prefix with this token "
            "among all candidates of the step, of which search keeps as many as the beam has room for. A search error "
            "means that the reference scores higher and was not found, a model error that the model prefers its own "
            "output (Stahlberg and Byrne, 2019)."
        )
        return [Panel("reference", self.to_json(), note=note)]


HEAD = ("step", "output", "log P", "reference", "log P", "rank in search", "kept")
