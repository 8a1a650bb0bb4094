"""Scores of text outputs against references, the same for training, the command line and Python."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from regard.foundation.errors import UsageError
from regard.metrics.answers import CharacterErrorRate, Edits, Exact, TokenAccuracy, TokenF1, WordErrorRate
from regard.metrics.cider import Cider
from regard.metrics.meteor import Meteor, words
from regard.metrics.metric import Metric, References
from regard.metrics.overlap import Bleu, Chrf, Ter
from regard.metrics.rouge import Rouge1, Rouge2, RougeL

METRICS: dict[str, type[Metric]] = {
    "bleu": Bleu,
    "chrf": Chrf,
    "ter": Ter,
    "meteor": Meteor,
    "cider": Cider,
    "rouge1": Rouge1,
    "rouge2": Rouge2,
    "rougeL": RougeL,
    "exact": Exact,
    "edits": Edits,
    "wer": WordErrorRate,
    "cer": CharacterErrorRate,
    "tokens": TokenAccuracy,
    "f1": TokenF1,
}
"""Every metric of text by name; `regard.extensions` adds to them."""

BLEU, METEOR = "bleu", "meteor"

USUAL = ("bleu", "chrf", "exact")
SHORT = ("exact", "chrf")
"""Default metrics of sentences, and of short targets."""
FOUR_GRAM = 4.0
"""Mean reference length in words below which BLEU, which counts four-grams, is not meaningful."""

NAMES = {
    **{name: METRICS[name].label for name in ("bleu", "chrf", "meteor", "cider", "exact", "f1", "wer", "cer")},
    **{name: METRICS[name].label for name in ("rouge1", "rouge2", "rougeL")},
    "true": "true",
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "span_f1": "span F1",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "squared_error": "squared error",
}
"""Display names of all metrics that training reports; CIDEr-D can exceed 100."""


SMALLER_IS_BETTER = ("squared_error", "wer", "cer")
"""Metrics that are errors."""


def format_score(metric: str, value: float, digits: int = 1) -> str:
    """Format a score: per cent with `digits` decimals, an error in its own unit with three."""
    return f"{value:.3f}" if metric == "squared_error" else f"{value:.{digits}f}"


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Scores of outputs by several metrics; most are from 0 to 100."""

    values: Mapping[str, float]
    """Score by metric."""
    signatures: Mapping[str, str] = field(default_factory=dict)
    """Signature by metric, which makes scores comparable."""
    details: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Components of each score, by metric."""
    sentences: int = 0
    """Number of scored examples: texts, tagged sentences, captions."""

    def __getitem__(self, metric: str) -> float:
        return self.values[metric]

    def __str__(self) -> str:
        return ", ".join(f"{label(metric)} {value:.1f}" for metric, value in self.values.items())


def score_text(
    hypotheses: Sequence[str],
    references: Sequence[str | Sequence[str]],
    metrics: Sequence[str] = ("bleu", "chrf", "exact"),
    *,
    language: str = "other",
) -> Scores:
    """Score each output against its reference or references; only METEOR uses `language`."""
    several = check(hypotheses, references)
    values: dict[str, float] = {}
    signatures: dict[str, str] = {}
    details: dict[str, Mapping[str, float]] = {}
    for name, metric in make(metrics, language).items() if hypotheses else ():
        totals = metric.statistics(hypotheses, several).sum(0)
        values[name] = metric.score(totals)
        if metric.signature:
            signatures[name] = metric.signature
        if parts := metric.details(totals):
            details[name] = parts
    return Scores(values=values, signatures=signatures, details=details, sentences=len(hypotheses))


def are_short(references: Sequence[str | Sequence[str]]) -> bool:
    """Return whether references have fewer than four words or marks on average, so that BLEU is not meaningful."""
    counts = [
        len(words(reference if isinstance(reference, str) else reference[0])) for reference in references if reference
    ]
    return bool(counts) and sum(counts) / len(counts) < FOUR_GRAM


def headline_metrics(references: Sequence[str | Sequence[str]]) -> tuple[str, ...]:
    """Return the metrics that suit the references: exact match and chrF first for short ones, without BLEU."""
    return SHORT if are_short(references) else USUAL


def make(names: Sequence[str], language: str = "other") -> dict[str, Metric]:
    """Create metrics by name; the error for an unknown name suggests the nearest.

    `bleu:zh` is BLEU with another tokenizer, `meteor:de` is METEOR for another language than `language`.
    """
    return {name: _create(name, language) for name in names}


def label(name: str) -> str:
    """Return the display name of a metric."""
    kind, _, form = name.partition(":")
    return f"{METRICS[kind].label} ({form})" if form else METRICS[kind].label


def utility(name: str) -> Callable[[str, str], float]:
    """Return a metric of one sentence as the utility of minimum Bayes risk decoding; larger is better."""
    metric = _create(name, "other")
    sign = 1.0 if metric.larger_is_better else -1.0
    return lambda output, reference: sign * metric.score(metric.statistics([output], [(reference,)])[0])


def _create(name: str, language: str) -> Metric:
    kind, colon, form = name.partition(":")
    if kind not in METRICS:
        meant = difflib.get_close_matches(kind.lower(), METRICS, n=1)
        hint = f"Did you mean `{meant[0]}`?" if meant else f"Choose from {', '.join(METRICS)}."
        raise UsageError(f"There is no metric `{kind}`. {hint}")
    if kind == METEOR:
        return Meteor(form if colon else language)
    if kind == BLEU and colon:
        return Bleu(form)
    if colon:
        raise UsageError(f"`{name}` is not a metric. Only `bleu:TOKENIZER` and `meteor:LANGUAGE` have variants.")
    return METRICS[kind]()


def check(hypotheses: Sequence[str], references: Sequence[str | Sequence[str]]) -> References:
    """Return the references of each output; raises if the numbers differ."""
    if len(hypotheses) != len(references):
        raise UsageError(
            f"There are {len(hypotheses):,} outputs for {len(references):,} references. The numbers must be equal."
        )
    several = [(reference,) if isinstance(reference, str) else tuple(reference) for reference in references]
    if not all(several):
        raise UsageError("Every output needs at least one reference, but some have none.")
    return several
