"""Progress display of training: a live view on a terminal, a few plain lines elsewhere."""

import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

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
    """The figures to show after a step."""

    step: int
    total: int
    loss: float
    rate: float
    """Learning rate."""
    tokens_per_second: float
    skipped: int
    unit: str = "token"
    """The unit of the mean loss and of the speed."""
    smoothing: float = 0.0
    """Label smoothing in `loss`."""
    plain_loss: float | None = None
    """The loss as validation measures it: without label smoothing and other terms of the objective."""

    @property
    def speed(self) -> str:
        """The speed as text."""
        return f"{self.tokens_per_second:,.0f} {self.unit.split()[-1]}s/s"

    @property
    def losses(self) -> str:
        """The loss as text; if the objective is another one, such as the label-smoothed loss, both."""
        if self.plain_loss is None or math.isclose(self.loss, self.plain_loss, rel_tol=1e-4, abs_tol=5e-4):
            return f"loss {self.loss:.3f}"
        return f"{'smoothed loss' if self.smoothing else 'objective'} {self.loss:.3f}, loss {self.plain_loss:.3f}"


class View:
    """Interface of views; this one shows nothing, for all ranks but the first."""

    early_samples: ClassVar[int] = 0
    """How many outputs to show before the first validation, the first of them seconds after the start."""

    def say(self, text: str) -> None:
        """Show a line."""

    def warn(self, text: str) -> None:
        """Show a warning."""

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """Show the progress of data preparation."""

    def facts(self, title: str, facts: Mapping[str, str]) -> None:
        """Show a small table, such as the data or the model."""

    def start(self, step: int, total: int) -> None:
        """Show that training starts, or continues after a step."""

    def moment(self, moment: Moment) -> None:
        """Show the figures after a step."""

    def sampled(self, step: int, sample: Sample) -> None:
        """Show an output of the model, before the first validation."""

    def validated(self, line: Mapping[str, Any], samples: Sequence[Sample]) -> None:
        """Show the result of a validation."""

    def close(self) -> None:
        """End the display."""


class LinesView(View):
    """A few plain lines on standard error, for pipes and log files."""

    early_samples = 1

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._stage = ""
        self._last = 0.0

    def say(self, text: str) -> None:
        """Show a line."""
        self.console.print(Text(text), soft_wrap=True)

    def warn(self, text: str) -> None:
        """Show a warning."""
        self.console.print(Text(f"warning: {text}", style="yellow"), soft_wrap=True)

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """Show one line for each stage."""
        if stage != self._stage:
            self._stage = stage
            self.say(f"{stage} …")

    def facts(self, title: str, facts: Mapping[str, str]) -> None:
        """Show one line for each table."""
        self.say(f"{title}: " + ", ".join(f"{name} {value}" for name, value in facts.items()))

    def start(self, step: int, total: int) -> None:
        """Show that training starts, or continues after a step."""
        self._last = time.monotonic()
        self.say(f"training: step {step + 1:,} to {total:,}")

    def moment(self, moment: Moment) -> None:
        """Show a line every 30 seconds."""
        if time.monotonic() - self._last >= LINES_EVERY:
            self._last = time.monotonic()
            self.say(f"step {moment.step:,}/{moment.total:,}  {moment.losses}  {moment.speed}")

    def sampled(self, step: int, sample: Sample) -> None:
        """Show a line for the output."""
        self.say(f"sample at step {step:,}: {' '.join(sample.source.split())} → {' '.join(sample.output.split())}")

    def validated(self, line: Mapping[str, Any], samples: Sequence[Sample]) -> None:
        """Show a line for each validation, and one for a sample output."""
        self._last = time.monotonic()
        best = "  (best)" if line.get("best") else ""
        self.say(f"validation at step {line['step']:,}: {scores_line(line)}{best}")
        for sample in samples[:1]:
            self.say(f"  {' '.join(sample.source.split())} → {' '.join(sample.output.split())}")


class QuietView(LinesView):
    """Warnings only."""

    early_samples = 0

    def say(self, text: str) -> None:
        """Show nothing."""


class LiveView(View):
    """A progress bar, figures and a sample output, updated in place on a terminal."""

    early_samples = 8

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
        self._sampled_at = 0

    def say(self, text: str) -> None:
        """Show a line above the live view."""
        self.console.print(Text(text))

    def warn(self, text: str) -> None:
        """Show a yellow line above the live view."""
        self.console.print(Text(text, style="yellow"))

    def preparing(self, stage: str, done: int, total: int | None) -> None:
        """Show a progress bar for each stage."""
        if stage != self._stage or self._task is None:
            self._stage = stage
            self._begin(stage, total)
        if self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def facts(self, title: str, facts: Mapping[str, str]) -> None:
        """Show a small table above the live view."""
        self._stop()
        table = Table.grid(padding=(0, 2))
        for name, value in facts.items():
            table.add_row(Text(name, style="dim"), Text(value))
        self.console.print(Text(title, style="bold"), Padding(table, (0, 0, 1, 2)))

    def start(self, step: int, total: int) -> None:
        """Show that training starts, or continues after a step."""
        self._begin("training", total, step)

    def moment(self, moment: Moment) -> None:
        """Update the progress bar."""
        self._moment = moment
        if self._task is not None:
            self._bar.update(self._task, completed=moment.step, note=moment.speed)
        self._live.update(self._picture())

    def sampled(self, step: int, sample: Sample) -> None:
        """Update the sample."""
        self._samples, self._sampled_at = [sample], step
        self._live.update(self._picture())

    def validated(self, line: Mapping[str, Any], samples: Sequence[Sample]) -> None:
        """Update the figures and the sample."""
        self._validation, self._samples, self._sampled_at = line, samples, line["step"]
        best = "  (best)" if line.get("best") else ""
        self.console.print(Text(f"step {line['step']:,}: {scores_line(line)}{best}", style="dim"))
        self._live.update(self._picture())

    def close(self) -> None:
        """Remove the progress bar; lines above it stay."""
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
                Text(f"{self._moment.losses}, learning rate {self._moment.rate:.2g}{skipped}"),
            )
        if self._validation:
            rows.add_row(Text("validation", style="dim"), Text(scores_line(self._validation)))
        for sample in self._samples[:1]:
            right = sample.output == sample.reference
            rows.add_row(Text("sample", style="dim"), Text(f"at step {self._sampled_at:,}", style="dim"))
            rows.add_row(Text("source", style="dim"), _clip(sample.source))
            rows.add_row(Text("reference", style="dim"), _clip(sample.reference))
            rows.add_row(Text("model", style="dim"), _clip(sample.output, "green" if right else "cyan"))
        return Group(self._bar, Padding(rows, (0, 2)))


def default_view() -> View:
    """Return the live view on a terminal, plain lines elsewhere, warnings only if the user asked for quiet."""
    if is_quiet():
        return QuietView()
    return LiveView() if sys.stderr.isatty() else LinesView()


def scores_line(line: Mapping[str, Any]) -> str:
    """Format the scores of a validation on one line."""
    loss, perplexity = line.get("loss"), line.get("perplexity")
    parts = [] if loss is None else [f"loss {loss:.3f}" if math.isfinite(loss) else "loss not finite"]
    if perplexity is not None:
        parts.append(f"perplexity {perplexity:.2f}" if perplexity < 1e6 else f"perplexity {perplexity:.1e}")
    parts += [
        f"{NAMES[metric]} {format_score(metric, line[metric])}"
        for metric in line
        if metric in NAMES and line[metric] is not None
    ]
    return ", ".join(parts) or "nothing to measure"


def _clip(text: str, style: str = "") -> Text:
    """Return text on one line, with line breaks replaced."""
    return Text(" ".join(text.split()), style=style, no_wrap=True, overflow="ellipsis")
