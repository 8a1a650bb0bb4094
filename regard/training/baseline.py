"""A linear baseline for text classification and regression: TF-IDF features with logistic or ridge regression.

It is fitted on the same training examples and scored on the same validation and test examples as the model. A network
that scores below it is not worth its training time.
"""

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from regard.config.run import RunConfig
from regard.config.task import PooledTask
from regard.data.corpus import Pair
from regard.metrics.labels import score_labels, score_numbers
from regard.metrics.scoring import NAMES, Scores
from regard.text.joined import TAB

MOST_EXAMPLES = 50_000
"""Maximum number of training examples; of more, an even sample is used, so that fitting takes seconds."""
MOST_FEATURES = 200_000
MOST_LABELS = 500
"""Maximum number of labels. The fit has a coefficient for each label and feature; with thousands of labels it takes
hours, and scipy's L-BFGS crashes above 2³¹ numbers."""
STRENGTHS = (3.0, 10.0, 30.0, 100.0)
"""Candidates for the inverse regularisation strength, which is chosen on validation data."""


def is_wanted(config: RunConfig) -> bool:
    """Return whether a linear model can do the task of a run: one label or number for a text or a pair of texts."""
    return isinstance(config.task, PooledTask)


def can_fit() -> bool:
    """Return whether the `baselines` extra is installed."""
    return importlib.util.find_spec("sklearn") is not None


def has_too_many_labels(config: RunConfig, train: Sequence[Pair]) -> bool:
    """Return whether the training examples have more labels than a linear model is fitted to."""
    return config.task.output == "label" and len({pair.target.strip() for pair in train}) > MOST_LABELS


def fit_baseline(
    config: RunConfig, train: Sequence[Pair], validation: Sequence[Pair], test: Sequence[Pair]
) -> dict[str, Any]:
    """Fit the linear baseline and score it: `{"name": …, "validation": {metric: score}, "test": {metric: score}}`."""
    classes = config.task.output == "label"
    kept = list(train[:: -(-len(train) // MOST_EXAMPLES)])
    features = _Features([pair.source for pair in kept])
    inputs = features.of([pair.source for pair in kept])
    held = features.of([pair.source for pair in validation])
    best: tuple[float, Any] | None = None
    for strength in STRENGTHS:
        model = _fit(inputs, kept, strength, classes=classes)
        scores = _score_predictions(model.predict(held), validation, classes=classes)
        score = scores["accuracy"] if classes else -scores["squared_error"]
        if best is None or score > best[0]:
            best = score, model
    assert best is not None
    found: dict[str, Any] = {
        "name": f"TF-IDF of words and word pairs, {'logistic' if classes else 'ridge'} regression",
        "examples": len(kept),
    }
    for name, pairs in (("validation", validation), ("test", test)):
        if pairs:
            predicted = best[1].predict(features.of([pair.source for pair in pairs]))
            found[name] = dict(_score_predictions(predicted, pairs, classes=classes).values)
    return found


def stored_baseline(info: Mapping[str, Any], part: str) -> dict[str, float] | None:
    """Return the scores of the baseline on one part of a run's data from its `run.json`; `None` without any."""
    kept = info.get("baseline")
    scores = kept.get(part) if isinstance(kept, Mapping) else None
    if not isinstance(scores, Mapping):
        return None
    known = {name: value for name, value in scores.items() if name in NAMES and isinstance(value, int | float)}
    return {name: float(value) for name, value in known.items()} or None


class _Features:
    """TF-IDF of words and word bigrams; for two texts u and v [u; v; |u − v|; u ∘ v]."""

    def __init__(self, texts: Sequence[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, max_features=MOST_FEATURES)
        self.vectorizer.fit([text for source in texts for text in source.split(TAB)])
        self.paired = any(TAB in text for text in texts)

    def of(self, texts: Sequence[str]) -> Any:
        """Return the features of texts, one sparse row each."""
        from scipy.sparse import hstack

        if not self.paired:
            return self.vectorizer.transform(texts)
        parts = [text.partition(TAB) for text in texts]
        first_vectors = self.vectorizer.transform([first for first, _, _ in parts])
        other = self.vectorizer.transform([second for _, _, second in parts])
        return hstack([first_vectors, other, abs(first_vectors - other), first_vectors.multiply(other)]).tocsr()


def _fit(inputs: Any, pairs: Sequence[Pair], strength: float, *, classes: bool) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that stops at its last step is good enough
        if classes:
            return LogisticRegression(C=strength, max_iter=500).fit(inputs, [pair.target.strip() for pair in pairs])
        return Ridge(alpha=1 / strength).fit(inputs, [float(pair.target) for pair in pairs])


def _score_predictions(predicted: Any, pairs: Sequence[Pair], *, classes: bool) -> Scores:
    if not classes:
        return score_numbers([float(value) for value in predicted], [float(pair.target) for pair in pairs])
    outputs, references = [str(value) for value in predicted], [pair.target.strip() for pair in pairs]
    return score_labels(outputs, references, sorted({*outputs, *references}))
