"""Minimum Bayes risk decoding (Kumar and Byrne, 2004; Eikema and Aziz, 2020)."""

from collections import Counter
from collections.abc import Callable, Sequence

from regard.foundation.errors import UsageError

Utility = Callable[[str, str], float]
"""(hypothesis, reference) → quality of the hypothesis."""

METRICS = ("chrf", "bleu", "ter", "exact", "rouge")
"""Metrics defined here; those of `regard.metrics.scoring` can be used as well."""
ROUGE = ("rouge1", "rouge2", "rougeL")
"""The metrics whose mean is the utility `rouge`."""


def expected_utilities(texts: Sequence[str], utility: Utility) -> list[float]:
    """Return the mean utility of each text, with all texts, itself and duplicates included, as references."""
    counts = Counter(texts)
    means = {
        text: sum(times * utility(text, reference) for reference, times in counts.items()) / len(texts)
        for text in counts
    }
    return [means[text] for text in texts]


def utility_of(metric: str) -> Utility:
    """Return the utility of a metric: one of sacrebleu's, or one of evaluation, such as `meteor:de`."""
    if metric == "cider":
        raise UsageError("CIDEr weights words by their frequency in a corpus, which samples are not. Use chrf.")
    if metric not in METRICS:
        from regard.metrics.scoring import utility

        return utility(metric)
    if metric == "exact":
        return lambda hypothesis, reference: float(hypothesis == reference)
    if metric == "rouge":
        from regard.metrics.scoring import utility

        parts = [utility(name) for name in ROUGE]
        return lambda hypothesis, reference: sum(part(hypothesis, reference) for part in parts) / len(parts)
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if metric == "ter":
        errors = TER()
        return lambda hypothesis, reference: -float(errors.sentence_score(hypothesis, [reference]).score)
    scorer = CHRF() if metric == "chrf" else BLEU(effective_order=True)
    return lambda hypothesis, reference: float(scorer.sentence_score(hypothesis, [reference]).score)
