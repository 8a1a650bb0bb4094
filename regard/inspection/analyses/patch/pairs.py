"""What parts of a model carry the difference between two sources, over many pairs of sources: means with intervals."""

from collections.abc import Sequence
from math import isnan

import numpy as np

from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.inspection.analyses.patch.compute import patch
from regard.inspection.analyses.patch.pairs_result import MeanRecovery, PatchingPairs
from regard.metrics.intervals import ratio_intervals
from regard.tasks.loaded import LoadedRun


def patch_pairs(
    subject: LoadedRun, pairs: Sequence[tuple[str, str]], *, progress: Progress | None = None
) -> PatchingPairs:
    """Patch every pair of a clean and a corrupted source, and average what whole parts and single heads recover.

    A pair that cannot be compared (different numbers of tokens, the same answer) is left out and listed.
    """
    wholes: dict[str, list[float]] = {}
    heads: dict[str, list[float]] = {}
    skipped = []
    for number, (clean, corrupted) in enumerate(pairs, start=1):
        try:
            found = patch(subject.trace(clean), subject.trace(corrupted))
        except RegardError as error:
            skipped.append(f"pair {number}: {error}")
            continue
        for name, value in found.wholes:
            wholes.setdefault(name, []).append(value)
        for heatmap in found.maps:
            for row, line in zip(heatmap.rows, heatmap.values.tolist(), strict=True) if heatmap.part == "heads" else ():
                for column, value in zip(heatmap.columns, line, strict=True):
                    if not isnan(value):
                        heads.setdefault(f"{heatmap.name}, {row}, {column}", []).append(value)
        if progress:
            progress("patching", number, len(pairs))
    if not wholes:
        why = skipped[0] if skipped else "there are none"
        raise UsageError(f"No pair of sources could be compared ({why}). Give pairs of as many tokens each.")
    strongest = sorted((_mean(name, values) for name, values in heads.items()), key=lambda head: -abs(head.mean))
    means = [_mean(name, values) for name, values in wholes.items()]
    return PatchingPairs(len(pairs) - len(skipped), skipped, means, strongest)


def _mean(name: str, values: Sequence[float]) -> MeanRecovery:
    rows = np.asarray(values, dtype=np.float64)[:, None]
    found = ratio_intervals(rows, np.ones_like(rows))
    interval = None if found is None else (float(found[0, 0]), float(found[0, 1]))
    return MeanRecovery(name, float(rows.mean()), interval, len(rows))
