"""Scores of outputs or of a model, as `regard evaluate` computes them."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.data.corpus import Pair, group_references
from regard.evaluation.texts import translate_lines
from regard.foundation import durable
from regard.foundation.display import columns
from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.metrics.rouge import count_wordless
from regard.metrics.scoring import BLEU, SHORT, Scores, are_short, check, headline_metrics, label, make, score_text

if TYPE_CHECKING:
    from regard.config.run import RunConfig
    from regard.evaluation.likelihood import Perplexity, Position
    from regard.tasks.loaded import LoadedRun

PERPLEXITY = "perplexity"
"""The only metric that needs a model instead of a text."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The outputs of a system and their scores."""

    sentences: int
    """Number of examples."""
    outputs: Sequence[str] | None
    """`None` if no metric needs them."""
    scores: Scores
    """The score of every metric, with signatures and details."""
    perplexity: "Perplexity | None" = None
    """Perplexity of all references, if a model was evaluated."""
    positions: "Sequence[Position]" = ()
    """Perplexity by position."""
    noun: str = "sentences"
    """Name of the examples, in the plural."""
    notes: Sequence[str] = ()
    """Remarks that readers of the scores must know, as whole sentences."""

    def facts(self) -> dict[str, Any]:
        """Return all scores, signatures and details as plain data for JSON."""
        facts: dict[str, Any] = {
            self.noun: self.sentences,
            "scores": dict(self.scores.values),
            "signatures": dict(self.scores.signatures),
            "details": {metric: dict(parts) for metric, parts in self.scores.details.items()},
        }
        if self.notes:
            facts["notes"] = list(self.notes)
        if self.perplexity:
            facts |= {
                PERPLEXITY: self.perplexity.facts(),
                "positions": [asdict(position) for position in self.positions],
            }
        return facts

    def __str__(self) -> str:
        rows = []
        for metric, value in self.scores.values.items():
            rows.append((label(metric), f"{value:.2f}", self.scores.signatures.get(metric, "")))
            if metric.partition(":")[0] == BLEU:
                rows.append(("", "", _bleu_parts(self.scores.details[metric])))
        if perplexity := self.perplexity:
            parts = f"per token; {perplexity.per_word:.2f} per word, {perplexity.per_character:.3f} per character"
            rows.append((PERPLEXITY, f"{perplexity.per_token:.2f}", parts))
            rows.append(("", "", f"by position: {self._by_position()}"))
        return "\n".join([columns(rows, right=[1]), f"{self.sentences:,} {self.noun}", *self.notes])

    def _by_position(self) -> str:
        from regard.evaluation.likelihood import position_line

        return position_line(self.positions)

    def save(self, directory: Path) -> None:
        """Write `hypotheses.txt` and `scores.json`; scoring the file again gives the same numbers."""
        directory.mkdir(parents=True, exist_ok=True)
        if self.outputs is not None:
            durable.write(directory / "hypotheses.txt", "".join(f"{output}\n" for output in self.outputs))
        durable.write(directory / "scores.json", json.dumps(self.facts(), indent=2, ensure_ascii=False) + "\n")


def with_references(config: "RunConfig", pairs: Sequence[Pair]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the sources and references of examples; a task with several references scores each source once."""
    if config.task.several_references:
        return group_references(pairs)
    return [pair.source for pair in pairs], [(pair.target,) for pair in pairs]


def default_metrics(config: "RunConfig", references: Sequence[str | Sequence[str]]) -> Sequence[str]:
    """Return the default metrics of a run that writes text, which depend on its task and its references."""
    answers = ("exact", "f1") if config.data.train.texts > 1 else ()
    return config.task.metrics or answers or headline_metrics(references)


def evaluate_text(
    outputs: Sequence[str], references: Sequence[str | Sequence[str]], metrics: Sequence[str], language: str = "other"
) -> Evaluation:
    """Score any system's outputs."""
    if PERPLEXITY in metrics:
        raise UsageError(
            "Perplexity needs a model, not only outputs. Name a run, or leave perplexity out of --metrics."
        )
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
    from regard.evaluation.likelihood import (  # imports torch, which scoring text does not need
        by_position,
        likelihoods,
        longer_than_readable,
        total,
    )

    of_text = [metric for metric in metrics if metric != PERPLEXITY]
    make(of_text, language)  # raises before translation, which may take an hour
    several = check(sources, references)
    outputs = translate_lines(translator, sources, beam=beam, progress=progress) if of_text else None
    scores = Scores(values={}) if outputs is None else score_text(outputs, several, of_text, language=language)
    scored, positions = None, []
    notes = [*_notes(references, metrics), *_source_notes(translator, sources)]
    if PERPLEXITY in metrics:
        pairs = [(source, reference) for source, some in zip(sources, several, strict=True) for reference in some]
        asked, wanted = map(list, zip(*pairs, strict=True))
        cut = longer_than_readable(translator, asked, wanted)
        if cut:
            notes.append(
                f"{cut:,} of {len(pairs):,} pairs are longer than this model can read at once. Their perplexity is "
                "that of the first tokens that fit."
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
    """Return the perplexity of texts by a language model, with its sliding window."""
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
    """Return remarks on the metrics for these references."""
    if tuple(metrics) == SHORT and are_short(references):
        return ["BLEU is omitted: the references have fewer than four words on average, and BLEU counts four-grams."]
    if any(metric in (BLEU, f"{BLEU}:13a") for metric in metrics) and are_short(references):
        return [
            "BLEU is not meaningful here: the references have fewer than four words on average, and it counts "
            "four-grams. Prefer exact match and chrF."
        ]
    if any(metric.startswith("rouge") for metric in metrics):
        texts = [text for some in references for text in ((some,) if isinstance(some, str) else some)]
        if wordless := count_wordless(texts):
            return [
                f"ROUGE counts only the letters a to z and digits, and {wordless:,} of {len(texts):,} references have "
                "none of these. Use chrF instead (--metrics chrf)."
            ]
    return []


def _source_notes(translator: "LoadedRun", sources: Sequence[str]) -> list[str]:
    """Return remarks on sources that are empty or too long to be read at once."""
    lengths = [len(ids) for ids in translator.source_tokenizer.encode_batch(sources)]
    most = min(translator.input.trained_length, translator.config.data.cleaning.max_length)
    empty, long = sum(not length for length in lengths), sum(length > most for length in lengths)
    found = []
    if empty:
        found.append(f"{empty:,} of {len(sources):,} sources are empty. Their translation is empty and is scored.")
    if long and translator.config.task.cuts_long_sources:
        found.append(
            f"{long:,} of {len(sources):,} sources have more than {most:,} tokens. Only the first {most:,} of each "
            "were read (data.cleaning.max_length)."
        )
    elif long and translator.config.data.train.texts == 1 and translator.config.task.similar_lengths:
        found.append(
            f"{long:,} of {len(sources):,} sources have more than {most:,} tokens, the longest in the "
            "training data. They were translated in parts and are scored."
        )
    return found


def _bleu_parts(details: Any) -> str:
    precisions = "/".join(f"{details[f'precision-{n}']:.1f}" for n in range(1, 5))
    shorter = ", ".join(f"BLEU-{n} {details[f'bleu-{n}']:.1f}" for n in range(1, 4))
    lengths = f"{details['hypothesis-words']:,.0f} words for {details['reference-words']:,.0f}"
    return f"precisions {precisions}; {shorter}; brevity {details['brevity-penalty']:.3f} ({lengths})"
