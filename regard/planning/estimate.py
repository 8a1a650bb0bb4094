"""Estimates of the cost of a run before training: parameters, FLOPs, memory and time.

A matrix costs two FLOPs per parameter and token in the forward pass and four in the backward pass, so training costs 6
per parameter (Kaplan et al., 2020), plus attention. Axes: S source and T target positions.
"""

import os
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
from regard.planning.gloo import Gloo, measure_gloo
from regard.planning.hardware import HARDWARE, HERE, Hardware, nodes_for, parse_devices
from regard.planning.measurement import measure_training
from regard.planning.memory import NUMBER, Measured, memory
from regard.planning.scaling import REACHED, Cluster, Parallel, Sizes, parallel
from regard.tasks.chunk_workers import available_cores
from regard.training.summary import parameters_by_part

UTILISATION = 0.35
"""Default share of a GPU's peak that training reaches; with it, the estimates for the Transformer base and big models
are within 20 % of the published costs (3.3e18 and 2.3e19, counted as time × peak)."""

UPDATED = 28
"""Bytes a parameter that Adam's update reads and writes: weights and two moments both, gradients once."""


@dataclass(frozen=True)
class Elsewhere:
    """The same training on named hardware."""

    name: str
    devices: int
    hardware: Hardware
    utilisation: float
    seconds: float
    """Time of computation, without communication."""
    spent: float
    """FLOPs as capacity × time, as papers report them."""
    nodes: int = 1
    ways: list[Parallel] = field(default_factory=list)
    """Training with DDP and with FSDP2, with communication; empty for one device."""


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
    nodes: int | None = None,
    network: float | None = None,
    measure: bool = True,
    progress: Progress | None = None,
) -> Plan:
    """Estimate the cost of a run; `measure` trains on random text for ten seconds.

    Named devices are on `nodes`, with a `network` of so many GB/s between them, if these are given.
    """
    if config.task.kind != "translation":
        raise UsageError(
            f"Planning supports only sequence-to-sequence models, but this is a run of task `{config.task.kind}`. "
            "Train "
            "it for a minute, and extrapolate from its rate."
        )
    named = [
        (count, name, nodes_for(count, 1 if name == HERE else nodes)) for count, name in map(parse_devices, devices)
    ]
    if not measure and any(name == HERE for _, name, _ in named):
        raise UsageError("Processes on this machine are planned from a measurement. Leave out --no-measure.")
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
    kept, sizes = memory(config, model, here), Sizes.of(model)

    def elsewhere(count: int, name: str, nodes: int) -> Elsewhere:
        if name == HERE:
            cluster, alone, repeated = _processes_here(config, model, vocabulary, lengths, count, each * tokens)
        else:
            hardware = HARDWARE[name] if network is None else replace(HARDWARE[name], network=network)
            cluster, alone = Cluster(hardware, count, nodes), each * tokens / (hardware.teraflops * 1e12 * utilisation)
            repeated = UPDATED * sizes.parameters / NUMBER / (hardware.memory * 1e9 * REACHED)
        ways = [
            parallel(
                cluster,
                sizes,
                kind,
                memory=kept,
                alone=alone,
                repeated=repeated,
                updates=training.steps,
                batches=training.accumulate,
                sentences=training.batch_tokens / max(lengths.source, lengths.target),
            )
            for kind in ("ddp", "fsdp")
        ]
        return Elsewhere(
            name=f"{count}x{name}",
            devices=count,
            hardware=cluster.hardware,
            utilisation=1.0 if name == HERE else utilisation,
            seconds=alone * training.steps / cluster.parallel,
            spent=alone * training.steps * cluster.hardware.teraflops * 1e12,
            nodes=nodes,
            ways=ways if count > 1 else [],
        )

    return Plan(
        cell=config.model.cell,
        vocabulary=vocabulary,
        lengths=lengths,
        parameters=parameters_by_part(model),
        tokens=tokens,
        updates=training.steps,
        flops_per_token=each,
        flops=total,
        memory=kept,
        here=here,
        why_not_here=why,
        elsewhere=[elsewhere(*one) for one in named],
        warnings=cleaning_warnings(config, pairs, lengths),
    )


def _processes_here(
    config: RunConfig, model: nn.Module, vocabulary: tuple[int, int], lengths: Lengths, count: int, flops: float
) -> tuple[Cluster, float, float]:
    """Return processes of one thread each on this machine, and the seconds of an update in one of them.

    These are the seconds that depend on the batch, and those that do not, from updates with the whole batch and with
    the share of a process.
    """
    threads, found = torch.get_num_threads(), []
    torch.set_num_threads(1)
    try:
        for share in dict.fromkeys((1, count)):
            tokens = max(1, config.training.batch_tokens // share)
            training = config.training.model_copy(update={"batch_tokens": tokens})
            changed = config.model_copy(update={"training": training})
            measured, why = measure_training(changed, model, vocabulary, lengths)
            if measured is None:
                raise UsageError(f"Processes on this machine cannot be planned: {why}.")
            found.append(measured.seconds)
    finally:
        torch.set_num_threads(threads)
    alone, repeated = divide_time(found[0], found[-1], count)
    size = sum(parameter.numel() for parameter in model.parameters()) * NUMBER
    gloo = measure_gloo(count, size) if count > 1 else Gloo(0.0, 1.0)
    hardware = Hardware(
        flops / found[0] / 1e12,
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9 / count,
        "float32, measured",
        link=gloo.gigabytes,
        memory=0.0,
        link_latency=gloo.latency,
    )
    return Cluster(hardware, count, 1, available_cores()), alone, repeated


def divide_time(whole: float, part: float, count: int) -> tuple[float, float]:
    """Return what grows with the batch of the time of a whole batch, and what does not, given that of 1 / `count`."""
    repeated = min(max((count * part - whole) / (count - 1), 0.0), part) if count > 1 else 0.0
    return whole - repeated, repeated


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
