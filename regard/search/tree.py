"""The tree of a beam search: every prefix that was kept or nearly kept, and what became of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from regard.search.hypothesis import Hypothesis

Fate = Literal["lived", "died", "ended", "chosen"]


@dataclass
class Node:
    """One token of one path."""

    parent: int
    """Index of the parent node; -1 for first tokens."""
    token: int
    log_prob: float
    total: float
    """Log-probability of the path up to here."""
    score: float
    """The score that ranks paths: `total` divided by the number of tokens to the power of the length penalty; where the
    path ended, the score of its hypothesis, with the coverage penalty."""
    fate: Fate
    """`lived`: continued; `died`: fell out of the beam; `ended`: became a hypothesis; `chosen`: was returned."""


@dataclass
class SearchTree:
    """The candidates of one sentence's beam, in the order in which they were considered."""

    nodes: list[Node] = field(default_factory=list)
    """All candidates, in the order in which they were added."""
    ends: dict[tuple[int, ...], int] = field(default_factory=dict)
    """The last node of each hypothesis, by its tokens."""

    def add(self, parent: int, token: int, log_prob: float, total: float, score: float, fate: Fate) -> int:
        """Record one more token and return its index."""
        self.nodes.append(Node(parent, token, log_prob, total, score, fate))
        return len(self.nodes) - 1

    def finish(self, given: Sequence[tuple[int, ...]]) -> None:
        """Mark the paths of the returned hypotheses, and those that led to none."""
        alive = {node.parent for node in self.nodes if node.fate == "ended"}
        for place in range(len(self.nodes) - 1, -1, -1):  # children come after their parents
            node = self.nodes[place]
            if node.fate == "lived":
                node.fate = "lived" if place in alive else "died"
            if node.fate != "died":
                alive.add(node.parent)
        for tokens in given:
            place = self.ends.get(tokens, -1)
            while place >= 0:
                self.nodes[place].fate = "chosen"
                place = self.nodes[place].parent

    def to_json(self, readable: Callable[[int], str]) -> list[dict[str, Any]]:
        """Return plain data: one object per node, in order."""
        return [
            {
                "parent": node.parent,
                "token": readable(node.token),
                "log_prob": round(node.log_prob, 4),
                "total": round(node.total, 4),
                "score": round(node.score, 4),
                "fate": node.fate,
            }
            for node in self.nodes
        ]


class Shown(NamedTuple):
    """The search for one source."""

    source: str
    tree: SearchTree
    found: Sequence[Hypothesis]


def tree_data(searches: Sequence[Shown], readable: Callable[[int], str]) -> list[dict[str, Any]]:
    """Return searches as plain data, for JSON and for the page; `readable` returns the text of a token."""
    return [
        {
            "source": search.source,
            "hypotheses": [
                {"text": hypothesis.text, "score": hypothesis.score, "ended": hypothesis.ended}
                for hypothesis in search.found
            ],
            "nodes": search.tree.to_json(readable),
        }
        for search in searches
    ]
