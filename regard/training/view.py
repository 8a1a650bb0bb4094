"""What a person sees of a run while it learns: a live view on a terminal, a few plain lines elsewhere."""

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from regard.foundation.display import is_quiet
from regard.metrics.scoring import NAMES, format_score
from regard.tasks.judgement import Sample

LINES_EVERY = 30.0
"""Seconds between progress lines where there is no terminal."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What there is to see after a step."""

    step: int
    total: int
    loss: float
    rate: float
    """Learning rate."""
    tokens_per_second: float
    skipped: int
    unit: str = "token"
    """What the loss is a mean over, and the speed is counted in."""

    @property
    def speed(self) -> str:
        """The speed in words."""
        return f"{self.tokens_per_second:,.0f} {self.unit.split()[-1]}s/s"


class View:
    """Sees everything and shows nothing: what the other ranks of a run have."""

    def say(self, text: str) -> None:
        """A line worth reading."""

    def warn(self, text: str) -> None:
        """A line that must not be missed."""

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """How far the preparation of data has come."""

    def facts(self, title: str, facts: Mapping[str, str]) -> None:
        """A small table: the cleaning report, the model."""

    def start(self, step: int, total: int) -> None:
        """Training begins, or goes on behind a step."""

    def moment(self, moment: Moment) -> None:
        """A step was done."""

    def validated(self, line: Mapping[str, Any], samples: Sequence[Sample]) -> None:
        """A validation was done."""

    def close(self) -> None:
        """Nothing more will happen."""


class LinesView(View):
    """Plain lines on standard error, few of them: for pipes and log files."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._stage = ""
        self._last = 0.0

    def say(self, text: str) -> None:
        """A line worth reading."""
        self.console.print(Text(text), soft_wrap=True)

    def warn(self, text: str) -> None:
        """A line that must not be missed."""
        self.console.print(Text(f"warning: {text}", style="yellow"), soft_wrap=True)

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """One line for each stage."""
        if stage != self._stage:
            self._stage = stage
            self.say(f"{stage} …")

    def facts(self, title: str, facts: Mapping[str, str]) -> None:
        """One line for each table."""
        self.say(f"{title}: " + ", ".join(f"{name} {value}" for name, value in facts.items()))

    def start(self, step: int, total: int) -> None:
        """Training begins, or goes on behind a step."""
        self._last = time.monotonic()
        self.say(f"training: step {step + 1:,} to {total:,}")

    def moment(self, moment: Moment) -> None:
        """A line every so often."""
        if time.monotonic() - self._last >= LINES_EVERY:
            self._last = time.monotonic()
            self.say(f"step {moment.step:,}/{moment.total:,}  loss {moment.loss:.3f}  {moment.speed}")

    def validated(self, line: Mapping[str, Any], samples: Sequence[Sample]) -> None:
        """A line for each validation, and one for what the model now makes of a sentence."""
        self._last = time.monotonic()
        best = "  (best)" if line.get("best") else ""
        self.say(f"validation at step {line['step']:,}: {scores_line(line)}{best}")
        for sample in samples[:1]:
            self.say(f"  {' '.join(sample.source.split())} → {' '.join(sample.output.split())}")


class QuietView(LinesView):
    """Warnings only."""

    def say(self, text: str) -> None:
        """Show nothing."""


class LiveView(View):
    """A bar, the figures, and a translation that gets better, kept in place on a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            TimeRemainingColumn(compact=True),
            console=self.console,
            expand=True,
        )
        self._live = Live(console=self.console, refresh_per_second=4, transient=True)
        self._task: TaskID | None = None
        self._stage = ""
        self._moment: Moment | None = None
        self._validation: Mapping[str, Any] = {}
        self._samples: Sequence[Sample] = ()

    def say(self, text: str) -> None:
        """A line above the view."""
        self.console.print(Text(text))

    def warn(self, text: str) -> None:
        """A yellow line above the view."""
        self.console.print(Text(text, style="yellow"))

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """A bar for each stage."""
        if stage != self._stage or self._task is None:
            self._stage = stage
            self._begin(stage, total)
        if self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def facts(self, title: str, facts: Mapping[str, str]) -> None:
        """A small table above the view."""
        self._stop()
        table = Table.grid(padding=(0, 2))
        for name, value in facts.items():
            table.add_row(Text(name, style="dim"), Text(value))
        self.console.print(Text(title, style="bold"), Padding(table, (0, 0, 1, 2)))

    def start(self, step: int, total: int) -> None:
        """Training begins, or goes on behind a step."""
        self._begin("training", total, step)

    def moment(self, moment: Moment) -> None:
        """The bar moves."""
        self._moment = moment
        if self._task is not None:
            self._bar.update(self._task, completed=moment.step, note=moment.speed)
        self._live.update(self._picture())

    def validated(self, line: Mapping[str, Any], samples: Sequence[Sample]) -> None:
        """The figures and the sample change."""
        self._validation, self._samples = line, samples
        best = "  (best)" if line.get("best") else ""
        self.console.print(Text(f"step {line['step']:,}: {scores_line(line)}{best}", style="dim"))
        self._live.update(self._picture())

    def close(self) -> None:
        """The bar goes; what was said stays."""
        self._stop()

    def _stop(self) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
            self._task = None
        self._live.stop()

    def _begin(self, description: str, total: int | None, completed: int = 0) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(description, total=total, completed=completed, note="")
        self._live.update(self._picture())
        self._live.start()

    def _picture(self) -> RenderableType:
        rows = Table.grid(padding=(0, 2))
        if self._moment:
            skipped = f", {self._moment.skipped} steps skipped" if self._moment.skipped else ""
            rows.add_row(
                Text("training", style="dim"),
                Text(f"loss {self._moment.loss:.3f}, learning rate {self._moment.rate:.2g}{skipped}"),
            )
        if self._validation:
            rows.add_row(Text("validation", style="dim"), Text(scores_line(self._validation)))
        for sample in self._samples[:1]:
            right = sample.output == sample.reference
            rows.add_row(Text("source", style="dim"), _clipped(sample.source))
            rows.add_row(Text("reference", style="dim"), _clipped(sample.reference))
            rows.add_row(Text("model", style="dim"), _clipped(sample.output, "green" if right else "cyan"))
        return Group(self._bar, Padding(rows, (0, 2)))


def default_view() -> View:
    """Return the live view on a terminal, plain lines elsewhere, warnings only if the user asked for quiet."""
    if is_quiet():
        return QuietView()
    return LiveView() if sys.stderr.isatty() else LinesView()


def scores_line(line: Mapping[str, Any]) -> str:
    """A validation in a few words."""
    loss, puzzled = line.get("loss"), line.get("perplexity")
    parts = [] if loss is None else [f"loss {loss:.3f}" if math.isfinite(loss) else "loss not finite"]
    parts += [] if puzzled is None else [f"perplexity {puzzled:.2f}" if puzzled < 1e6 else f"perplexity {puzzled:.1e}"]
    parts += [
        f"{NAMES[metric]} {format_score(metric, line[metric])}"
        for metric in line
        if metric in NAMES and line[metric] is not None
    ]
    return ", ".join(parts) or "nothing to measure"


def _clipped(text: str, style: str = "") -> Text:
    """Text on one line, whatever stands in it."""
    return Text(" ".join(text.split()), style=style, no_wrap=True, overflow="ellipsis")
