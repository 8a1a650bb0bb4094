"""The model card of a run, its README.md: usage, scores, samples and training."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import regard
from regard.config.run import RunConfig
from regard.data.corpus import Pair
from regard.data.corpus import describe as describe_corpus
from regard.foundation import durable
from regard.foundation.device import describe
from regard.metrics.scoring import NAMES, format_score
from regard.runs.run import Run
from regard.tasks.judgement import Judgement
from regard.tasks.preparation import Prepared
from regard.tasks.task import Task
from regard.text.joined import TAB
from regard.training.progress import Progress
from regard.training.summary import duration, parameters_by_part, short
from regard.training.validation import Validation

SAMPLES = 5


@dataclass(frozen=True, kw_only=True)
class Card:
    """The content of a card."""

    run: Run
    config: RunConfig
    model: nn.Module
    task: Task
    prepared: Prepared
    progress: Progress
    device: torch.device
    choice: str
    validation: Validation
    test: Judgement | None
    baseline: Mapping[str, Any] | str | None = None
    """The scores of a linear model on the same data, or why there are none."""


def write_card(card: Card) -> None:
    """Write the card of a run atomically."""
    durable.write(card.run.card, "\n".join(_lines(card)) + "\n")


def _lines(card: Card) -> Iterator[str]:
    yield f"# {card.run.name}"
    yield ""
    yield f"{card.config.task.title}: {card.config.cell}. Trained with Regard {regard.__version__}."
    yield ""
    yield "## Usage"
    yield ""
    place = str(card.run.directory)
    usage = card.task.output.usage(place, Pair(*map(_texts, card.prepared.validation_pairs[0])))
    yield f"```\n{usage.shell}\n```"
    yield ""
    yield f"```python\n{usage.python}\n```"
    yield ""
    yield "## Scores"
    yield ""
    yield from _scores(card)
    yield ""
    yield "## Samples"
    yield ""
    yield f"Some validation {card.task.noun}, without selection:"
    yield ""
    yield from _table(
        ("source", "reference", "model"),
        [(s.source, s.reference, s.output) for s in card.validation.samples[:SAMPLES]],
    )
    yield ""
    if (card.run.directory / "curves.png").is_file():
        yield "![Loss and validation scores over the steps](curves.png)"
        yield ""
    yield "## Training"
    yield ""
    yield from _table(("", ""), list(_facts(card)))
    yield ""
    yield "All settings are in [config.yaml](config.yaml), all measurements in [metrics.jsonl](metrics.jsonl)."


def _scores(card: Card) -> Iterator[str]:
    validation, output, noun = card.validation.scores, card.task.output, card.task.noun
    tests = card.test.scores if card.test else None
    rows = [("loss", f"{card.validation.loss:.3f}", "")]
    if output.has_perplexity:
        perplexity = card.validation.perplexity
        rows.append(("perplexity", "–" if perplexity is None else _format_perplexity(perplexity), ""))
    for metric, value in validation.values.items():
        if metric in NAMES:
            test = format_score(metric, tests[metric]) if tests and metric in tests.values else ""
            rows.append((NAMES[metric], format_score(metric, value), test))
    rows += _baseline_rows(card)
    if card.test:
        yield from _table(("", "validation", "test"), rows)
    else:
        yield from _table(("", "validation"), [row[:2] for row in rows])
    yield ""
    tested = f", the test scores to all {tests.sentences:,} test {noun}" if tests else ""
    losses = (
        f"Loss ({output.loss_name}) and perplexity belong"
        if output.has_perplexity
        else f"Loss ({output.loss_name}) belongs"
    )
    beam = card.config.decoding.beam
    search = (f"; beam {beam}" if beam > 1 else "; greedy") if card.config.task.output_kind().decoder else ""
    scored = f", the scores to {validation.sentences:,} of them{tested}{search}" if validation.values else ""
    yield f"{losses} to all {len(card.prepared.validation_pairs):,} validation {noun}{scored}."
    if isinstance(card.baseline, str):
        yield card.baseline
    elif card.baseline:
        name, count = card.baseline["name"], card.baseline["examples"]
        yield f"The linear model ({name}) was fitted on {count:,} of the same training {noun}."
    if card.prepared.report.overlap:
        yield f"Warning: {card.prepared.report.overlap:,} validation {noun} also occur in the training data."
    for metric in ("bleu", "chrf"):
        if signature := validation.signatures.get(metric):
            yield f"{NAMES[metric]} by sacrebleu: `{signature}`."
    for table in (card.test or card.validation.judgement).tables:
        yield ""
        yield f"{table.title}:"
        yield ""
        yield from _table(table.head, table.rows)


def _baseline_rows(card: Card) -> list[tuple[str, str, str]]:
    """Return the scores of the linear model as rows of the table of scores."""
    if card.baseline is None or isinstance(card.baseline, str):
        return []
    parts = [card.baseline.get(part, {}) for part in ("validation", "test")]
    names = {metric: name for metric, name in NAMES.items() if metric in parts[0]}
    rows = []
    for metric, name in names.items():
        validation, test = (format_score(metric, part[metric]) if metric in part else "" for part in parts)
        rows.append((f"{name}, linear model", validation, test))
    return rows


def _format_perplexity(perplexity: float) -> str:
    return f"{perplexity:.2f}" if perplexity < 1e6 else f"{perplexity:.1e}"


def _facts(card: Card) -> Iterator[tuple[str, str]]:
    config, progress, report = card.config, card.progress, card.prepared.report
    parts = ", ".join(f"{name} {short(count)}" for name, count in parameters_by_part(card.model).items())
    total = short(sum(parameters_by_part(card.model).values()))
    yield "parameters", f"{total}: {parts}"
    yield "vocabulary", card.task.describe()
    kept = f"{report.train:,} {card.task.noun} of {report.pairs:,}"
    yield "training data", f"{describe_corpus(config.data.train)}: {kept}"
    if report.dropped:
        yield "dropped", ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.items())
    early = " (stopped early)" if progress.stopped_early else ""
    skipped = f", {progress.skipped:,} skipped as not finite" if progress.skipped else ""
    yield "steps", f"{progress.step:,} of at most {config.training.steps:,}{early}{skipped}"
    yield "weights", card.choice
    if pruned := card.run.info.get("pruned"):
        yield "pruned", _pruning(pruned)
    yield "time", duration(progress.seconds)
    yield "speed", f"{progress.tokens_per_second:,.0f} {card.task.output.unit}s a second in updates"
    processes = f", {progress.world_size} processes" if progress.world_size > 1 else ""
    yield "device", f"{describe(card.device)}{processes}"
    yield "seed", str(config.training.seed)


def _pruning(facts: Mapping[str, Any]) -> str:
    """Describe how a run was pruned."""
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
    """Escape text for a Markdown table cell."""
    line = _line(text)
    for sign in "\\`*_|<>[]":
        line = line.replace(sign, f"\\{sign}")
    return line


def _texts(text: str) -> str:
    """Put each of the texts, which are separated by tabs, on one line."""
    return TAB.join(map(_line, text.split(TAB)))


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"
