"""How good suggestions are, measured on conversations whose real replies are known.

Two questions are kept apart. *Ranking*: at which rank among all responses is the real reply (MRR, P@k)? Asked of
messages whose reply is in the response set. *Suggesting*: do the three suggestions contain the intent of the real
reply, and how many messages get suggestions at all?
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

    def advantage(self, other: "Ranking") -> dict[str, list[float]]:
        """Return by how much MRR and P@10 exceed those of another ranking of the same messages: mean, low, high.

        The 95 % intervals come from resampling messages in pairs (paired bootstrap), because both rankings find the
        same messages hard.
        """
        pairs = {
            "mrr": 1.0 / self.ranks - 1.0 / other.ranks,
            "p@10": (self.ranks <= 10).astype(float) - (other.ranks <= 10),
        }
        return {name: [float(differences.mean()), *_interval(differences)] for name, differences in pairs.items()}


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
    true: str
    """The intent of the real reply."""


@dataclass(frozen=True)
class Trigger:
    """Which messages the trigger lets through: those whose reply is a response, and messages in general."""

    known: NDArray[np.bool_]
    everything: NDArray[np.bool_]

    def facts(self) -> dict[str, Any]:
        """Return the share of each, and the lift, their ratio, with its 95 % interval.

        A lift of 1 is chance. With a lift of l, suggestions are l times as often for a message that a response answers.
        """
        random = np.random.default_rng(1)
        lifts = [
            _ratio(random.choice(self.known, len(self.known)), random.choice(self.everything, len(self.everything)))
            for _ in range(RESAMPLES)
        ]
        low, high = np.quantile(lifts, [0.025, 0.975])
        return {
            "coverage_of_known": float(self.known.mean()),
            "coverage": float(self.everything.mean()),
            "lift": _ratio(self.known, self.everything),
            "interval": [float(low), float(high)],
        }


def _ratio(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> float:
    return float(one.mean() / max(other.mean(), 1 / len(other)))


def summarise(found: Sequence[Suggested], *, coverage: float, share: float) -> Mapping[str, float]:
    """Return the measures of suggestions for messages whose real reply is a response.

    `precision` is the share of messages with suggestions whose real reply's intent is among them. `use` is the share
    of messages at which a suggestion would be clicked: the user reads positions with the probabilities `EXAMINED`, and
    clicks the suggestion of the right intent if it is read.

    Args:
        found: The suggestions for these messages.
        coverage: The share of messages in general that get suggestions.
        share: The share of messages in general whose real reply is a response. A message of the others has no right
            suggestion, so that precision and use among all messages follow.
    """
    shown = [one for one in found if one.intents]
    hits = [one.intents.index(one.true) for one in shown if one.true in one.intents]
    use = sum(EXAMINED[position] for position in hits if position < len(EXAMINED)) / max(1, len(found))
    right = share * len(hits) / max(1, len(found))
    return {
        "judged": len(found),
        "coverage": coverage,
        "coverage_of_judged": len(shown) / max(1, len(found)),
        "precision": len(hits) / max(1, len(shown)),
        "precision_of_all": right / coverage if coverage else 0.0,
        "use": use,
        "use_of_all": share * use,
        "duplicates": sum(len(set(one.intents)) < len(one.intents) for one in shown) / max(1, len(shown)),
        **{f"position_{number + 1}": hits.count(number) / max(1, len(shown)) for number in range(SHOWN)},
    }
