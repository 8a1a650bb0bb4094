"""A short training on random text, to measure the time of an update and the memory of its activations."""

import os
import sys
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from regard.config.run import RunConfig
from regard.data.random_text import RandomText
from regard.foundation.device import choose_device, keep_freed
from regard.foundation.progress import Progress
from regard.planning.corpus_sample import Lengths
from regard.planning.memory import NUMBER, Measured, memory
from regard.tasks.task import Task, TaskKind
from regard.tasks.vocabularies import Vocabularies
from regard.training.gradient_threads import GradientThreads
from regard.training.trainer import Trainer

SECONDS = 10.0
"""Duration of the measurement on this machine."""
FEW = 1024
"""Tokens of the first timed batch, since a whole one may take minutes."""
MOST_UPDATES = 100


def measure_training(
    config: RunConfig,
    model: nn.Module,
    vocabulary: tuple[int, int],
    lengths: Lengths,
    progress: Progress | None = None,
) -> tuple[Measured | None, str]:
    """Train on random text for ten seconds; return the measurement, or `None` and the reason."""
    training = config.training
    device = choose_device(training.device)
    keep_freed()
    needed = 4 * NUMBER * sum(parameter.numel() for parameter in model.parameters())
    if device.type == "cpu" and needed > 0.6 * _free_memory():
        return None, f"it needs more than {needed / 1e9:.1f} GB, which are not free"
    config = config.model_copy(update={"training": training.model_copy(update={"accumulate": 1})})
    start = time.monotonic()
    tokens = min(training.batch_tokens, FEW)
    trainer = _trainer(config, vocabulary, lengths, tokens, device)
    _time_updates(trainer, 1)  # warm-up
    once = _time_updates(trainer, 1)
    if tokens < training.batch_tokens and once * training.batch_tokens / tokens < SECONDS / 4:
        trainer.close()
        trainer = _trainer(config, vocabulary, lengths, training.batch_tokens, device)
        _time_updates(trainer, 1)
        once = _time_updates(trainer, 1)
    left = SECONDS - (time.monotonic() - start)
    count = max(1, min(MOST_UPDATES, int(left / max(once, 1e-6))))
    seconds = _time_updates(trainer, count, progress)
    peak = _peak_memory()
    kept = _kept_bytes(trainer)  # last, since it runs in one thread, which changes the memory use
    trainer.close()
    tokens = trainer.batches.tokens
    scale = training.batch_tokens / tokens
    program = max(peak - sum(memory(config, model, None).values()) - kept, 0.0) if device.type == "cpu" else 0.0
    return Measured(seconds * scale * training.accumulate, count, tokens, kept * scale, program), ""


def _trainer(
    config: RunConfig, vocabulary: tuple[int, int], lengths: Lengths, tokens: int, device: torch.device
) -> Trainer:
    batches: Any = RandomText(vocabulary, lengths.each or [(lengths.source, lengths.target)], tokens)
    source, target = (SimpleNamespace(size=size) for size in vocabulary)
    known: Any = {"source": source, "target": target}
    return Trainer(config, Task(TaskKind.of(config), Vocabularies(**known)), batches, device=device)


def _time_updates(trainer: Trainer, updates: int, progress: Progress | None = None) -> float:
    """Return the mean seconds per update."""
    start = time.monotonic()
    for done in range(updates):
        if progress is not None:
            progress("measuring this machine", done, updates)
        trainer.update()
    return (time.monotonic() - start) / updates


def _kept_bytes(trainer: Trainer) -> float:
    """Return the bytes that autograd saves for one batch, without parameters, each storage counted once."""
    own = {parameter.untyped_storage().data_ptr() for parameter in trainer.model.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = max(kept.get(storage.data_ptr(), 0), storage.nbytes())
        return tensor

    threads, trainer.threads = trainer.threads, GradientThreads(1)  # tensors saved by other threads would be missed
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        trainer.update()
    trainer.threads = threads
    return float(sum(kept.values()))


def _peak_memory() -> float:
    """Return the peak memory of this process in bytes; 0 if the system does not report it."""
    if sys.platform == "win32":
        return 0.0
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)


def _free_memory() -> float:
    """Return the free memory in bytes; infinity if it is unknown."""
    with suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return float("inf")
