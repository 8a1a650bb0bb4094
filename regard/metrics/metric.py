"""What a metric is: statistics of each sentence, and a score of their sum."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Statistics = NDArray[np.float64]
References = Sequence[tuple[str, ...]]
"""For each sentence, one or more right answers."""


class Metric(ABC):
    """score(Σ statistics(sentence)): so a corpus, a sentence and a resampled corpus are scored by one path."""

    label: ClassVar[str]
    """How it is written."""
    larger_is_better: ClassVar[bool] = True
    signature: str = ""
    """All settings that make the number comparable; complete once `statistics` has seen the references."""

    @abstractmethod
    def statistics(self, hypotheses: Sequence[str], references: References) -> Statistics:
        """Return what is counted in each sentence: sentences × counts."""

    @abstractmethod
    def score(self, totals: Statistics) -> float:
        """Return the score of summed statistics."""

    def details(self, totals: Statistics) -> dict[str, float]:
        """Return what the score is made of."""
        return {}
