"""Confidence: a calibrated probability that a translation is good, and that each of its words is right.

Two logistic regressions, fitted on held-out translations with references. A *sentence* is good if its chrF reaches a
threshold; a *word* is right if it is matched by a word of the reference in the same order. Features are what the model
itself knows: log-probabilities, how much the source raised them over a blank source, and the ratio of lengths.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regard.evaluation.likelihood import log_probs
from regard.foundation import durable
from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.runs.records import read_record, seal
from regard.search import Hypothesis, Search
from regard.tasks.inputs.text import TextInput
from regard.tasks.loaded import LoadedRun
from regard.text.specials import EOS, UNK
from regard.text.tokenizer import Tokenizer

FILE = "confidence.json"
GOOD = 50.0
"""chrF from which a translation is good, unless nearly all or nearly none reach it: then the median."""
RARE = 0.1
"""Smallest share of good or bad translations for that threshold."""
FEWEST = 50
"""Translations that a fit needs."""
FOLDS = 5

Array = NDArray[np.float64]


class Features(NamedTuple):
    """What a regression knows of one translation."""

    sentence: tuple[float, ...]
    """Mean and lowest log-probability of its tokens, mean gain from the source, log ratio of lengths."""
    words: list[tuple[float, ...]]
    """For each word its lowest log-probability, the sum, the gain from the source, and the mean of the sentence."""


@dataclass(frozen=True)
class Regression:
    """P = 1 / (1 + exp(−(bias + Σ weight · (feature − mean) / scale)))."""

    weights: list[float]
    bias: float
    means: list[float]
    scales: list[float]
    auc: float
    """Area under the ROC curve by cross-validation: how often a good one ranks above a bad one."""
    brier: float
    """Mean squared error of the probability by cross-validation."""
    base: float
    """Share of good ones, whose Brier score as a constant would be base · (1 − base)."""
    count: int

    def probability(self, features: Sequence[float]) -> float:
        """Return the probability for one row of features."""
        values = zip(self.weights, features, self.means, self.scales, strict=True)
        score = self.bias + math.fsum(weight * (value - mean) / scale for weight, value, mean, scale in values)
        return 1.0 / (1.0 + math.exp(-max(min(score, 50.0), -50.0)))


@dataclass(frozen=True)
class Confidence:
    """The regressions of a run."""

    good: float
    """chrF from which a translation counts as good."""
    sentence: Regression
    word: Regression

    @classmethod
    def load(cls, run: Path) -> "Confidence":
        """Read the regressions of a run; raises `UsageError` if it has none."""
        path = run / FILE
        if not path.exists():
            raise UsageError(f"{run} has no calibrated confidence. Fit it with: regard calibrate {run}")
        return read_record(path, cls, sealed=True)

    def save(self, run: Path) -> None:
        """Write the regressions into a run."""
        durable.write(run / FILE, json.dumps(seal(asdict(self)), indent=1) + "\n")

    def rate(self, translator: LoadedRun, sources: Sequence[str], best: Sequence[Hypothesis]) -> list["Rating"]:
        """Return the confidence in each translation and its words."""
        rows = features(translator, sources, best)
        return [
            Rating(
                self.sentence.probability(row.sentence),
                list(zip(_words(hypothesis.text), map(self.word.probability, row.words), strict=False)),
            )
            for row, hypothesis in zip(rows, best, strict=True)
        ]


def rate_best(
    translator: LoadedRun, run: Path, sources: Sequence[str], lists: Sequence[Sequence[Hypothesis]]
) -> list[dict[str, object]]:
    """Return the confidence in the best of each list of hypotheses as plain data; an empty list has none."""
    confidence = Confidence.load(run)
    given = [(source, best[0]) for source, best in zip(sources, lists, strict=True) if best]
    found = iter(confidence.rate(translator, [source for source, _ in given], [best for _, best in given]))
    return [next(found).facts() if best else {"confidence": None, "words": []} for best in lists]


class Rating(NamedTuple):
    """The confidence in one translation."""

    confidence: float
    words: list[tuple[str, float]]
    """Each word of the translation with its confidence."""

    def facts(self) -> dict[str, object]:
        """Return it as plain data."""
        words = [{"word": word, "confidence": round(chance, 4)} for word, chance in self.words]
        return {"confidence": round(self.confidence, 4), "words": words}


def fit_confidence(
    translator: LoadedRun,
    sources: Sequence[str],
    references: Sequence[str | Sequence[str]],
    progress: Progress | None = None,
) -> Confidence:
    """Translate sources, compare the outputs with references (one or several of each), and fit both regressions.

    Raises `RegardError` if there are too few translations, or only good or only bad ones.
    """
    if len(sources) < FEWEST:
        raise RegardError(f"Calibration needs at least {FEWEST} translations, but there are {len(sources)}.")
    from sacrebleu.metrics.chrf import CHRF

    best: list[Hypothesis] = []
    for start in range(0, len(sources), 64):
        lists = translator.generator.hypotheses(list(sources[start : start + 64]), Search(split=None))
        best += [found[0] if found else Hypothesis((), (), 0.0, "end") for found in lists]
        if progress:
            progress("translating", len(best), len(sources))
    chrf = CHRF()
    several = [[given] if isinstance(given, str) else list(given) for given in references]
    scores = np.array(
        [chrf.sentence_score(found.text, given).score for found, given in zip(best, several, strict=True)]
    )
    share = float((scores >= GOOD).mean())
    threshold = GOOD if RARE <= share <= 1 - RARE else float(np.median(scores))
    rows = features(translator, sources, best, progress)
    right = [
        max((matches(_words(found.text), _words(reference)) for reference in given), key=sum)
        for found, given in zip(best, several, strict=True)
    ]
    pairs = [pair for row, marks in zip(rows, right, strict=True) for pair in zip(row.words, marks, strict=False)]
    sentence = fit([row.sentence for row in rows], scores >= threshold, "translations")
    word = fit([given for given, _ in pairs], np.array([mark for _, mark in pairs]), "words")
    return Confidence(round(threshold, 2), sentence, word)


def features(
    translator: LoadedRun, sources: Sequence[str], best: Sequence[Hypothesis], progress: Progress | None = None
) -> list[Features]:
    """Return the features of translations: two passes of the model over each, with its source and with a blank one."""
    source_ids = translator.source_tokenizer.encode_batch(list(sources))
    if isinstance(translator.input, TextInput) and translator.config.task.cuts_long_sources:
        source_ids = [ids[: translator.input.longest_source] for ids in source_ids]
    target_ids = [[token for token in hypothesis.tokens if token != EOS] for hypothesis in best]
    tokens = translator.config.decoding.batch_tokens
    seen = log_probs(translator.model, source_ids, target_ids, tokens=tokens, progress=progress)
    blank = log_probs(translator.model, [[UNK] * len(ids) for ids in source_ids], target_ids, tokens=tokens)
    return [
        _features(
            word_ranges(translator.target_tokenizer, target, partial(translator.input.finish, source)),
            math.log((len(target) + 1) / (len(ids) + 1)),
            np.array(with_source),
            np.array(without),
        )
        for source, ids, target, with_source, without in zip(sources, source_ids, target_ids, seen, blank, strict=True)
    ]


def _features(ranges: Sequence[tuple[int, int]], ratio: float, seen: Array, blank: Array) -> Features:
    gain = np.clip(seen - blank, -20.0, 20.0)
    mean = float(seen.mean())
    words: list[tuple[float, ...]] = []
    for start, end in ranges:
        part = seen[start:end]
        words.append((float(part.min()), float(part.sum()), float(gain[start:end].sum()), mean))
    return Features((mean, float(seen.min()), float(gain.mean()), ratio), words)


def word_ranges(
    tokenizer: Tokenizer, tokens: Sequence[int], finish: Callable[[str], str] = str
) -> list[tuple[int, int]]:
    """Return the tokens of each word of the decoded text, words being separated by white space.

    `finish` makes the output of the decoded text: a placeholder may become several words, which have its token.
    """
    ranges: list[tuple[int, int]] = []
    count = 0
    for index in range(len(tokens)):
        words = len(_words(finish(tokenizer.decode(list(tokens[: index + 1])))))
        if words > count or not ranges:
            ranges += [(index, index + 1)] * max(1, words - count)
            count = max(words, 1)
        else:
            ranges[-1] = ranges[-1][0], index + 1
    return ranges


def _words(text: str) -> list[str]:
    return text.split()


def matches(output: Sequence[str], reference: Sequence[str]) -> list[bool]:
    """Return which words of an output are matched, in order, by words of the reference."""
    right = [False] * len(output)
    for block in SequenceMatcher(None, output, reference, autojunk=False).get_matching_blocks():
        right[block.a : block.a + block.size] = [True] * block.size
    return right


def fit(rows: Sequence[Sequence[float]], good: NDArray[np.bool_], what: str) -> Regression:
    """Fit a regression, and measure it by cross-validation."""
    inputs, labels = np.asarray(rows, dtype=np.float64), np.asarray(good, dtype=np.float64)
    if min(labels.sum(), len(labels) - labels.sum()) < 2 * FOLDS:
        raise RegardError(
            f"Calibration needs right and wrong {what}, but {int(labels.sum()):,} of {len(labels):,} are right. Give "
            "more examples."
        )
    means, scales = inputs.mean(0), np.maximum(inputs.std(0), 1e-6)
    inputs = (inputs - means) / scales
    folds = np.arange(len(labels)) * FOLDS // len(labels)  # words of one sentence stay together
    held_out = np.empty(len(labels))
    for fold in range(FOLDS):
        weights = _logistic(inputs[folds != fold], labels[folds != fold])
        held_out[folds == fold] = _probabilities(inputs[folds == fold], weights)
    weights = _logistic(inputs, labels)
    return Regression(
        weights=weights[1:].tolist(),
        bias=float(weights[0]),
        means=means.tolist(),
        scales=scales.tolist(),
        auc=area_under_curve(held_out, labels),
        brier=float(((held_out - labels) ** 2).mean()),
        base=float(labels.mean()),
        count=len(labels),
    )


def _probabilities(inputs: Array, weights: Array) -> Array:
    scores = np.clip(weights[0] + inputs @ weights[1:], -50.0, 50.0)
    found: Array = 1.0 / (1.0 + np.exp(-scores))
    return found


def _logistic(inputs: Array, labels: Array) -> Array:
    """Return bias and weights of a logistic regression with a small penalty, by Newton's method."""
    design = np.column_stack([np.ones(len(inputs)), inputs])
    penalty = np.diag([0.0] + [1e-3 * len(inputs)] * inputs.shape[1])
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        chances = _probabilities(inputs, weights)
        slope = design.T @ (labels - chances) - penalty @ weights
        curvature = (design * (chances * (1 - chances))[:, None]).T @ design + penalty + 1e-9 * np.eye(len(weights))
        step = np.linalg.solve(curvature, slope)
        weights = weights + np.clip(step, -5.0, 5.0)
        if np.abs(step).max() < 1e-8:
            break
    return weights


def area_under_curve(scores: Array, labels: Array) -> float:
    """Return how often a positive example has a higher score than a negative one; ties count half."""
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ordered = scores[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ends = np.r_[starts[1:], len(scores)]
    for start, end in zip(starts, ends, strict=True):
        ranks[order[start:end]] = (start + end + 1) / 2
    positive = labels > 0.5
    count = int(positive.sum())
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(labels) - count)))
