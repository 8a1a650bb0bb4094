"""A classifier whose labels are responses: the second expert of the scorer."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.foundation.errors import RegardError
from regard.tasks.loaded import LoadedRun
from regard.tasks.outputs.label import LabelOutput
from regard.tasks.results import Label

LEAST = 1e-12
"""Smallest probability, so that its logarithm is finite."""


class ResponseClassifier:
    """log Q(response | message) of a fixed set of responses.

    A response that is no label, because people added it after the training, gets the median of the others: the
    classifier knows nothing about it, and the sequence-to-sequence run alone decides.
    """

    def __init__(self, run: LoadedRun, responses: Sequence[str]) -> None:
        if not isinstance(run.output, LabelOutput):
            raise RegardError("The scorer's second expert must be a classifier whose labels are responses.")
        self.run = run
        labels = {label: number for number, label in enumerate(run.output.labels)}
        self.columns = np.array([labels.get(response, -1) for response in responses], dtype=np.int64)

    def log_probs(self, message: str) -> NDArray[np.float64]:
        """Return log Q of every response for a message."""
        return self.among_responses(self.of_labels(message))

    def of_labels(self, message: str) -> NDArray[np.float64]:
        """Return log Q of every label for a message; none if the message is empty."""
        result = self.run.predict(message)
        if not isinstance(result, Label):
            return np.zeros(0)
        shares = np.fromiter(result.probabilities.values(), float, len(result.probabilities))
        logs: NDArray[np.float64] = np.log(np.maximum(shares, LEAST))
        return logs

    def among_responses(self, logs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log Q of every response, given that of every label."""
        if not len(logs) or not len(self.columns):
            return np.zeros(len(self.columns))
        found: NDArray[np.float64] = np.where(self.columns < 0, np.median(logs), logs[self.columns])
        return found
