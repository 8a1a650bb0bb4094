"""Where two files that should run in parallel part company."""

import re
from array import array
from collections.abc import Iterable

import numpy as np

_DIGITS = re.compile(r"\d+")
_ENDS = ".!?…。！？"


def first_misaligned(pairs: Iterable[tuple[str, str]]) -> int:
    """The number, from 1, of the first pair that looks misaligned.

    Each pair gets a misfit: how far the ratio of its lengths is from the usual, plus one if its numbers differ, plus
    one if only one side ends like a sentence. A line lost or doubled lifts the misfit of every pair after it, so the
    answer is the point up to which misfits lie furthest below their mean (the change point of a CUSUM chart).
    """
    ratios, marks = array("f"), array("f")
    for source, target in pairs:
        ratios.append(float(np.log((len(source) + 5) / (len(target) + 5))))
        numbers = sorted(_DIGITS.findall(source)) != sorted(_DIGITS.findall(target))
        ends = source.rstrip()[-1:] in _ENDS and target.rstrip()[-1:] in _ENDS
        marks.append(numbers + (not ends and source[-1:] != target[-1:]))
    if not ratios:
        return 1
    ratio = np.asarray(ratios, dtype=np.float64)
    misfit = np.minimum(np.abs(ratio - np.median(ratio)) * 2, 2) + np.asarray(marks)
    below = np.concatenate([[0.0], np.cumsum(misfit - misfit.mean())])
    return int(np.argmin(below)) + 1
