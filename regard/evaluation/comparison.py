"""Comparison of systems on the same sentences: scores, significance, slices and differing sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from regard.evaluation.slices import Slices, by_kind, by_length, frequencies, word_f1
from regard.foundation.display import columns
from regard.foundation.errors import UsageError
from regard.metrics.metric import Metric, References, Statistics
from regard.metrics.scoring import Scores, are_short, check, label, make, score_text
from regard.metrics.significance import Significance, compare_statistics, confidence, correct

SENTENCE_METRIC = "chrf"
"""The metric that ranks single sentences; unlike BLEU, it is defined for them."""

EXAMPLES = 2
"""Number of largest gains, and of largest losses, that are printed."""

Table = Mapping[str, Mapping[str, float]]
"""Score by slice, then by system."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """A source, its first reference, and each system's output with its sentence-level chrF."""

    number: int
    """Its line, counted from 1."""
    source: str
    reference: str
    outputs: Mapping[str, str]
    scores: Mapping[str, float]

    @property
    def gain(self) -> float:
        """Score of the last system minus that of the first."""
        first, *_, last = self.scores.values()
        return last - first

    def facts(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        texts = {"source": self.source, "reference": self.reference}
        return {"line": self.number, **texts, "outputs": dict(self.outputs), SENTENCE_METRIC: dict(self.scores)}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The scores of all systems, and the differences of each from the first."""

    scores: Mapping[str, Scores]
    """By system."""
    significance: Mapping[str, Mapping[str, Significance]]
    """Significance of each other system against the first, by system and metric."""
    main: str
    """The metric of the slices: the first one given."""
    lengths: Table
    bands: Mapping[str, Mapping[str, tuple[float, float]]]
    """95 % bootstrap intervals of the scores by length."""
    kinds: Table
    words: Table
    """F₁ of words by their frequency."""
    sizes: Mapping[str, int]
    """Number of sentences of each slice by length or kind."""
    sentences: Sequence[Sentence]
    sliced_by: Literal["source", "reference"] = "source"
    """The text whose length and kind define the slices: `source` or `reference`."""

    @property
    def systems(self) -> list[str]:
        """The names, the first system first."""
        return list(self.scores)

    def differing(self) -> list[Sentence]:
        """Return the sentences whose outputs differ, from the largest gain of the last system to its largest loss."""
        different = [sentence for sentence in self.sentences if len(set(sentence.outputs.values())) > 1]
        return sorted(different, key=lambda sentence: (-sentence.gain, sentence.number))

    def facts(self, examples: int = 10) -> dict[str, Any]:
        """Return all fields as plain data for JSON, with this many of the largest gains and losses."""
        different = self.differing()
        significance = {
            name: {metric: comparison.facts() for metric, comparison in found.items()}
            for name, found in self.significance.items()
        }
        return {
            "systems": {name: dict(score.values) for name, score in self.scores.items()},
            "signatures": dict(self.scores[self.systems[0]].signatures),
            "significance": significance,
            "correction": {"method": "holm", "tests": len(self.significance)},
            "sliced_by": self.sliced_by,
            "by_length": {name: dict(row) for name, row in self.lengths.items()},
            "by_length_95": {name: dict(row) for name, row in self.bands.items()},
            "by_kind": {name: dict(row) for name, row in self.kinds.items()},
            "word_f1_by_frequency": {name: dict(row) for name, row in self.words.items()},
            "slice_metric": self.main,
            "slice_sizes": dict(self.sizes),
            "differing": len(different),
            "gains": [sentence.facts() for sentence in different[:examples] if sentence.gain > 0],
            "losses": [sentence.facts() for sentence in different[::-1][:examples] if sentence.gain < 0],
        }

    def __str__(self) -> str:
        return "\n\n".join(
            [
                columns([("", *self.systems), *self._scores()], right=range(1, len(self.systems) + 1)),
                "\n".join(self.verdicts()),
                *(f"{title}\n{self._slices(table)}" for title, table in self.tables()),
                self._examples(),
            ]
        )

    def tables(self) -> list[tuple[str, Table]]:
        """Return the slices with their titles."""
        main = label(self.main)
        return [
            (f"{main} by length of the {self.sliced_by}, in words", self.lengths),
            (f"{main} by kind of sentence (of the {self.sliced_by})", self.kinds),
            ("F1 of words by their frequency", self.words),
        ]

    def verdicts(self) -> list[str]:
        """Describe each difference: its size, interval, p-values and significance."""
        several = len(self.significance) > 1
        found = []
        for system, metrics in self.significance.items():
            for metric, comparison in metrics.items():
                called = "significant" if comparison.significant else "not significant"
                raw = f"p {comparison.bootstrap:.3f} by bootstrap, {comparison.randomisation:.3f} by randomisation"
                corrected = (
                    f"; corrected {comparison.bootstrap_corrected:.3f} and {comparison.randomisation_corrected:.3f}"
                )
                found.append(
                    f"{label(metric)}, {system} against {self.systems[0]}: {comparison.difference:+.2f} "
                    f"(95 %: {comparison.low:+.2f} to {comparison.high:+.2f}), {called} "
                    f"({raw}{corrected if several else ''})"
                )
        if several:
            count = len(self.significance)
            found.append(f"Both tests are two-sided; p-values are corrected for {count} systems by Holm's method.")
        else:
            found.append("Both tests are two-sided; one comparison, so no correction is needed.")
        return found

    def _scores(self) -> list[tuple[str, ...]]:
        metrics = self.scores[self.systems[0]].values
        return [(label(metric), *(f"{score[metric]:.2f}" for score in self.scores.values())) for metric in metrics]

    def _slices(self, table: Table) -> str:
        rows = [("", *self.systems, "")]
        for name, row in table.items():
            count = f"({self.sizes[name]:,})" if table is not self.words else ""
            rows.append((name, *(f"{row[system]:.1f}" for system in self.systems), count))
        return columns(rows, right=range(1, len(self.systems) + 2), indent="  ")

    def _examples(self) -> str:
        different = self.differing()
        lines = [f"{len(different):,} of {len(self.sentences):,} sentences differ"]
        gains = [sentence for sentence in different if sentence.gain > 0][:EXAMPLES]
        losses = [sentence for sentence in different[::-1] if sentence.gain < 0][:EXAMPLES]
        for title, some in (("gain", gains), ("loss", losses)):
            for sentence in some:
                lines.append(f"  {title} of {self.systems[-1]} (line {sentence.number}, {sentence.gain:+.1f} chrF)")
                texts = [("source", sentence.source)] if sentence.source else []
                lines.append(
                    columns([*texts, ("reference", sentence.reference), *sentence.outputs.items()], indent="    ")
                )
        return "\n".join(lines)


def compare(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str | Sequence[str]],
    metrics: Sequence[str] | None = None,
    *,
    sources: Sequence[str] | None = None,
    sliced_by: Literal["source", "reference"] = "source",
    counts: Mapping[str, int] | None = None,
    language: str = "other",
    samples: int = 1000,
    seed: int = 1,
) -> Comparison:
    """Compare two or more systems, each with the first.

    Without `metrics` they are BLEU and chrF, or exact match and chrF for references of fewer than four words.
    Slices are by the source, or by the first reference where sources are missing or no sentences (`sliced_by`); the
    result says which. Without `counts` (word counts, such as those of the training data), words are counted in the
    references.
    """
    if len(systems) < 2:
        raise UsageError("A comparison needs at least two systems.")
    if metrics is None:
        metrics = ("exact", "chrf") if are_short(references) else ("bleu", "chrf")
    if not metrics:
        raise UsageError("A comparison needs at least one metric.")
    outputs = list(systems.values())
    several = check(outputs[0], references)
    for texts in outputs:
        check(texts, references)
    firsts = [texts[0] for texts in several]
    makers = make([*metrics, SENTENCE_METRIC], language)
    found = {
        name: {metric: maker.statistics(outputs, several) for metric, maker in makers.items()}
        for name, outputs in systems.items()
    }
    baseline, *others = systems
    sliced = sources if sources is not None and sliced_by == "source" else firsts
    lengths, kinds = by_length(sliced), by_kind(sliced)
    main = metrics[0]
    rows = {name: statistics[main] for name, statistics in found.items()}
    tested = {
        metric: correct(
            {
                name: compare_statistics(
                    makers[metric], found[baseline][metric], found[name][metric], samples=samples, seed=seed
                )
                for name in others
            }
        )
        for metric in metrics
    }
    f1 = {name: word_f1(outputs, several, counts or frequencies(firsts)) for name, outputs in systems.items()}
    return Comparison(
        scores={name: score_text(outputs, several, metrics, language=language) for name, outputs in systems.items()},
        significance={name: {metric: tested[metric][name] for metric in metrics} for name in others},
        main=main,
        lengths=_table(lengths, rows, makers[main]),
        bands={
            name: {
                system: confidence(makers[main], statistics[list(places)], seed=seed)
                for system, statistics in rows.items()
            }
            for name, places in lengths.items()
        },
        kinds=_table(kinds, rows, makers[main]),
        words={name: {system: row[name] for system, row in f1.items()} for name in f1[baseline]},
        sizes={name: len(places) for name, places in [*lengths.items(), *kinds.items()]},
        sentences=_sentences(sources or [""] * len(firsts), several, systems, found, makers[SENTENCE_METRIC]),
        sliced_by="source" if sliced is sources else "reference",
    )


def _table(slices: Slices, rows: Mapping[str, Statistics], metric: Metric) -> Table:
    return {
        name: {system: metric.score(found[list(places)].sum(0)) for system, found in rows.items()}
        for name, places in slices.items()
    }


def _sentences(
    sources: Sequence[str],
    references: References,
    systems: Mapping[str, Sequence[str]],
    found: Mapping[str, Mapping[str, Statistics]],
    metric: Metric,
) -> list[Sentence]:
    return [
        Sentence(
            number=index + 1,
            source=sources[index],
            reference=references[index][0],
            outputs={name: outputs[index] for name, outputs in systems.items()},
            scores={name: metric.score(rows[SENTENCE_METRIC][index]) for name, rows in found.items()},
        )
        for index in range(len(sources))
    ]
