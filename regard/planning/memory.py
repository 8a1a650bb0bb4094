"""The memory of a training by part: weights, gradients, optimizer, activations."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from regard.config.run import RunConfig
from regard.foundation.device import choose_device
from regard.objectives.objective import CHUNK_ELEMENTS
from regard.training.gradient_threads import GradientThreads
from regard.training.optimizer import matrices

NUMBER = 4
"""Bytes of a 32-bit number."""


@dataclass(frozen=True)
class Measured:
    """Measurement of updates on this machine."""

    seconds: float
    """Mean seconds per update of the configuration."""
    updates: int
    """Number of timed updates."""
    tokens: int
    """Padded target tokens per update; if fewer than the configuration's, the time was scaled up."""
    activations: float
    """Bytes of activations for the backward pass of one batch."""
    program: float
    """Peak bytes of Python, torch and everything else; 0 if unknown."""


def memory(config: RunConfig, model: nn.Module, here: Measured | None) -> dict[str, float]:
    """Return peak bytes by part, in float32; activations only if they were measured."""
    size = sum(parameter.numel() for parameter in model.parameters()) * NUMBER
    optimizer = config.training.optimizer
    moments = 2 if optimizer.kind != "sgd" else int(optimizer.momentum > 0)
    spared = sum(matrix.numel() for matrix in matrices(model)) * NUMBER if optimizer.kind == "muon" else 0
    parts: dict[str, float] = {"weights": size, "gradients": size, "optimiser": moments * size - spared}
    if config.training.ema:
        parts["average"] = size
    vocabulary = len(model.get_parameter("output_bias"))
    shares = GradientThreads().size if choose_device(config.training.device).type == "cpu" else 1
    logits = config.training.batch_tokens * vocabulary // shares
    parts["logits"] = 2 * shares * min(CHUNK_ELEMENTS, logits) * NUMBER
    if here is not None:
        parts |= {"activations": here.activations, "program": here.program}
    return parts


def format_memory(memory: Mapping[str, float]) -> str:
    """Format bytes by part, in the unit that fits the total."""
    total = sum(memory.values())
    size, unit = (1e9, "GB") if total >= 1e9 else (1e6, "MB")
    parts = ", ".join(f"{name} {value / size:.3g}" for name, value in memory.items())
    return f"{total / size:.3g} {unit} ({parts})"
