"""How good the answers of a model are, and what was fitted to make them better."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.metrics.scoring import Scores


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One example and what the model answers."""

    source: str
    reference: str
    output: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """A small table for people, such as a confusion matrix."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """How good a model's answers to some examples are."""

    scores: Scores
    samples: Sequence[Sample]
    """The first examples, not chosen."""
    tables: Sequence[Table] = ()
    """What no single number says."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """What was fitted on validation data after training."""

    note: str
    """In a few words."""
    warning: str | None = None
    """Why the result needs care, in a sentence."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """How a finished run is used, for its card."""

    shell: str
    python: str
