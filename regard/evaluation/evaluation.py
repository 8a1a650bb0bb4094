"""From outputs, or from a model, to an honest score: what `regard evaluate` computes."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.evaluation.texts import translated
from regard.foundation import durable
from regard.foundation.display import columns
from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.metrics.scoring import BLEU, SHORT, Scores, are_short, check, headline_metrics, label, make, score_text

if TYPE_CHECKING:
    from regard.config.run import RunConfig
    from regard.evaluation.likelihood import Perplexity, Position
    from regard.tasks.loaded import LoadedRun

PERPLEXITY = "perplexity"
"""The one metric that is a model's and not a text's."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The outputs of a system and how good they are."""

    sentences: int
    outputs: Sequence[str] | None
    """`None` if no metric needed any."""
    scores: Scores
    perplexity: "Perplexity | None" = None
    """Of the references (of all of them, if there are several), where a model was asked."""
    positions: "Sequence[Position]" = ()
    """The same by position."""
    noun: str = "sentences"
    """What was scored is called so."""
    notes: Sequence[str] = ()
    """What a reader of the scores must know, in sentences."""

    def facts(self) -> dict[str, Any]:
        """Return all scores, signatures and details, as JSON knows them."""
        facts: dict[str, Any] = {
            self.noun: self.sentences,
            "scores": dict(self.scores.values),
            "signatures": dict(self.scores.signatures),
            "details": {metric: dict(parts) for metric, parts in self.scores.details.items()},
        }
        if self.notes:
            facts["notes"] = list(self.notes)
        if self.perplexity:
            facts |= {PERPLEXITY: self.perplexity.facts(), "positions": [asdict(one) for one in self.positions]}
        return facts

    def __str__(self) -> str:
        rows = []
        for metric, value in self.scores.values.items():
            rows.append((label(metric), f"{value:.2f}", self.scores.signatures.get(metric, "")))
            if metric.partition(":")[0] == BLEU:
                rows.append(("", "", _bleu_parts(self.scores.details[metric])))
        if one := self.perplexity:
            parts = f"per token; {one.per_word:.2f} per word, {one.per_character:.3f} per character"
            rows.append((PERPLEXITY, f"{one.per_token:.2f}", parts))
            rows.append(("", "", f"by position: {self._by_position()}"))
        return "\n".join([columns(rows, right=[1]), f"{self.sentences:,} {self.noun}", *self.notes])

    def _by_position(self) -> str:
        from regard.evaluation.likelihood import position_line

        return position_line(self.positions)

    def save(self, directory: Path) -> None:
        """Write `hypotheses.txt` and `scores.json`: the file, scored again, gives the same numbers."""
        directory.mkdir(parents=True, exist_ok=True)
        if self.outputs is not None:
            durable.write(directory / "hypotheses.txt", "".join(f"{output}\n" for output in self.outputs))
        durable.write(directory / "scores.json", json.dumps(self.facts(), indent=2, ensure_ascii=False) + "\n")


def default_metrics(config: "RunConfig", references: Sequence[str | Sequence[str]]) -> Sequence[str]:
    """Return the metrics of a run that writes text, where none are named: those of answers, or those that suit the texts."""
    return ("exact", "f1") if config.data.train.texts > 1 else headline_metrics(references)


def evaluate_text(
    outputs: Sequence[str], references: Sequence[str | Sequence[str]], metrics: Sequence[str], language: str = "other"
) -> Evaluation:
    """Score any system's outputs."""
    if PERPLEXITY in metrics:
        raise UsageError("Perplexity is a model's, not a text's. Name a run, or leave perplexity out of --metrics.")
    scores = score_text(outputs, references, metrics, language=language)
    return Evaluation(sentences=len(outputs), outputs=outputs, scores=scores, notes=_notes(references, metrics))


def evaluate_run(
    translator: "LoadedRun",
    sources: Sequence[str],
    references: Sequence[str | Sequence[str]],
    metrics: Sequence[str],
    language: str = "other",
    *,
    beam: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Translate, score the translations, and, if `perplexity` is among the metrics, the references."""
    from regard.evaluation.likelihood import (  # torch, which scoring mere text does not need
        by_position,
        likelihoods,
        longer_than_readable,
        total,
    )

    of_text = [metric for metric in metrics if metric != PERPLEXITY]
    make(of_text, language)  # what is impossible is told before an hour of translating
    several = check(sources, references)
    outputs = translated(translator, sources, beam=beam, progress=progress) if of_text else None
    scores = Scores(values={}) if outputs is None else score_text(outputs, several, of_text, language=language)
    scored, positions = None, []
    notes = [*_notes(references, metrics), *_read_in_part(translator, sources)]
    if PERPLEXITY in metrics:
        pairs = [(source, one) for source, some in zip(sources, several, strict=True) for one in some]
        asked, wanted = map(list, zip(*pairs, strict=True))
        cut = longer_than_readable(translator, asked, wanted)
        if cut:
            notes.append(
                f"{cut:,} of {len(pairs):,} pairs are longer than this model can read at once: perplexity is that of "
                "as many of their first tokens as it can."
            )
        found = likelihoods(translator, asked, wanted, cut=True, progress=progress)
        scored, positions = total(found), by_position(found)
    return Evaluation(
        sentences=len(sources),
        outputs=outputs,
        scores=scores,
        perplexity=scored,
        positions=positions,
        notes=notes,
    )


def evaluate_texts(writer: "LoadedRun", texts: Sequence[str], *, progress: Progress | None = None) -> Evaluation:
    """Return what a language model thinks of texts: their perplexity through its sliding window."""
    from regard.evaluation.likelihood import by_position, total
    from regard.evaluation.perplexity import text_likelihoods

    found = text_likelihoods(writer, texts, progress=progress)
    empty = Scores(values={})
    return Evaluation(
        sentences=len(texts),
        outputs=None,
        scores=empty,
        perplexity=total(found),
        positions=by_position(found),
        noun="documents",
    )


def _notes(references: Sequence[str | Sequence[str]], metrics: Sequence[str]) -> list[str]:
    """Return what must be said of the metrics on these references."""
    if tuple(metrics) == SHORT and are_short(references):
        return ["BLEU is left out: the references have fewer than four words on average, and BLEU counts four-grams."]
    if any(metric in (BLEU, f"{BLEU}:13a") for metric in metrics) and are_short(references):
        return [
            "BLEU is not meaningful here: the references have fewer than four words on average, and it counts "
            "four-grams. Prefer exact match and chrF."
        ]
    return []


def _read_in_part(translator: "LoadedRun", sources: Sequence[str]) -> list[str]:
    """Return what must be said of sources that are empty or too long to be read whole."""
    lengths = [len(ids) for ids in translator.source_tokenizer.encode_batch(sources)]
    most = min(translator.input.trained_length, translator.config.data.cleaning.max_length)
    empty, long = sum(not length for length in lengths), sum(length > most for length in lengths)
    found = []
    if empty:
        found.append(f"{empty:,} of {len(sources):,} sources are empty: their translation is empty, and is scored.")
    if long and translator.config.data.train.texts == 1:
        found.append(
            f"{long:,} of {len(sources):,} sources have more than {most:,} tokens, the longest that the model has "
            "learnt from: they were translated piece by piece, and are scored."
        )
    return found


def _bleu_parts(details: Any) -> str:
    precisions = "/".join(f"{details[f'precision-{n}']:.1f}" for n in range(1, 5))
    shorter = ", ".join(f"BLEU-{n} {details[f'bleu-{n}']:.1f}" for n in range(1, 4))
    lengths = f"{details['hypothesis-words']:,.0f} words for {details['reference-words']:,.0f}"
    return f"precisions {precisions}; {shorter}; brevity {details['brevity-penalty']:.3f} ({lengths})"
