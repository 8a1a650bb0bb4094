"""The parts of training for your own training loop: prepared data, batches, and a run directory for the model."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from regard.api.model import Model, load, resolve_config
from regard.config.run import RunConfig
from regard.foundation.weights import weights_of
from regard.models import Model as WritingModel
from regard.models.encoder_model import EncoderModel
from regard.runs.run import Run
from regard.tasks.preparation import Prepared, prepare
from regard.tasks.task import Task
from regard.tasks.training_batch import TrainingBatch


class Experiment:
    """A run whose data is prepared and whose model you train yourself.

    `task.build()` builds the model, `batches` yields training batches, and `task.output.loss` computes the loss of a
    batch. `save` writes a finished run that every command can use.
    """

    def __init__(self, run: Run, prepared: Prepared) -> None:
        self.run = run
        self.prepared = prepared

    @property
    def config(self) -> RunConfig:
        """The configuration of the run."""
        return self.prepared.task.config

    @property
    def task(self) -> Task:
        """The task, with its tokenizers and labels."""
        return self.prepared.task

    def batches(self, random: torch.Generator, device: torch.device | str = "cpu") -> Iterator[TrainingBatch]:
        """Yield training batches without end, in the order of `regard train`; `random` is used for added noise."""
        place = torch.device(device)
        for batch, _ in self.task.batches(self.prepared.train, training=True).after():
            yield self.task.training_batch(batch, random, training=True).to(place)

    def save(self, model: WritingModel | EncoderModel, *, steps: int = 0) -> Model:
        """Write the trained model to the run directory, and load the run."""
        model.eval()
        calibration = self.task.output.calibrate(model, self.prepared.validation_pairs)
        self.run.note(
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            tokenizers={
                name: {"fingerprint": vocabulary.fingerprint, "vocabulary": vocabulary.size}
                for name, vocabulary in self.task.vocabularies.by_name.items()
            },
        )
        self.run.save_weights(weights_of(model))
        choice = f"weights of a custom training loop{f'; {calibration.note}' if calibration else ''}"
        command = self.task.output.next_command(str(self.run.directory))
        self.run.note(status="finished", step=steps, steps=steps, result={"choice": choice, "next": command})
        return load(self.run.directory)


def prepare_experiment(
    config: Mapping[str, Any] | RunConfig | Path | str, run: Path | str, overrides: Sequence[str] = ()
) -> Experiment:
    """Prepare the data of a configuration in a new run directory."""
    resolved = resolve_config(config, overrides)
    directory = Path(run)
    Run.create(directory, resolved)
    opened = Run.open(directory)
    prepared = prepare(resolved, directory)
    opened.record("tokenizers", "data")
    return Experiment(opened, prepared)
