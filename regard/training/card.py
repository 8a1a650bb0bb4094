"""The card of a run: what it is, what it learned from, how good it is, how to use it: its README.md."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import regard
from regard import durable
from regard.config.run import RunConfig
from regard.data.corpus import describe as describe_corpus
from regard.data.prepare import Prepared
from regard.device import describe
from regard.evaluation.metrics import NAMES, Scores
from regard.run import Run
from regard.training.progress import Progress, perplexity
from regard.training.summary import duration, parameters_by_part, short, vocabulary_fact
from regard.training.validation import Validation

SAMPLES = 5


@dataclass(frozen=True, kw_only=True)
class Card:
    """All that a card tells."""

    run: Run
    config: RunConfig
    model: nn.Module
    prepared: Prepared
    progress: Progress
    device: torch.device
    choice: str
    validation: Validation
    test: Scores | None


def write_card(card: Card) -> None:
    """Write the card of a run in one act."""
    durable.write(card.run.card, "\n".join(_lines(card)) + "\n")


def _lines(card: Card) -> Iterator[str]:
    yield f"# {card.run.name}"
    yield ""
    yield f"A sequence-to-sequence model: {card.config.model.cell}. Trained with Regard {regard.__version__}."
    yield ""
    yield "## Use it"
    yield ""
    place = str(card.run.directory)
    example = card.prepared.validation_pairs[0].source
    yield f"```\necho {shlex.quote(_line(example))} | regard translate {shlex.quote(place)}\n```"
    yield ""
    yield f"```python\nimport regard\n\nmodel = regard.load({place!r})\nmodel.translate({_line(example)!r})\n```"
    yield ""
    yield "## How good it is"
    yield ""
    yield from _scores(card)
    yield ""
    yield "## What it says"
    yield ""
    yield "The first validation sentences, not chosen:"
    yield ""
    yield from _table(
        ("source", "reference", "model"),
        [(s.source, s.reference, s.output) for s in card.validation.samples[:SAMPLES]],
    )
    yield ""
    if (card.run.directory / "curves.png").is_file():
        yield "![Loss and validation scores over the steps](curves.png)"
        yield ""
    yield "## How it came about"
    yield ""
    yield from _table(("", ""), list(_facts(card)))
    yield ""
    yield "All settings are in [config.yaml](config.yaml), all measurements in [metrics.jsonl](metrics.jsonl)."


def _scores(card: Card) -> Iterator[str]:
    beam = card.config.decoding.beam
    validation, sample = card.validation.scores, len(card.validation.samples)
    search = f"beam {beam}" if beam > 1 else "greedy"
    rows = [
        ("loss", f"{card.validation.loss:.3f}", ""),
        ("perplexity", _shown(perplexity(card.validation.loss)) if math.isfinite(card.validation.loss) else "–", ""),
    ]
    for metric, name in NAMES.items():
        test = f"{card.test[metric]:.1f}" if card.test else ""
        rows.append((name, f"{validation.values.get(metric, float('nan')):.1f}", test))
    if card.test:
        yield from _table(("", "validation", "test"), rows)
    else:
        yield from _table(("", "validation"), [row[:2] for row in rows])
    yield ""
    tested = f", the test scores to all {card.test.sentences:,} test pairs" if card.test else ""
    yield (
        f"Loss (nats per target token) and perplexity belong to all {len(card.prepared.validation_pairs):,} validation "
        f"pairs, the scores to {sample:,} of them{tested}; {search}."
    )
    if card.prepared.report.overlap:
        yield f"Beware: {card.prepared.report.overlap:,} validation pairs also occur in the training data."
    for metric, signature in validation.signatures.items():
        yield f"{NAMES[metric]} by sacrebleu: `{signature}`."


def _shown(puzzled: float) -> str:
    return f"{puzzled:.2f}" if puzzled < 1e6 else f"{puzzled:.1e}"


def _facts(card: Card) -> Iterator[tuple[str, str]]:
    config, progress, report = card.config, card.progress, card.prepared.report
    parts = ", ".join(f"{name} {short(count)}" for name, count in parameters_by_part(card.model).items())
    total = short(sum(parameters_by_part(card.model).values()))
    yield "parameters", f"{total}: {parts}"
    yield "tokenizers", vocabulary_fact(config, card.prepared)
    yield (
        "training data",
        f"{describe_corpus(config.data.train)}: {len(card.prepared.train):,} pairs of {report.pairs:,}",
    )
    if report.dropped:
        yield "dropped", ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.items())
    early = " (stopped early)" if progress.stopped_early else ""
    skipped = f", {progress.skipped:,} skipped as not finite" if progress.skipped else ""
    yield "steps", f"{progress.step:,} of at most {config.training.steps:,}{early}{skipped}"
    yield "weights", card.choice
    if pruned := card.run.info.get("pruned"):
        yield "pruned", _pruning(pruned)
    yield "time", duration(progress.seconds)
    yield "speed", f"{progress.tokens_per_second:,.0f} target tokens a second in updates"
    processes = f", {progress.world_size} processes" if progress.world_size > 1 else ""
    yield "device", f"{describe(card.device)}{processes}"
    yield "seed", str(config.training.seed)


def _pruning(facts: Mapping[str, Any]) -> str:
    """How a pruned run came about, in a sentence."""
    frozen = ", all but the encoder frozen" if facts["which"] == "encoder" else ""
    before = facts.get("before") or {}
    was = f" (which had BLEU {before['bleu']:.1f})" if before.get("bleu") is not None else ""
    return (
        f"from {facts['from']}{was}: {facts['kept']} of {facts['heads']} heads kept ({facts['which']}) by "
        f"hard-concrete gates, {facts['steps']:,} steps up to λ = {facts['price']:.3g}{frozen}; then the steps above"
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(_cell(value) for value in row) + " |"


def _cell(text: str) -> str:
    """Text that neither ends a table cell nor means anything in Markdown."""
    line = _line(text)
    for sign in "\\`*_|<>[]":
        line = line.replace(sign, f"\\{sign}")
    return line


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"
