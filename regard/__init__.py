"""Regard: sequence-to-sequence models you can see through.

import regard
model = regard.load("runs/dates")
model("Saturday 09 May 2018")            # Text('2018-05-09', score=-0.01)
model.translate(["9. Mai 2018"])         # ['2018-05-09']
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.foundation.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.api.experiment import Experiment
    from regard.api.model import Model
    from regard.config.run import RunConfig

__all__ = ["RegardError", "UsageError", "load", "prepare", "train"]
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """Import `regard.extensions` when it is first used."""
    if name == "extensions":
        from importlib import import_module

        return import_module("regard.extensions")
    raise AttributeError(f"module 'regard' has no attribute {name!r}")


def load(run: Path | str, overrides: Sequence[str] = (), *, step: int | None = None) -> Any:
    """Open a trained run of any task, or a bundle of runs.

    Args:
        run: The directory of the run.
        overrides: Settings for this use of the run, such as "decoding.beam=3".
        step: Open the checkpoint of this training step instead of the finished model.

    Returns:
        The model (`regard.api.model.Model`), or for a bundle of suggested replies its `Suggester`. Call it with an
        input, or with a list of inputs.

    Raises:
        UsageError: The directory is not a run, or a setting does not exist.
    """
    from regard.runs.bundle import is_bundle
    from regard.runs.run import Run

    _check_path(run)
    if is_bundle(run):
        from regard.api.bundles import open_bundle

        return open_bundle(run, overrides)
    opened = Run.open(run)  # before torch is imported: a mistyped name is reported at once
    from regard.api.model import load as load_model

    return load_model(opened, overrides, step=step)


def train(
    config: "Mapping[str, Any] | RunConfig | Path | str", run: Path | str, overrides: Sequence[str] = ()
) -> "Model":
    """Train a configuration in a new run directory, and open the run.

    Args:
        config: A YAML file, the name of a recipe, a mapping, or a `RunConfig`.
        run: The directory of the run, which must not exist yet.
        overrides: Settings as on the command line, such as "training.steps=2000".

    Returns:
        The trained model.
    """
    from regard.api.model import train as train_model

    _check_path(run)
    return train_model(config, run, overrides)


def prepare(
    config: "Mapping[str, Any] | RunConfig | Path | str", run: Path | str, overrides: Sequence[str] = ()
) -> "Experiment":
    """Prepare the data of a configuration in a new run directory, for a training loop of your own.

    Args:
        config: A YAML file, the name of a recipe, a mapping, or a `RunConfig`.
        run: The directory of the run, which must not exist yet.
        overrides: Settings as on the command line.

    Returns:
        The experiment: task, batches, and a method that saves the trained model.
    """
    from regard.api.experiment import prepare_experiment

    _check_path(run)
    return prepare_experiment(config, run, overrides)


def _check_path(run: object) -> None:
    """Refuse what cannot be the name of a run directory."""
    if not isinstance(run, str | Path):
        raise UsageError(f"A run is named by its directory, as a text or a Path, not by {type(run).__name__}.")
