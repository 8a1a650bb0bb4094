"""Minimum Bayes risk decoding (Kumar and Byrne, 2004; Eikema and Aziz, 2020)."""

import math
from collections.abc import Callable, Sequence

from regard.foundation.errors import UsageError
from regard.search.hypothesis import Hypothesis

Utility = Callable[[str, str], float]
"""(hypothesis, reference) → quality of the hypothesis."""

METRICS = ("chrf", "bleu", "ter", "exact", "rouge")
"""Metrics defined here; those of `regard.metrics.scoring` can be used as well."""
ROUGE = {"rouge1": 1 / 6, "rouge2": 4 / 6, "rougeL": 1 / 6}
"""The metrics, with their weights, whose mean is the utility `rouge`: ROUGE-2 is smaller than the others. Chosen on
held-out subject lines of AESLC."""
FLATNESS = 0.1
"""With 1, the first hypotheses of a beam would decide alone; with 0, the last would count as much. Chosen likewise."""


def expected_utilities(texts: Sequence[str], utility: Utility, weights: Sequence[float] | None = None) -> list[float]:
    """Return the mean utility of each text, with all texts, itself and duplicates included, as references.

    `weights` say how much each text counts as a reference; by default all count equally, as samples do.
    """
    counts: dict[str, float] = {}
    for text, weight in zip(texts, weights or [1.0] * len(texts), strict=True):
        counts[text] = counts.get(text, 0.0) + weight
    total = sum(counts.values())
    means = {
        text: sum(times * utility(text, reference) for reference, times in counts.items()) / total for text in counts
    }
    return [means[text] for text in texts]


def beam_weights(hypotheses: Sequence[Hypothesis]) -> list[float]:
    """Return how much each hypothesis of a beam counts as a reference: its probability to the power of `FLATNESS`."""
    logs = [FLATNESS * sum(hypothesis.log_probs) for hypothesis in hypotheses]
    return [math.exp(log - max(logs)) for log in logs]


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

        parts = [(share, utility(name)) for name, share in ROUGE.items()]
        return lambda hypothesis, reference: sum(share * part(hypothesis, reference) for share, part in parts)
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    if metric == "ter":
        errors = TER()
        return lambda hypothesis, reference: -float(errors.sentence_score(hypothesis, [reference]).score)
    scorer = CHRF() if metric == "chrf" else BLEU(effective_order=True)
    return lambda hypothesis, reference: float(scorer.sentence_score(hypothesis, [reference]).score)
