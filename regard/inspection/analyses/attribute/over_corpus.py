"""Attribution over a corpus: how much of each output word came from the source, and how concentrated it is.

Axes: S source tokens, T target tokens, M measures.
"""

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from regard.foundation.progress import Progress
from regard.inspection.analyses.attribute.methods import METHODS, Method, ask, check_methods
from regard.inspection.corpus_means import Chart, Measured, observe
from regard.inspection.corpus_result import CorpusMeans
from regard.inspection.examples import BATCH, Example, Examples
from regard.inspection.gain import Gain
from regard.inspection.influence import Influence
from regard.inspection.vectors import Question
from regard.tasks.loaded import LoadedRun
from regard.tasks.trace import Trace

NOTE = (
    "Source and prefix: the sum of the amounts of all tokens of that side, in nats. Gain: nats by which a token is "
    "likelier with its source than with a blank one. Source share: the source's part of the sizes of all amounts. It "
    "is not defined for the first token, which follows only the start symbol, and that is never blanked. Largest "
    "share: the part of the largest amount. Effective tokens: the exponential of the entropy of the parts, which is 1 "
    "if a single token has all."
)


def attribute_corpus(
    run: LoadedRun,
    examples: Examples,
    methods: Sequence[str] = ("occlusion",),
    *,
    counts: NDArray[np.int64] | None = None,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> CorpusMeans:
    """Attribute every token of the run's own output for each example, and average by group."""
    check_methods(methods)
    chosen = cast(Sequence[Method], list(dict.fromkeys(methods)))

    def charts(_: Trace) -> list[Chart]:
        found = []
        for method in chosen:
            name = METHODS[method].capitalize()
            found.append(Chart(f"{name}: shares", ("source share", "largest share"), low=0.0, high=1.0))
            found.append(Chart(f"{name}: effective tokens", ("effective tokens",), low=1.0))
            found.append(Chart(f"{name}: amounts", ("source", "prefix"), "nats"))
        return [*found, Chart("Gain", ("gain",), "nats")]

    def measure(_: Example, trace: Trace) -> Measured:
        answer = ask(trace, [Question(torch.tensor(trace.target.ids))], chosen, None).answer(0, "", None)
        parts = [measure_influence(answer.methods[method]) for method in chosen]
        parts.append(Gain.of(trace).tokens[:, None].double().numpy())
        return Measured(range(len(trace.target)), np.concatenate(parts, axis=1))

    seen = observe(run, examples, charts, measure, counts=counts, batch=batch, progress=progress)
    return CorpusMeans.of("What made the model say it", NOTE, examples, seen, counted=counts is not None)


def measure_influence(found: Influence) -> NDArray[np.float64]:
    """Return both shares, the effective tokens, and the sum of the source and of the prefix of each row: T×5."""
    source, prefix = found.source.double().numpy(), found.prefix.double().numpy()
    sizes = np.abs(np.concatenate([source, prefix], axis=1))  # T×(S+T)
    whole = sizes.sum(1)
    shares = np.divide(sizes, whole[:, None], out=np.full_like(sizes, np.nan), where=whole[:, None] > 0)
    source_share = shares[:, : source.shape[1]].sum(1)
    source_share[:1] = np.nan
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    effective = np.exp(-(shares * logs).sum(1))
    return np.stack([source_share, shares.max(1), effective, source.sum(1), prefix.sum(1)], axis=1)
