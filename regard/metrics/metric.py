"""The contract of a metric: statistics of each sentence, and a score of their sum."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Statistics = NDArray[np.float64]
References = Sequence[tuple[str, ...]]
"""For each sentence, one or more references."""


class Metric(ABC):
    """score(Σ statistics(sentence)), so that a corpus, a sentence and a resampled corpus are scored alike."""

    label: ClassVar[str]
    """Its display name."""
    larger_is_better: ClassVar[bool] = True
    signature: str = ""
    """All settings that make scores comparable; complete after `statistics` has been called."""

    @abstractmethod
    def statistics(self, hypotheses: Sequence[str], references: References) -> Statistics:
        """Return the counts of each sentence: sentences × counts."""

    @abstractmethod
    def score(self, totals: Statistics) -> float:
        """Return the score of summed statistics."""

    def details(self, totals: Statistics) -> dict[str, float]:
        """Return the components of the score."""
        return {}
