"""Results of evaluation and calibration."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.metrics.scoring import Scores


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One example with the model's output."""

    source: str
    reference: str
    output: str
    others: Sequence[str] = ()
    """Further references, for which the output is scored, too."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A small table for display, such as a confusion matrix."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """Scores and samples of a model's outputs."""

    scores: Scores
    samples: Sequence[Sample]
    """The first examples, without selection."""
    tables: Sequence[Table] = ()
    """Further results, such as a confusion matrix."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """The result of calibration on validation data after training."""

    note: str
    """A short description."""
    warning: str | None = None
    """Why the result needs care, in a sentence."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Commands that use a finished run, for its card."""

    shell: str
    python: str
