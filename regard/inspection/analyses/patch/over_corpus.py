"""Patching over a corpus: one word of each source is replaced, and each layer copied back.

Axes: S source tokens, T target tokens, M measures.
"""

import numpy as np
from numpy.typing import NDArray

from regard.foundation.errors import RegardError
from regard.foundation.progress import Progress
from regard.inspection.analyses.patch.compute import patch
from regard.inspection.analyses.patch.replacement import Corruption, Replacements
from regard.inspection.analyses.patch.result import Patching
from regard.inspection.corpus_means import Chart, Measured, observe
from regard.inspection.corpus_result import CorpusMeans
from regard.inspection.examples import BATCH, Example, Examples, translate
from regard.tasks.loaded import LoadedRun
from regard.tasks.trace import Trace

ANSWERS = 4
"""Corrupted sources that are translated until one has another output."""

NOTE = (
    "One content word of each source is replaced by another word of the corpus (of the same part of speech if the "
    "corpus is CoNLL-U, and of as many tokens), so that the output changes; then activations of the original pass "
    "are copied into the other one. A figure is the mean share of the logit difference, at the first output token that "
    "differs, that this brings back: 1 is all of it. Positions are copied one at a time, and those of a word with "
    "several tokens are averaged. Groups are those of the output token, one for each sentence. Sentences whose output "
    f"stays the same with {ANSWERS} replacements are left out, so the means are about words that matter."
)


def patch_corpus(
    run: LoadedRun,
    examples: Examples,
    *,
    seed: int = 1,
    counts: NDArray[np.int64] | None = None,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> CorpusMeans:
    """Patch each source against a copy of itself with one word replaced, and average what each layer recovers."""
    replacements = Replacements([example.source for example in examples.every])
    layout: list[Chart] = []

    def measure(example: Example, trace: Trace) -> Measured:
        corruption, found = _patch_one(run, replacements, example, trace, seed)
        charts, values = measure_patching(found)
        layout[:] = charts
        more = {} if corruption.tag is None else {"replaced word": corruption.tag}
        return Measured([len(found.read) - 1], values[None], more)

    def charts(_: Trace) -> list[Chart]:
        return list(layout)

    seen = observe(run, examples, charts, measure, counts=counts, batch=batch, progress=progress)
    return CorpusMeans.of("Which layer carries a word", NOTE, examples, seen, counted=counts is not None)


def _patch_one(
    run: LoadedRun, replacements: Replacements, example: Example, clean: Trace, seed: int
) -> tuple[Corruption, Patching]:
    """Patch the first corruption of a source that changes the output."""
    reason = "No word of the source can be replaced by one of as many tokens."
    for tried, corrupted in enumerate(replacements.corrupt(example, run.source_tokenizer, seed)):
        if tried == ANSWERS:
            break
        reason = f"The output stayed the same, or nearly so, with {ANSWERS} replacements."
        found = _compare(run, clean, corrupted)
        if found is not None:
            return corrupted, found
    raise RegardError(reason)


def _compare(run: LoadedRun, clean: Trace, corruption: Corruption) -> Patching | None:
    """Return what copying recovers; None if the two outputs cannot be compared."""
    [output] = translate(run, [corruption.text])
    if output is None or [*output.tokens] == clean.target.ids[:-1]:
        return None
    try:
        return patch(clean, run.trace_hypothesis(corruption.text, output))
    except RegardError:
        return None


def measure_patching(found: Patching) -> tuple[list[Chart], NDArray[np.float64]]:
    """Return what is measured, and the recoveries: of whole parts, then of states by layer and place."""
    charts = [Chart("Copied as a whole", tuple(name for name, _ in found.wholes))]
    values = [share for _, share in found.wholes]
    changed = np.array([token != other for token, other in zip(found.clean, found.corrupted, strict=True)])
    for heatmap in found.maps:
        if heatmap.part != "states":
            continue
        maps = heatmap.values.double().numpy()  # layers × positions
        at = changed if heatmap.kind == "encoder" else np.arange(maps.shape[1]) == maps.shape[1] - 1
        names = (
            ("Source states at the changed word", "Source states elsewhere, mean")
            if heatmap.kind == "encoder"
            else ("Target states at the answer", "Target states before it, mean")
        )
        for name, chosen in zip(names, (at, ~at), strict=True):
            charts.append(Chart(name, tuple(heatmap.rows), by_layer=True))
            values += maps[:, chosen].mean(1).tolist() if chosen.any() else [np.nan] * len(maps)
    return charts, np.asarray(values, dtype=np.float64)
