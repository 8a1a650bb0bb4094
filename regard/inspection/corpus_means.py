"""Means of an analysis over a corpus, by group, with intervals over sentences.

Axes: N tokens, M measures.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from regard.foundation.errors import RegardError, UsageError
from regard.foundation.progress import Progress
from regard.inspection.examples import BATCH, Example, Examples, trace_examples
from regard.inspection.plain_data import rounded_number
from regard.inspection.word_groups import GROUPINGS, frequent_tokens, group_tokens
from regard.metrics.intervals import Interval, ratio_intervals, resample_counts
from regard.tasks.loaded import LoadedRun
from regard.tasks.trace import Trace

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Chart:
    """Measures that are shown together: one for each layer, or several with one unit."""

    title: str
    measures: tuple[str, ...]
    unit: str = ""
    """What is on the axis."""
    by_layer: bool = False
    """Whether the measures are those of successive layers."""
    low: float = -np.inf
    high: float = np.inf
    """No value is outside of these."""


@dataclass(frozen=True)
class GroupMeans:
    """The means of one group of tokens."""

    name: str
    tokens: int
    sentences: int
    counts: list[int]
    """M: the tokens for which each measure is defined."""
    means: list[float | None]
    """M: none where a measure is defined for no token."""
    intervals: list[Interval | None]
    """M: 95 %, by a bootstrap over sentences; none for a single sentence."""


@dataclass(frozen=True)
class Grouping:
    """Groups that divide all tokens."""

    name: str
    groups: list[GroupMeans]


@dataclass
class Observations:
    """What was measured at every token."""

    charts: list[Chart]
    sentences: list[int] = field(default_factory=list)
    """N: the number of the sentence of each token."""
    groups: list[dict[str, str]] = field(default_factory=list)
    """N: its group in each grouping."""
    values: list[Values] = field(default_factory=list)
    """N rows of M numbers; not a number where a measure is not defined."""

    def add(self, sentence: int, groups: Sequence[dict[str, str]], values: Values) -> None:
        """Add the tokens of a sentence, with values tokens × M."""
        self.sentences += [sentence] * len(groups)
        self.groups += groups
        self.values += list(np.asarray(values, dtype=np.float64))

    def overall(self) -> GroupMeans:
        """Return the means of all tokens."""
        return self._means("all", np.ones(len(self.sentences), dtype=bool))

    def groupings(self) -> list[Grouping]:
        """Return the means of every group of every grouping; groups without a token are left out."""
        found = []
        for name in dict.fromkeys(name for groups in self.groups for name in groups):
            labels = np.array([groups[name] for groups in self.groups])
            known = GROUPINGS.get(name, ())
            sizes = Counter(labels.tolist())
            order = sorted(sizes, key=lambda name: (known.index(name) if name in known else -1, -sizes[name], name))
            found.append(Grouping(name, [self._means(group, labels == group) for group in order]))
        return found

    def _means(self, name: str, chosen: NDArray[np.bool_]) -> GroupMeans:
        values = np.stack(self.values)[chosen]  # N×M
        sentences = np.asarray(self.sentences)[chosen]
        known = ~np.isnan(values)
        means: list[float | None] = [None] * values.shape[1]
        intervals: list[Interval | None] = [None] * values.shape[1]
        limits = [(chart.low, chart.high) for chart in self.charts for _ in chart.measures]
        masks, kinds = np.unique(known, axis=1, return_inverse=True)  # measures of the same tokens share resamples
        for kind, mask in enumerate(masks.T):
            places = np.flatnonzero(kinds.ravel() == kind)
            if mask.any():
                found, ends = _mean(values[mask][:, places], sentences[mask])
                for position, mean, pair in zip(places.tolist(), found, ends, strict=True):
                    means[position] = rounded_number(mean)
                    if pair is not None:
                        first, last = np.clip(pair, *limits[position]).tolist()
                        intervals[position] = rounded_number(first), rounded_number(last)
        counts = known.sum(0).tolist()
        return GroupMeans(name, len(values), len(np.unique(sentences)), counts, means, intervals)


def _mean(values: Values, sentences: NDArray[np.int64]) -> tuple[list[float], Sequence[Interval | None]]:
    """Return the means of values N×M over tokens, and their 95 % intervals over resampled sentences.

    Tokens of a sentence depend on each other, so whole sentences are drawn.
    """
    distinct, places = np.unique(sentences, return_inverse=True)
    sums = np.zeros((len(distinct), values.shape[1]))
    np.add.at(sums, places, values)
    sizes = np.bincount(places)[:, None]
    ends = ratio_intervals(sums, sizes, counts=_resamples(len(distinct)))
    nothing = [None] * values.shape[1]
    return values.mean(0).tolist(), nothing if ends is None else [(low, high) for low, high in ends.tolist()]


@lru_cache(maxsize=8)
def _resamples(count: int) -> Values:
    """Return resamples of `count` sentences: the same for every group of that size."""
    return resample_counts(count)


@dataclass(frozen=True)
class Measured:
    """What was measured at some target tokens of one output."""

    places: Sequence[int]
    """The tokens."""
    values: Values
    """Tokens × M."""
    groups: dict[str, str] = field(default_factory=dict)
    """The group of all of them in further groupings."""


def observe(
    run: LoadedRun,
    examples: Examples,
    charts: Callable[[Trace], list[Chart]],
    measure: Callable[[Example, Trace], Measured],
    *,
    counts: NDArray[np.int64] | None = None,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> Observations:
    """Measure the tokens of a run's own output for every example; an example that cannot be measured is left out.

    `charts` says what is measured, given the first trace. `counts` are those of target tokens in training.
    """
    found: Observations | None = None
    frequent, tagged = frequent_tokens(counts), examples.has_tags
    for example, trace in trace_examples(run, examples, batch=batch, progress=progress):
        try:
            measured = measure(example, trace)
        except RegardError as error:
            examples.left_out[str(error)] += 1
            continue
        found = found or Observations(charts(trace))
        groups = group_tokens(example, trace.target, frequent=frequent, tagged=tagged)
        found.add(example.number, [groups[position] | measured.groups for position in measured.places], measured.values)
    if found is None:
        [(reason, count)] = examples.left_out.most_common(1)
        if count == examples.left_out.total():
            raise UsageError(f"No example of {examples.corpus} could be analysed: {reason}")
        raise UsageError(f"No example of {examples.corpus} could be analysed. The most frequent reason: {reason}")
    return found
