"""Experiment trackers, which receive the measurements of a run in addition to its `metrics.jsonl`.

A tracker is called when training starts or resumes, with every line of the journal, and at the end.
`training.trackers` names those of a run; `regard.extensions.tracker` adds your own.
"""

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from regard.config.run import RunConfig
from regard.foundation.errors import UsageError
from regard.foundation.installation import install_command
from regard.runs.run import Run


class Tracker(ABC):
    """Receives the measurements of one run, on its first process."""

    package: str | None = None
    """The package that it needs, which is also the name of the extra; checked before training begins."""

    def __init__(self, run: Run, config: RunConfig) -> None:
        self.run, self.config = run, config

    @abstractmethod
    def begin(self, step: int) -> None:
        """Begin, or resume after a step: what was recorded after it no longer counts."""

    @abstractmethod
    def add(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        """Record measurements; `kind` is `train`, `validation`, `result` (the final weights) or `test`."""

    def close(self) -> None:  # noqa: B027 (most have nothing to close)
        """Write what is left."""


class TensorBoard(Tracker):
    """Events in the run's `tensorboard/` directory."""

    package = "tensorboard"
    _writer: Any = None

    def begin(self, step: int) -> None:
        """Open the directory; events after `step` are hidden."""
        from torch.utils.tensorboard import SummaryWriter

        make: Any = SummaryWriter
        self._writer = make(str(self.run.directory / "tensorboard"), purge_step=step + 1)

    def add(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        """Write one event for each value."""
        for name, value in values.items():
            self._writer.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Flush the events."""
        if self._writer:
            self._writer.close()


class WeightsAndBiases(Tracker):
    """A run in the project `regard` of Weights & Biases; its own settings are environment variables (WANDB_MODE, …)."""

    package = "wandb"
    _run: Any = None

    def begin(self, step: int) -> None:
        """Start the run, or continue the one of the same directory."""
        import wandb

        self._run = wandb.init(
            project="regard",
            name=self.run.name,
            dir=str(self.run.directory),
            config=self.config.model_dump(mode="json"),
            id=self.run.info["created"].translate({ord(letter): "-" for letter in ":+."}),
            resume="allow",
        )

    def add(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        """Log the values at their step."""
        self._run.log({f"{kind}/{name}": value for name, value in values.items()}, step=step)

    def close(self) -> None:
        """End the run."""
        if self._run:
            self._run.finish()


class MLflow(Tracker):
    """A run in the experiment `regard` of MLflow; MLFLOW_TRACKING_URI is its address."""

    package = "mlflow"
    _mlflow: Any = None

    def begin(self, step: int) -> None:
        """Start a run with the settings as parameters."""
        import mlflow

        self._mlflow = mlflow
        mlflow.set_experiment("regard")
        mlflow.start_run(run_name=self.run.name)
        settings = _flatten(self.config.model_dump(mode="json", exclude_none=True))
        for first in range(0, len(settings), 100):  # the most that a tracking server accepts at once
            mlflow.log_params(dict(list(settings.items())[first : first + 100]))

    def add(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        """Log the values at their step."""
        self._mlflow.log_metrics({f"{kind}/{name}": value for name, value in values.items()}, step=step)

    def close(self) -> None:
        """End the run."""
        if self._mlflow:
            self._mlflow.end_run()


TRACKERS: dict[str, type[Tracker]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases, "mlflow": MLflow}
"""Trackers by the name that `training.trackers` gives them."""


def wanted_trackers(config: RunConfig) -> list[str]:
    """Return the names of a run's trackers; `training.tensorboard=true` is one of them."""
    return list(dict.fromkeys([*config.training.trackers, *["tensorboard"] * config.training.tensorboard]))


def require_trackers(config: RunConfig) -> None:
    """Raise `UsageError` for a tracker whose package is missing, before anything is trained."""
    for name in wanted_trackers(config):
        package = TRACKERS[name].package
        if package and importlib.util.find_spec(package) is None:
            raise UsageError(
                f"The tracker `{name}` needs the package {package}. Install it with "
                f"`{install_command(package)}`, or remove it from training.trackers."
            )


class Trackers:
    """The trackers of one run. One that fails is reported once and left out: it never stops training."""

    def __init__(self, trackers: Sequence[Tracker], warn: Callable[[str], None]) -> None:
        self._trackers, self._warn = list(trackers), warn

    def begin(self, step: int) -> None:
        """Begin, or resume after a step."""
        self._each(lambda tracker: tracker.begin(step))

    def add(self, kind: str, step: int, facts: Mapping[str, Any]) -> None:
        """Record the numbers of a line of the journal."""
        values = {
            name: float(value)
            for name, value in facts.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }
        self._each(lambda tracker: tracker.add(kind, step, values))

    def close(self) -> None:
        """End all of them."""
        self._each(lambda tracker: tracker.close())

    def _each(self, call: Callable[[Tracker], None]) -> None:
        for tracker in list(self._trackers):
            try:
                call(tracker)
            except Exception as error:  # whatever a tracker's library raises
                self._trackers.remove(tracker)
                name = type(tracker).__name__
                reason = f"{type(error).__name__}: {str(error)[:200]}"
                self._warn(f"The tracker {name} failed ({reason}) and gets no more measurements. Training continues.")


def _flatten(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested settings by their dotted paths."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        path = f"{prefix}{name}"
        found |= _flatten(value, f"{path}.") if isinstance(value, Mapping) and value else {path: value}
    return found
