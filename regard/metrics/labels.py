"""Scores of labels and of numbers, all in per cent: accuracy, F1, correlation."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.metrics.scoring import Scores

Counts = NDArray[np.int64]

BINS = 10
"""Number of probability bins of the calibration error."""


def confusion(outputs: Sequence[str], references: Sequence[str], labels: Sequence[str]) -> Counts:
    """Return the confusion matrix: counts of each true label (row) and each predicted label (column)."""
    number = {label: index for index, label in enumerate(labels)}
    table = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for output, reference in zip(outputs, references, strict=True):
        table[number[reference], number[output]] += 1
    return table


def score_labels(outputs: Sequence[str], references: Sequence[str], labels: Sequence[str]) -> Scores:
    """Return accuracy, and macro-F1: the mean over occurring labels of F1 = 2·right / (predicted + true)."""
    table = confusion(outputs, references, labels)
    right, true, predicted = np.diag(table), table.sum(1), table.sum(0)
    occurs = true + predicted > 0
    f1 = {label: 200 * float(right[n]) / float(true[n] + predicted[n]) for n, label in enumerate(labels) if occurs[n]}
    whole = max(1, int(table.sum()))
    values = {"accuracy": 100 * float(right.sum()) / whole, "macro_f1": float(np.mean(list(f1.values()) or [0.0]))}
    return Scores(values=values, details={"macro_f1": f1}, sentences=len(outputs))


def calibration(sure: Sequence[float], right: Sequence[bool]) -> dict[str, float]:
    """Return the expected calibration error, Σ n_b/n · |accuracy − mean probability|, in per cent.

    Answers are put into ten bins by their probability (Naeini et al., 2015; Guo et al., 2017).
    """
    chance, hit = np.nan_to_num(np.asarray(sure, dtype=np.float64)), np.asarray(right, dtype=np.float64)
    if not len(chance):
        return {"expected_error": 0.0, "mean_probability": 0.0}
    bins = np.minimum((chance * BINS).astype(np.int64), BINS - 1)
    gaps = [abs(float((hit - chance)[bins == index].sum())) for index in range(BINS)]
    return {"expected_error": 100 * sum(gaps) / len(chance), "mean_probability": 100 * float(chance.mean())}


def score_numbers(outputs: Sequence[float], references: Sequence[float]) -> Scores:
    """Return the correlation with the references, of the numbers (Pearson) and of their ranks (Spearman), times 100.

    The mean squared error is included, since a correlation ignores a shift or a wrong scale.
    """
    predicted, true = np.asarray(outputs, dtype=np.float64), np.asarray(references, dtype=np.float64)
    values = {
        "pearson": 100 * correlation(predicted, true),
        "spearman": 100 * correlation(ranks(predicted), ranks(true)),
        "squared_error": float(np.mean((predicted - true) ** 2)) if len(predicted) else 0.0,
    }
    return Scores(values=values, sentences=len(outputs))


def correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return Pearson's r; 0 if one side is constant."""
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


def ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of each value from 1; equal values share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means = ends - (counts - 1) / 2
    return np.asarray(means[place], dtype=np.float64)
