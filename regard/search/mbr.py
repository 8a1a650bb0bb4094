"""Minimum Bayes risk: the output that agrees best with all others (Kumar and Byrne, 2004; Eikema and Aziz, 2020)."""

from collections import Counter
from collections.abc import Callable, Sequence

from regard.foundation.errors import UsageError

Utility = Callable[[str, str], float]
"""(hypothesis, reference) → how good the one is, if the other is right."""

METRICS = ("chrf", "bleu", "ter", "exact")
"""Metrics that are known here; those of `regard.metrics.scoring` can be used as well."""


def expected_utilities(texts: Sequence[str], utility: Utility) -> list[float]:
    """The mean utility of each text, with all of them (samples, so as often as they came) as references."""
    counts = Counter(texts)
    means = {
        text: sum(times * utility(text, reference) for reference, times in counts.items()) / len(texts)
        for text in counts
    }
    return [means[text] for text in texts]


def utility_of(metric: str) -> Utility:
    """The utility of a metric's name: by sacrebleu, or else as in evaluation, such as `meteor:de`."""
    if metric == "cider":
        raise UsageError("CIDEr weighs words by how rare they are in a corpus, and samples are none: use chrf.")
    if metric not in METRICS:
        from regard.metrics.scoring import utility

        return utility(metric)
    if metric == "exact":
        return lambda hypothesis, reference: float(hypothesis == reference)
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if metric == "ter":
        errors = TER()
        return lambda hypothesis, reference: -float(errors.sentence_score(hypothesis, [reference]).score)
    scorer = CHRF() if metric == "chrf" else BLEU(effective_order=True)
    return lambda hypothesis, reference: float(scorer.sentence_score(hypothesis, [reference]).score)
