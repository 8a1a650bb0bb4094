"""Scores of runs that do not translate: labels, numbers, tags, masked words, plain text.

Examples are scored by the same code as validation during training, so that the numbers are the same.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import TypeAdapter
from torch import nn

from regard.config.data import Corpus, kind_of_corpus
from regard.config.media_corpora import SoundFiles
from regard.config.run import RunConfig
from regard.data.corpus import Pair
from regard.data.store import TokenStore
from regard.foundation import durable
from regard.foundation.display import columns
from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.metrics.scoring import NAMES, format_score
from regard.tasks.judgement import Judgement
from regard.tasks.preparation import stored
from regard.tasks.task import Task
from regard.tasks.training_corpus import read_checked

CHUNK = 512
"""Examples per update of the progress bar."""

ENDINGS = {
    ".conllu": "conllu",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".csv": "table",
    ".xlsx": "table",
    ".parquet": "table",
}
"""File formats that are recognised by their ending, regardless of the run's training data."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The answers to some examples and their scores."""

    noun: str
    """Name of the examples, in the plural."""
    judgement: Judgement
    """Scores of the answers, and tables such as confusions."""
    lines: Sequence[str] | None
    """The answers, one line each; `None` if there are none."""
    loss: float | None = None
    """Mean loss, if a model was evaluated."""
    loss_name: str = ""
    """The unit of the loss, such as nats per text."""
    perplexity: float | None = None
    """exp(loss), for tasks for which that is a perplexity."""
    notes: Sequence[str] = ()
    """Remarks on examples that could not be read whole, as whole sentences."""
    calibrated: tuple[float, float] | None = None
    """The loss of the calibrated probabilities, and their temperature."""
    baseline: Mapping[str, float] | None = None
    """Scores of the linear baseline on the same examples, computed when the run was trained."""

    def facts(self) -> dict[str, Any]:
        """Return all scores, details and tables as plain data for JSON."""
        scores = self.judgement.scores
        facts: dict[str, Any] = {
            self.noun: scores.sentences,
            "scores": dict(scores.values),
            "details": {metric: dict(parts) for metric, parts in scores.details.items()},
            "tables": [
                {"title": table.title, "head": table.head, "rows": list(table.rows)} for table in self.judgement.tables
            ],
        }
        if self.notes:
            facts["notes"] = list(self.notes)
        if self.baseline:
            facts["baseline"] = dict(self.baseline)
        if self.calibrated is not None:
            facts |= {"calibrated_loss": self.calibrated[0], "temperature": self.calibrated[1]}
        if self.loss is None:
            return facts
        return facts | {"loss": self.loss, "loss_name": self.loss_name, "perplexity": self.perplexity}

    def __str__(self) -> str:
        scores = self.judgement.scores
        rows = [[NAMES[metric], format_score(metric, value, 2), ""] for metric, value in scores.values.items()]
        rows += [
            [f"{NAMES[metric]}, linear", format_score(metric, value, 2), "a linear model of the same data"]
            for metric, value in (self.baseline or {}).items()
        ]
        if honest := scores.details.get("calibration"):
            note = f"expected error in per cent; mean probability of answers {honest['mean_probability']:.1f} %"
            rows.append(["calibration", f"{honest['expected_error']:.2f}", note])
        if self.loss is not None:
            rows.append(["loss", f"{self.loss:.4f}", self.loss_name])
        if self.calibrated is not None:
            note = f"of the calibrated probabilities, at temperature {self.calibrated[1]:.2f}"
            rows.append(["calibrated loss", f"{self.calibrated[0]:.4f}", note])
        if self.perplexity is not None:
            rows.append(["perplexity", f"{self.perplexity:.2f}", ""])
        parts = ["\n".join([columns(rows, right=[1]), f"{scores.sentences:,} {self.noun}", *self.notes])]
        for table in self.judgement.tables:
            right = range(1, len(table.head))
            parts.append(f"{table.title}:\n\n{columns([table.head, *table.rows], right=right, indent='  ')}")
        return "\n\n".join(parts)

    def save(self, directory: Path) -> None:
        """Write `hypotheses.txt` and `scores.json`: the file, scored again, gives the same numbers."""
        directory.mkdir(parents=True, exist_ok=True)
        if self.lines is not None:
            durable.write(directory / "hypotheses.txt", "".join(f"{line}\n" for line in self.lines))
        durable.write(directory / "scores.json", json.dumps(self.facts(), indent=2, ensure_ascii=False) + "\n")


def judge_run(task: Task, model: nn.Module, pairs: Sequence[Pair], *, progress: Progress | None = None) -> Judged:
    """Answer examples with a run, and score the answers as validation does."""
    from regard.training.validation import mean_loss

    lines, unread = _answers(task, model, pairs, progress) if task.output.gives_answers else (None, 0)
    judgement = task.output.judge(model, pairs, thorough=True) if lines is None else task.output.grade(lines, pairs)
    loss = None
    with TemporaryDirectory() as place:
        longest = task.kind.cleaning.max_length
        task.gather(pairs, Path(place))
        cut = stored(enumerate(pairs), task, longest, Path(place) / "store", scored=True)
        if pairs:
            batches = task.batches(TokenStore(Path(place) / "store"))
            mean = mean_loss(task, model, batches, device=next(model.parameters()).device)
            loss = None if math.isnan(mean) else mean
    notes = []
    if cut and loss is not None:
        notes.append(
            f"{len(cut):,} of {len(pairs):,} {task.noun} have more than {longest:,} tokens. Their loss is that of "
            f"the first {longest:,}."
        )
    if unread:
        notes.append(
            f"{unread:,} of {len(pairs):,} {task.noun} are longer than this model can read at once. They were "
            "answered from the part that fits."
        )
    return Judged(
        noun=task.noun,
        judgement=judgement,
        lines=lines,
        notes=notes,
        loss=loss,
        loss_name=task.output.loss_name,
        calibrated=task.output.calibrated_loss(model, pairs),
        perplexity=math.exp(min(loss, 700.0)) if task.output.has_perplexity and loss is not None else None,
    )


def judge_lines(task: Task, lines: Sequence[str], pairs: Sequence[Pair]) -> Judged:
    """Score given answers."""
    if len(lines) != len(pairs):
        raise UsageError(f"There are {len(lines):,} answers for {len(pairs):,} examples. The numbers must be equal.")
    return Judged(noun=task.noun, judgement=task.output.grade(lines, pairs), lines=lines)


def read_examples(task: Task, paths: Sequence[Path]) -> list[Pair]:
    """Read examples in the format of a run's training data; errors name the line."""
    found = list(read_checked(corpus_like(task.config, paths), task.kind))
    for location, pair in found:
        task.check(pair, location)
    return [pair for _, pair in found]


def check_examples(task: Task, pairs: Sequence[Pair], path: Path) -> list[Pair]:
    """Return the examples if all are valid; raises with the line of the first that is not."""
    for number, pair in enumerate(pairs, start=1):
        if problem := task.kind.problem(pair):
            raise UsageError(f"{path}:{number} {problem}")
        task.check(pair, f"{path}:{number}")
    return list(pairs)


def corpus_like(config: RunConfig, paths: Sequence[Path]) -> Corpus:
    """Return files as a corpus, in the format of the run's training data or in that of their ending."""
    train, names = config.data.train, [str(path) for path in paths]
    own = kind_of_corpus(train)
    endings = {ENDINGS[end] for path in paths for end in path.suffixes if end in ENDINGS}
    if own == "table":
        endings = {"table" if ending == "tsv" else ending for ending in endings}  # the columns are those of the run
    by_ending = next(iter(endings & set(config.task.corpora)), None) if len(endings) == 1 else None
    kind = by_ending or own
    if kind == own and train.listing is not None:
        return train.model_copy(update={train.listing: names})
    if "sounds" in config.task.corpora and endings and endings <= {"tsv", "jsonl", "table"}:
        return SoundFiles(sounds=str(paths[0].parent), manifest=names)  # of a run that was trained without a manifest
    if by_ending is None:
        wanted = " or ".join(end for end, sort in ENDINGS.items() if sort in config.task.corpora)
        ending = f", or a file that ends in {wanted}" if wanted else ""
        raise UsageError(f"{names[0]} has an unknown format. Name --source and --reference files{ending}.")
    seconds: dict[str, dict[str, Any]] = {
        "tsv": {"second_column": 2, "target_column": 3},
        "jsonl": {"second_field": "second"},
        "table": {"second": "second"},
    }
    more = seconds.get(kind, {}) if train.texts > 1 else {}
    found: Corpus = TypeAdapter(Corpus).validate_python({kind: names, **more})
    return found


def _answers(task: Task, model: nn.Module, pairs: Sequence[Pair], progress: Progress | None) -> tuple[list[str], int]:
    """Return the answers of a model as lines, and the number of texts that it could not read whole."""
    lines: list[str] = []
    unread = 0
    for start in range(0, len(pairs), CHUNK):
        texts, cut = task.output.readable([pair.source for pair in pairs[start : start + CHUNK]])
        unread += cut
        lines += task.output.lines(model, texts)
        if progress:
            progress("answering", len(lines), len(pairs))
    return lines, unread
