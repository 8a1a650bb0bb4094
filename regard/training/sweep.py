"""A grid of runs from one configuration: every combination of some settings, with mean and deviation over seeds.

The trials are ordinary runs in one directory. A finished trial is never trained again and an interrupted one is
resumed, so the same command continues a sweep, and the same command with more values extends it.
"""

import csv
import io
import itertools
import json
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.config.loading import load
from regard.config.run import RunConfig
from regard.foundation import durable
from regard.foundation.display import columns
from regard.foundation.errors import RegardError, UsageError
from regard.metrics.scoring import NAMES
from regard.runs.run import Run
from regard.training.interruption import Interrupted
from regard.training.loop import train
from regard.training.outcome import Outcome, known_outcome

SEED = "training.seed"
"""The setting that scores are averaged over."""
MOST_TRIALS = 1000


@dataclass(frozen=True)
class Trial:
    """One combination of settings."""

    settings: Mapping[str, str]
    """Values as text, by path."""
    config: RunConfig
    directory: Path

    @property
    def overrides(self) -> list[str]:
        """The settings as on the command line."""
        return [f"{path}={value}" for path, value in self.settings.items()]


@dataclass(frozen=True)
class Row:
    """The trials that differ only in their seed."""

    settings: Mapping[str, str]
    seeds: int
    scores: Mapping[str, tuple[float, float | None]]
    """Mean and sample standard deviation (`None` with one seed) by the name of a score."""


@dataclass(frozen=True)
class SweepResult:
    """The scores of the trials of a sweep."""

    rows: Sequence[Row]
    failed: Mapping[str, str] = field(default_factory=dict)
    """Trials that could not be trained, with the reason."""

    @property
    def head(self) -> list[str]:
        """The names of the columns: settings, number of seeds, scores."""
        paths = dict.fromkeys(path for row in self.rows for path in row.settings)
        return [*paths, "seeds", *dict.fromkeys(name for row in self.rows for name in row.scores)]

    def table(self, plus_minus: str = "±") -> list[list[str]]:
        """Return the rows as text, a score as `mean ± deviation`."""
        paths = list(dict.fromkeys(path for row in self.rows for path in row.settings))
        names = list(dict.fromkeys(name for row in self.rows for name in row.scores))
        return [
            [*(row.settings.get(path, "") for path in paths), str(row.seeds)]
            + [_score(name, row.scores[name], plus_minus) if name in row.scores else "" for name in names]
            for row in self.rows
        ]

    def __str__(self) -> str:
        head = short_names(self.head)
        right = range(len(next(iter(self.rows)).settings) if self.rows else 0, len(head))
        return columns([head, *self.table()], right=list(right))

    def to_json(self) -> dict[str, Any]:
        """Return everything that the table shows."""
        rows = [
            {
                "settings": dict(row.settings),
                "seeds": row.seeds,
                "scores": {name: {"mean": mean, "deviation": spread} for name, (mean, spread) in row.scores.items()},
            }
            for row in self.rows
        ]
        return {"rows": rows, "failed": dict(self.failed)}

    def to_csv(self) -> str:
        """Return the table as CSV, means and deviations in columns of their own."""
        names = list(dict.fromkeys(name for row in self.rows for name in row.scores))
        paths = list(dict.fromkeys(path for row in self.rows for path in row.settings))
        stream = io.StringIO()
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow([*paths, "seeds", *itertools.chain.from_iterable((name, f"{name} deviation") for name in names)])
        for row in self.rows:
            scores = [row.scores.get(name, (None, None)) for name in names]
            rows.writerow([*(row.settings.get(path) for path in paths), row.seeds, *itertools.chain(*scores)])
        return stream.getvalue()

    def to_latex(self) -> str:
        """Return the table as LaTeX with booktabs rules."""
        settings = len(next(iter(self.rows)).settings) if self.rows else 0
        align = "l" * settings + "r" * (len(self.head) - settings)
        lines = [f"\\begin{{tabular}}{{{align}}}", "\\toprule"]
        lines += [" & ".join(_escape_latex(name) for name in short_names(self.head)) + " \\\\", "\\midrule"]
        for row in self.table("±"):
            lines.append(" & ".join(_escape_latex(cell).replace("±", "$\\pm$") for cell in row) + " \\\\")
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])

    def save(self, directory: Path) -> list[Path]:
        """Write the table as text, CSV, LaTeX, JSON and, if matplotlib is installed, PNG; return the files."""
        written = {
            "sweep.txt": f"{self}\n",
            "sweep.csv": self.to_csv(),
            "sweep.tex": self.to_latex(),
            "results.json": json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n",
        }
        for name, text in written.items():
            durable.write(directory / name, text)
        from regard.training.curves import can_draw

        if self.rows and can_draw():
            from regard.training.sweep_picture import draw_sweep

            draw_sweep(self, directory / "sweep.png")
            return [*(directory / name for name in written), directory / "sweep.png"]
        return [directory / name for name in written]


def plan_trials(config: Path, settings: Sequence[str], directory: Path) -> list[Trial]:
    """Return the trials of a grid, each with its checked configuration.

    Args:
        config: The YAML file that all trials share.
        settings: `key.path=value,value,…`; a setting with one value is the same in all trials.
        directory: Where their runs are.
    """
    axes: dict[str, list[str]] = {}
    for setting in settings:
        path, equals, text = setting.partition("=")
        values = list(dict.fromkeys(split_values(text)))
        if not equals or not path.strip() or not values:
            raise UsageError(f"`{setting}` is not a setting. Write key.path=value,value, such as model.width=128,256.")
        if path.strip() in axes:
            raise UsageError(f"{path.strip()} is given twice. Write its values after one `=`, with commas.")
        axes[path.strip()] = values
    count = math.prod(len(values) for values in axes.values())
    if count > MOST_TRIALS:
        raise UsageError(f"This grid has {count:,} trials, and a sweep at most {MOST_TRIALS:,}. Give fewer values.")
    varied = [path for path, values in axes.items() if len(values) > 1]
    trials = []
    for combination in itertools.product(*axes.values()):
        chosen = dict(zip(axes, combination, strict=True))
        overrides = [f"{path}={value}" for path, value in chosen.items()]
        shown = {path: chosen[path] for path in varied or axes}
        trials.append(Trial(shown, load(config, overrides), directory / _directory_name(shown)))
    return trials


def run_sweep(
    trials: Sequence[Trial],
    *,
    begin: Callable[[int, Trial], None] | None = None,
    end: Callable[[Trial, Outcome | RegardError], None] | None = None,
) -> SweepResult:
    """Train the trials one after another and summarise them; a trial that fails does not stop the others."""
    for trial in trials:
        _check_directory(trial)
    outcomes: list[tuple[Trial, Outcome]] = []
    failed: dict[str, str] = {}
    for number, trial in enumerate(trials, start=1):
        if begin:
            begin(number, trial)
        try:
            outcome = _train(trial)
        except Interrupted:
            raise
        except RegardError as error:
            failed[trial.directory.name] = str(error)
            if end:
                end(trial, error)
            continue
        outcomes.append((trial, outcome))
        if end:
            end(trial, outcome)
    return summarise(outcomes, failed)


def summarise(outcomes: Sequence[tuple[Trial, Outcome]], failed: Mapping[str, str] | None = None) -> SweepResult:
    """Group trials that differ only in their seed, and compute mean and deviation of their scores."""
    groups: dict[tuple[tuple[str, str], ...], list[Outcome]] = {}
    for trial, outcome in outcomes:
        key = tuple((path, value) for path, value in trial.settings.items() if path != SEED)
        groups.setdefault(key, []).append(outcome)
    rows = []
    for key, group in groups.items():
        scores: dict[str, list[float]] = {}
        for outcome in group:
            for name, value in _final_scores(outcome):
                scores.setdefault(name, []).append(value)
        spread = {
            name: (statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else None)
            for name, values in scores.items()
        }
        rows.append(Row(dict(key), len(group), spread))
    return SweepResult(rows, failed or {})


def split_values(text: str) -> Iterator[str]:
    """Split values at commas that are not inside quotes, brackets or braces."""
    depth, quote, value = 0, "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{(":
            depth += 1
        elif letter in "]})":
            depth -= 1
        if letter == "," and not depth and not quote:
            yield value.strip()
            value = ""
        else:
            value += letter
    if value.strip():
        yield value.strip()


def _check_directory(trial: Trial) -> None:
    """Raise an error for a directory that contains a run of another configuration, before anything is trained."""
    if not (trial.directory / "run.json").exists():
        Run.refuse_occupied(trial.directory)
    elif _training_settings(Run.open(trial.directory).config) != _training_settings(trial.config):
        raise UsageError(
            f"{trial.directory} is a run of another configuration. Name another directory with --run, or delete it."
        )


def _train(trial: Trial) -> Outcome:
    if not (trial.directory / "run.json").exists():
        return train(trial.config, trial.directory)
    run = Run.open(trial.directory)
    if run.info.get("status") == "finished":
        return known_outcome(run, already=True)
    return train(trial.config, trial.directory, resume=True)


def _training_settings(config: RunConfig) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude={"decoding": True, "training": {"device", "trackers", "tensorboard"}})


def _final_scores(outcome: Outcome) -> Iterator[tuple[str, float]]:
    """Yield the validation loss, and the scores on test data, or on validation data without test data."""
    if isinstance(loss := outcome.validation.get("loss"), int | float):
        yield "validation loss", float(loss)
    part, values = ("test", outcome.test) if outcome.test else ("validation", outcome.validation)
    for name, value in values.items():
        if name in NAMES and isinstance(value, int | float):
            yield f"{part} {name}", float(value)


def _score(name: str, score: tuple[float, float | None], plus_minus: str) -> str:
    mean, spread = score
    digits = 3 if name.endswith(("loss", "squared_error", "perplexity")) else 1
    return f"{mean:.{digits}f}" if spread is None else f"{mean:.{digits}f} {plus_minus} {spread:.{digits}f}"


def short_names(paths: Sequence[str]) -> list[str]:
    """Return the shortest unique ends of paths: `width` for `model.width`."""
    short = []
    for path in paths:
        parts = path.split(".")
        ends = (".".join(parts[-size:]) for size in range(1, len(parts) + 1))
        short.append(next((end for end in ends if sum(f".{other}".endswith(f".{end}") for other in paths) == 1), path))
    return short


def _directory_name(settings: Mapping[str, str]) -> str:
    """Return a readable directory name: `width-128_seed-1`."""
    names = short_names(list(settings))
    parts = (f"{name}-{value}" for name, value in zip(names, settings.values(), strict=True))
    name = "_".join("".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in part) for part in parts)
    return name[:120].strip(".-") or "trial"


def _escape_latex(text: str) -> str:
    for letter in "&%$#_{}":
        text = text.replace(letter, f"\\{letter}")
    return text
