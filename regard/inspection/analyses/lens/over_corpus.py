"""The lens over a corpus: the layer at which each output word is decided, and how each layer ranks it.

Axes: L layers, T target tokens, M measures.
"""

import numpy as np
from numpy.typing import NDArray

from regard.foundation.progress import Progress
from regard.inspection.analyses.lens.compute import lens
from regard.inspection.analyses.lens.result import Lens
from regard.inspection.corpus_means import Chart, Measured, observe
from regard.inspection.corpus_result import CorpusMeans
from regard.inspection.examples import BATCH, Example, Examples
from regard.tasks.loaded import LoadedRun
from regard.tasks.trace import Trace

NOTE = (
    "First from: the number of the layer, as counted on the page of one output, from which on the output token "
    "stays first; tokens that are not first in the last layer either, as a beam may choose, have none. Then by layer: "
    "its probability, how often it is first, and the reciprocal of its rank."
)


def lens_corpus(
    run: LoadedRun,
    examples: Examples,
    *,
    inside: bool = False,
    counts: NDArray[np.int64] | None = None,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> CorpusMeans:
    """Read every layer at every token of the run's own output, and average by group."""
    names: list[str] = []

    def charts(_: Trace) -> list[Chart]:
        layers = tuple(names)
        first = Chart("First from", ("layer",), f"0 is {names[0]}", low=0.0, high=len(names) - 1.0)
        titles = "Probability", "Share of tokens that are first", "Reciprocal rank"
        return [first, *(Chart(title, layers, by_layer=True, low=0.0, high=1.0) for title in titles)]

    def measure(_: Example, trace: Trace) -> Measured:
        found = lens(trace, words=1, inside=inside)
        names[:] = found.names
        return Measured(range(len(trace.target)), measure_lens(found))

    seen = observe(run, examples, charts, measure, counts=counts, batch=batch, progress=progress)
    return CorpusMeans.of("What each layer would have predicted", NOTE, examples, seen, counted=counts is not None)


def measure_lens(found: Lens) -> NDArray[np.float64]:
    """Return the deciding layer of each token, then its probability, whether it is first, and 1/rank by layer."""
    ranks = found.ranks.numpy().astype(np.float64).T  # T×L
    decided = np.array([np.nan if layer is None else layer for layer in found.decided])
    chances = found.probabilities.double().numpy().T
    return np.concatenate([decided[:, None], chances, (ranks == 1).astype(np.float64), 1 / ranks], axis=1)
