"""The usual lengths of a run's outputs."""

from pathlib import Path

import numpy as np

from regard.foundation.errors import RegardError, UsageError
from regard.runs.run import Run
from regard.search.constraints import MOST_WORDS
from regard.tasks.preparation import read_pairs

SHORT_SHARE = 0.25
"""Share of the references that count as short."""


def word_limits(length: str, run: Path) -> tuple[int, int]:
    """Return the least and the most words of an output for a number of words, or for `short`."""
    if length == "short":
        return 1, short_length(Run.open(run))
    if not length.isdecimal() or len(length) > len(str(MOST_WORDS)) or not 1 <= int(length) <= MOST_WORDS:
        raise UsageError(
            f"--length is a number of words or `short`, not `{length[:40]}`. Give a number from 1 to {MOST_WORDS:,}."
        )
    return int(length), int(length)


def short_length(run: Run) -> int:
    """Return the number of words that a quarter of the run's validation references do not exceed."""
    try:
        words = [len(pair.target.split()) for pair in read_pairs(run.data / "validation.jsonl")]
    except (OSError, RegardError):
        words = []
    if not words:
        raise UsageError(
            f"{run.directory} no longer has its data, so that what is short is not known. Give a number: --length 5."
        )
    return max(1, int(np.quantile(words, SHORT_SHARE)))
