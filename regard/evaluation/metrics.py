"""Scores of text: one path from outputs and references to a number, for training, commands and programs alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.errors import UsageError

NAMES = {"bleu": "BLEU", "chrf": "chrF", "exact": "exact match"}
"""Every metric and how it is written."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """How good some outputs are, each score from 0 to 100."""

    values: Mapping[str, float]
    """Score by metric."""
    signatures: Mapping[str, str] = field(default_factory=dict)
    """sacrebleu's signature by metric: what makes a number comparable."""
    sentences: int = 0
    """How many outputs were scored."""

    def __getitem__(self, metric: str) -> float:
        return self.values[metric]

    def __str__(self) -> str:
        return ", ".join(f"{NAMES[metric]} {value:.1f}" for metric, value in self.values.items())


def score_text(
    hypotheses: Sequence[str], references: Sequence[str], metrics: Sequence[str] = ("bleu", "chrf", "exact")
) -> Scores:
    """Score outputs against one reference each: BLEU (Papineni et al., 2002), chrF (Popović, 2015), exact match."""
    if len(hypotheses) != len(references):
        raise UsageError(f"There are {len(hypotheses)} outputs for {len(references)} references: they must be as many.")
    for metric in metrics:
        if metric not in _METRICS:
            raise UsageError(f"There is no metric `{metric}`: choose from {', '.join(_METRICS)}.")
    values: dict[str, float] = {}
    signatures: dict[str, str] = {}
    for metric in metrics if hypotheses else ():
        values[metric], signature = _METRICS[metric](hypotheses, references)
        if signature:
            signatures[metric] = signature
    return Scores(values=values, signatures=signatures, sentences=len(hypotheses))


def _by_sacrebleu(make: Callable[[], Any]) -> Callable[[Sequence[str], Sequence[str]], tuple[float, str]]:
    def score(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
        metric = make()
        value = metric.corpus_score(list(hypotheses), [list(references)]).score
        return float(value), str(metric.get_signature())

    return score


def _exact(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    same = sum(hypothesis == reference for hypothesis, reference in zip(hypotheses, references, strict=True))
    return 100.0 * same / len(references), ""


_METRICS: dict[str, Callable[[Sequence[str], Sequence[str]], tuple[float, str]]] = {
    "bleu": _by_sacrebleu(BLEU),
    "chrf": _by_sacrebleu(CHRF),
    "exact": _exact,
}
