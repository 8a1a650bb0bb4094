"""How good suggestions are, measured on conversations whose real replies are known.

Two questions are kept apart. *Ranking*: at which rank among all responses is the real reply (MRR, P@k)? Asked of
messages whose reply is in the response set. *Suggesting*: do the three suggestions contain the intent of the real
reply, and how many messages get suggestions at all?
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from regard.reply.selection import SHOWN

EXAMINED = (1.0, 0.75, 0.6)
"""Click model: probability that a suggestion is read, by position (position-based; Craswell et al., 2008)."""
RESAMPLES = 1000


@dataclass(frozen=True)
class Ranking:
    """Ranks of real replies among all responses."""

    ranks: NDArray[np.float64]
    """From 1; infinite where the reply was not found."""

    @property
    def mrr(self) -> float:
        """Mean reciprocal rank."""
        return float(np.mean(1.0 / self.ranks)) if len(self.ranks) else 0.0

    def precision_at(self, k: int) -> float:
        """Share of messages whose real reply is among the best k."""
        return float(np.mean(self.ranks <= k)) if len(self.ranks) else 0.0

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the MRR, by resampling messages."""
        return _interval(1.0 / self.ranks)

    def advantage(self, other: "Ranking") -> tuple[float, float, float]:
        """Return by how much the MRR exceeds that of another ranking of the same messages, and its 95 % interval.

        The messages are resampled in pairs (paired bootstrap), because both rankings find the same messages hard.
        """
        differences = 1.0 / self.ranks - 1.0 / other.ranks
        return (float(differences.mean()), *_interval(differences))


def _interval(values: NDArray[np.float64], seed: int = 1) -> tuple[float, float]:
    """Return the 95 % interval of a mean, by resampling."""
    if not len(values):
        return 0.0, 0.0
    random = np.random.default_rng(seed)
    means = [values[random.integers(len(values), size=len(values))].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


@dataclass(frozen=True)
class Suggested:
    """The intents suggested for one message, and that of the real reply."""

    intents: tuple[str, ...]
    """In the order shown; empty if there were no suggestions."""
    true: str | None
    """The intent of the real reply; `None` if it is not in the response set."""


def summarise(found: Sequence[Suggested]) -> Mapping[str, float]:
    """Return coverage, precision, use under the click model, and duplicates.

    `precision` is the share of messages with suggestions whose real reply's intent is among them, of those whose real
    reply is in the response set. `use` is the share of all messages at which a suggestion would be clicked: the user
    reads positions with the probabilities `EXAMINED`, and clicks the suggestion of the right intent if it is read.
    """
    shown = [one for one in found if one.intents]
    judged = [one for one in shown if one.true is not None]
    hits = [one.intents.index(one.true) for one in judged if one.true in one.intents]
    return {
        "messages": len(found),
        "coverage": len(shown) / max(1, len(found)),
        "judged": len(judged),
        "precision": len(hits) / max(1, len(judged)),
        "precision_of_all": len(hits) / max(1, len(shown)),
        "use": sum(EXAMINED[position] for position in hits if position < len(EXAMINED)) / max(1, len(found)),
        "duplicates": sum(len(set(one.intents)) < len(one.intents) for one in shown) / max(1, len(shown)),
        **{f"position_{number + 1}": hits.count(number) / max(1, len(judged)) for number in range(SHOWN)},
    }
