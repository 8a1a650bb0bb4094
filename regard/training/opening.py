"""The run of a training as all ranks open it: they must agree on what they train and see the same directory."""

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

import regard
from regard.config.run import RunConfig
from regard.foundation.errors import RegardError, UsageError
from regard.runs.checkpoints import Checkpoint
from regard.runs.run import Run
from regard.training.continuation import check_continuation
from regard.training.ranks import Ranks

SMALL_SHARE = 1024
"""Tokens of a batch per process below which a larger batch is advised."""
SEEN_WITHIN = 20.0
"""Seconds after which every rank must see what rank 0 wrote; shared disks may cache directories for a while."""


def open_run(config: RunConfig, directory: Path, ranks: Ranks, *, resume: bool) -> Run:
    """Create the run on rank 0, or open it to be resumed; raises on all ranks if one does not see the directory."""

    def create() -> str:
        if not resume:
            Run.create(directory, config)
        check_continuation(Run.open(directory).config, config)
        return (directory / "run.json").read_text(encoding="utf-8")

    mark = ranks.decide(create)

    def see() -> Run:
        deadline = time.monotonic() + SEEN_WITHIN
        while not _has_text(directory / "run.json", mark):
            if time.monotonic() > deadline:
                raise RegardError(
                    f"This process does not see the run of rank 0 in {directory.absolute()}. All nodes must share the "
                    "disk of the run: name a directory on it with --run DIR."
                )
            time.sleep(0.2)
        return Run.open(directory)

    return ranks.agree(see)


def job() -> str | None:
    """Return the name of the torchrun job that this process belongs to, if it has one of its own."""
    name = os.environ.get("TORCHELASTIC_RUN_ID", "none")
    return None if name == "none" else name


def is_restarted(directory: Path) -> bool:
    """Return whether torchrun has restarted the job that trains a run, which then continues from its checkpoint."""
    if "TORCHELASTIC_RUN_ID" not in os.environ or not (directory / "run.json").is_file():
        return False
    if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0":
        return True
    return job() is not None and Run.open(directory).info.get("job") == job()


def facts_of_training(config: RunConfig, directory: Path, *, resume: bool) -> dict[str, Any]:
    """Return what must be the same in all processes of a training."""
    settings = dict(_flat(config.model_dump(mode="json")))
    settings.pop("training.device", None)
    return {
        "the version of Regard": regard.__version__,
        "the version of torch": torch.__version__,
        "the run": str(directory.absolute()),
        "--resume": resume,
        **settings,
    }


def refuse_unsupported(config: RunConfig, ranks: Ranks) -> None:
    """Raise if the processes cannot share a training as the configuration asks for."""
    training = config.training
    if ranks.world_size > 1 and training.parallel == "fsdp" and training.tune != "all":
        raise UsageError(
            f"training.tune `{training.tune}` changes which weights are trained, which training.parallel `fsdp` does "
            "not support. Use training.parallel=ddp, or training.tune=all."
        )


def advice(config: RunConfig, ranks: Ranks) -> str | None:
    """Return a sentence if the processes are used badly: too small a share of a batch, or nothing to divide."""
    training, count = config.training, ranks.world_size
    if count == 1 and training.parallel == "fsdp":
        return "training.parallel `fsdp` has no effect with one process. Start several with torchrun."
    if count > 1 and training.batch_tokens / count < SMALL_SHARE:
        return (
            f"The {count} processes share batches of {training.batch_tokens:,} tokens (training.batch_tokens, in all), "
            f"about {training.batch_tokens // count:,} each, which is little work between two exchanges of gradients. "
            "Use larger batches, and raise the learning rate with the square root of their size."
        )
    return None


def note_on_processes(checkpoint: Checkpoint, ranks: Ranks) -> str | None:
    """Return what differs if a run is resumed by another number of processes."""
    before, now = checkpoint.state.get("world_size"), ranks.world_size
    if before == now:
        return None
    return (
        f"This run was trained by {before} processes so far, and now by {now}. It continues with the same batches of "
        "examples; dropout and other random choices differ, so that it is not the same bit for bit."
    )


def process_facts(config: RunConfig, ranks: Ranks, how: str) -> dict[str, str]:
    """Return facts to show about the processes that share a training."""
    tokens = config.training.batch_tokens
    share = f"about {tokens // ranks.world_size:,} of {tokens:,}"
    return {"processes": str(ranks.world_size), "gradients": how, "tokens of a batch for each": share}


def begin_run(run: Run, config: RunConfig) -> None:
    """Record that a run is being trained, by which job, and its configuration."""
    if run.config != config:
        run.put_config(config)
    run.note(status="running", steps=config.training.steps, job=job())


def stop_run(run: Run, ranks: Ranks) -> None:
    """Record that a run has stopped before its end."""
    if ranks.first:
        try:
            run.note(status="stopped")
        except (OSError, RegardError):
            return  # the disk is full or gone: the original error is reported


def _flat(section: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all settings with their paths."""
    for name, value in section.items():
        place = f"{path}.{name}" if path else name
        if isinstance(value, Mapping):
            yield from _flat(value, place)
        else:
            yield place, value


def _has_text(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") == text
    except (OSError, UnicodeDecodeError):
        return False
