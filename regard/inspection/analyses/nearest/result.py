"""The result of `nearest`: training examples with similar states."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.foundation.display import columns
from regard.inspection.page import Panel
from regard.inspection.plain_data import rounded_number, side_data
from regard.inspection.result import Result
from regard.inspection.state_index import IndexHeader
from regard.inspection.states import End
from regard.inspection.table_result import TableResult
from regard.tasks.trace import Side

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Neighbour:
    """An example with a state near to that of a token."""

    example: int
    """Its place in the list of examples of the result."""
    position: int
    """Its nearest token, on the side that was asked for."""
    similarity: float
    """The cosine of the two states."""


@dataclass(frozen=True)
class Query:
    """A token, and the examples with the nearest states, best first."""

    position: int
    token: str
    neighbours: list[Neighbour]


@dataclass(frozen=True)
class Example:
    """A training example, decoded from its tokens."""

    row: int
    """Its row in the run's training data after cleaning, counted from 0."""
    source: str
    source_side: Side
    target: str
    """Text, a label, or tags."""
    target_side: Side


@dataclass(frozen=True, repr=False, kw_only=True)
class Nearest(Result):
    """For each token the training examples with the nearest states."""

    side: End
    source: Side
    target: Side
    queries: list[Query]
    examples: list[Example]
    header: IndexHeader

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "Training examples with the most similar states"

    @property
    def size(self) -> str:
        """How large it is."""
        return f"{len(self.queries)} tokens, {len(self.examples)} examples"

    def to_json(self) -> dict[str, Any]:
        """Everything that was found; examples are listed once, and neighbours name their places in that list."""
        size = self.header.sides[self.side]
        return {
            "side": self.side,
            "source": side_data(self.source),
            "target": side_data(self.target),
            "index": {
                "examples": self.header.examples,
                "available": self.header.available,
                "states": size.vectors,
                "width": size.width,
            },
            "queries": [
                {
                    "position": query.position,
                    "token": query.token,
                    "neighbours": [
                        {
                            "example": neighbour.example,
                            "position": neighbour.position,
                            "token": self._sides(neighbour)[0].tokens[neighbour.position],
                            "similarity": rounded_number(neighbour.similarity),
                        }
                        for neighbour in query.neighbours
                    ],
                }
                for query in self.queries
            ],
            "examples": [
                {
                    "row": example.row,
                    "source": {"text": example.source, **side_data(example.source_side)},
                    "target": {"text": example.target, **side_data(example.target_side)},
                }
                for example in self.examples
            ],
        }

    def _sides(self, neighbour: Neighbour) -> tuple[Side, Side]:
        """Return the side of an example that was asked for, and the other one."""
        example = self.examples[neighbour.example]
        sides = example.source_side, example.target_side
        return sides if self.side == "encoder" else sides[::-1]

    def _rows(self) -> list[list[str]]:
        """Return the cells of the table: a row for each neighbour, its token in square brackets."""
        rows = []
        for query in self.queries:
            for number, neighbour in enumerate(query.neighbours):
                own, other = self._sides(neighbour)
                texts = [_marked(own, neighbour.position), " ".join(_words(other))]
                first = [str(query.position), query.token] if number == 0 else ["", ""]
                shown = texts if self.side == "encoder" else texts[::-1]
                rows.append([*first, f"{neighbour.similarity:.3f}", *shown])
        return rows

    def __str__(self) -> str:
        """A row for each neighbour."""
        return columns([HEAD, *self._rows()], right=[0, 2])

    def messages(self, *, saved: bool) -> list[str]:
        """How much of the training data was searched."""
        return [
            f"Searched {self.header.sides[self.side].vectors:,} {self.side} states of {self.header.examples:,} of "
            f"{self.header.available:,} training examples."
        ]

    def draw(self) -> "Figure":
        """The table as a picture."""
        return TableResult(self.title, HEAD, self._rows()).draw()

    def panels(self) -> list[Panel]:
        """Tokens to choose from, and the examples of the chosen one."""
        size = self.header.sides[self.side]
        note = (
            f"Choose a token. Below are the training examples with the nearest {self.side} states, one token of each, "
            "with the cosine of the two states of the last layer; the token that it belongs to is marked. "
            + ("A decoder state belongs to the token that it writes. " if self.side == "decoder" else "")
            + f"Searched: {size.vectors:,} states of {self.header.examples:,} of {self.header.available:,} training "
            "examples."
        )
        return [Panel("nearest", self.to_json(), note=note)]


HEAD = ["position", "token", "cosine", "source", "target"]


def _words(side: Side) -> list[str]:
    """Return the words of a side without special tokens."""
    special = {word for word, special in zip(side.words, side.special, strict=True) if special}
    return [text for word, text in enumerate(side.word_texts) if word not in special]


def _marked(side: Side, position: int) -> str:
    """Return the text of a side with one token in square brackets; other special tokens are left out."""
    parts: list[str] = []
    last = -1
    for place, (token, word, special) in enumerate(zip(side.tokens, side.words, side.special, strict=True)):
        if special and place != position:
            continue
        plain = "" if token in "␣▸" and place != position else token
        parts.append((" " if word != last and parts else "") + (f"[{plain}]" if place == position else plain))
        last = word
    return "".join(parts)
