"""Contributions over a corpus: how much of each output word came from the source.

Axes: T target tokens, M measures.
"""

import numpy as np
from numpy.typing import NDArray

from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.inspection.corpus_means import Chart, Measured, observe
from regard.inspection.corpus_result import CorpusMeans
from regard.inspection.examples import BATCH, Example, Examples, check_run
from regard.inspection.flow import decompose, why_not_decomposable
from regard.inspection.gain import Gain
from regard.tasks.loaded import LoadedRun
from regard.tasks.trace import Trace

NOTE = (
    "Source share: the part of a token that came from the source, the rest came from the words before (ALTI+). Gain: "
    "nats by which a token is likelier with its source than with a blank one. Unsupported: the share of tokens in "
    "words whose gain is below zero, which the model may have invented."
)


def contributions_corpus(
    run: LoadedRun,
    examples: Examples,
    *,
    counts: NDArray[np.int64] | None = None,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> CorpusMeans:
    """Compute the source share and the gain of every token of the run's own output, and average by group."""
    check_run(run)
    if why := why_not_decomposable(run.model):
        raise UsageError(why)

    def charts(_: Trace) -> list[Chart]:
        shares = Chart("Shares", ("source share", "unsupported"), low=0.0, high=1.0)
        return [shares, Chart("Gain", ("gain",), "nats")]

    def measure(_: Example, trace: Trace) -> Measured:
        gain, (source, _prefix) = Gain.of(trace), decompose(trace).roll()
        rows = [source.sum(-1).numpy(), np.asarray(gain.flagged, dtype=np.float64), gain.tokens.numpy()]
        return Measured(range(len(trace.target)), np.stack(rows, axis=1).astype(np.float64))

    seen = observe(run, examples, charts, measure, counts=counts, batch=batch, progress=progress)
    return CorpusMeans.of("Source against prefix", NOTE, examples, seen, counted=counts is not None)
