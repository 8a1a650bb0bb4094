"""Estimates of the cost of a run before training: parameters, FLOPs, memory and time.

A matrix costs two FLOPs per parameter and token in the forward pass and four in the backward pass, so training costs 6
per parameter (Kaplan et al., 2020), plus attention. Axes: S source and T target positions.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import nn

from regard.config.cell import resolved
from regard.config.model import ConvDecoder, TransformerDecoder, TransformerEncoder
from regard.config.run import RunConfig
from regard.foundation.errors import UsageError
from regard.foundation.progress import Progress
from regard.models import build
from regard.planning.corpus_sample import Lengths, cleaning_warnings, first_pairs, lengths_of, vocabularies
from regard.planning.hardware import HARDWARE, Hardware, parse_devices
from regard.planning.measurement import measure_training
from regard.planning.memory import Measured, memory
from regard.training.summary import parameters_by_part

UTILISATION = 0.35
"""Default share of a GPU's peak that training reaches; with it, the estimates for the Transformer base and big models
are within 20 % of the published costs (3.3e18 and 2.3e19, counted as time × peak)."""


@dataclass(frozen=True)
class Elsewhere:
    """The same training on named hardware."""

    name: str
    devices: int
    hardware: Hardware
    utilisation: float
    seconds: float
    spent: float
    """FLOPs as capacity × time, as papers report them."""


@dataclass(frozen=True)
class Plan:
    """The estimated cost of a run."""

    cell: str
    vocabulary: tuple[int, int]
    lengths: Lengths
    parameters: dict[str, int]
    tokens: int
    """Largest number of target tokens per update."""
    updates: int
    flops_per_token: float
    """Training FLOPs per target token, including its source tokens."""
    flops: float
    """FLOPs of the whole training."""
    memory: dict[str, float]
    """Bytes by part."""
    here: Measured | None
    why_not_here: str
    elsewhere: list[Elsewhere]
    warnings: list[str] = field(default_factory=list)
    """Problems that would stop the training, estimated from the first pairs."""

    def memory_on(self, devices: int) -> float:
        """Return the bytes per device if each batch is divided among the devices."""
        shared = self.memory.get("activations", 0.0) * (1 - 1 / devices)
        return sum(self.memory.values()) - shared - self.memory.get("program", 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain JSON."""
        return asdict(replace(self, lengths=replace(self.lengths, each=[], too_long=[])))


def plan(
    config: RunConfig,
    devices: Sequence[str] = (),
    utilisation: float = UTILISATION,
    *,
    measure: bool = True,
    progress: Progress | None = None,
) -> Plan:
    """Estimate the cost of a run; `measure` trains on random text for ten seconds."""
    if config.task.kind != "translation":
        raise UsageError(
            f"Planning supports only sequence-to-sequence models, but this is a run of task `{config.task.kind}`. "
            "Train "
            "it for a minute, and extrapolate from its rate."
        )
    named = [parse_devices(each) for each in devices]
    pairs = first_pairs(config)
    vocabulary = vocabularies(config, pairs)
    with torch.device("meta"):
        model = build(config.model, *vocabulary)
    lengths = lengths_of(config, pairs)
    training = config.training
    tokens = training.batch_tokens * training.accumulate
    each = flops_per_token(config, model, vocabulary, lengths)
    total = each * tokens * training.steps
    here, why = (None, "not asked for")
    if measure:
        here, why = measure_training(config, model, vocabulary, lengths, progress)
    return Plan(
        cell=config.model.cell,
        vocabulary=vocabulary,
        lengths=lengths,
        parameters=parameters_by_part(model),
        tokens=tokens,
        updates=training.steps,
        flops_per_token=each,
        flops=total,
        memory=memory(config, model, here),
        here=here,
        why_not_here=why,
        elsewhere=[
            Elsewhere(
                name=f"{count}x{name}",
                devices=count,
                hardware=HARDWARE[name],
                utilisation=utilisation,
                seconds=total / (count * HARDWARE[name].teraflops * 1e12 * utilisation),
                spent=total / utilisation,
            )
            for count, name in named
        ],
        warnings=cleaning_warnings(config, pairs, lengths),
    )


def flops_per_token(config: RunConfig, model: nn.Module, vocabulary: tuple[int, int], lengths: Lengths) -> float:
    """Return the training FLOPs per target token, including its source tokens."""
    cell = config.model
    ratio = lengths.source / lengths.target
    looked_up = ("embedding", "places", "distances", "_output", "output_bias")
    matrices = {"encoder": 0, "decoder": 0}
    for name, parameter in model.named_parameters():
        side = name.split(".")[0]
        if side in matrices and parameter.dim() > 1 and not any(part in name for part in looked_up):
            matrices[side] += parameter.numel()
    output = vocabulary[1] * resolved(cell.embeddings.width)
    forward = 2 * (ratio * matrices["encoder"] + matrices["decoder"] + output)
    encoder, decoder, join = cell.encoder, cell.decoder, cell.join
    assert encoder is not None and decoder is not None and join is not None  # `plan` raises for other tasks
    if isinstance(encoder, TransformerEncoder):
        forward += ratio * 4 * encoder.layers * resolved(encoder.width) * lengths.source
    if isinstance(decoder, TransformerDecoder):
        forward += 4 * decoder.layers * resolved(decoder.width) * lengths.target / 2
    if join.kind == "attention":
        layers = decoder.layers if isinstance(decoder, TransformerDecoder | ConvDecoder) else 1
        forward += 4 * layers * resolved(decoder.width) * lengths.source
    return 3 * forward
