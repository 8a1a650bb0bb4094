"""A model of training on several devices: memory of a rank, communication and time of an update.

Quantities of one update, for n devices on N nodes with g = n / N devices each. All numbers are float32 (4 bytes),
because weights, gradients and what is exchanged have that precision.

- DDP sums gradients G in a ring: every rank sends 2 (n - 1) / n · G bytes (Patarasu and Yuan, 2009).
- FSDP2 gathers the parameters of every layer for the forward and again for the backward pass, those outside layers
  once, and reduces and scatters gradients: every rank sends (n - 1) / n times the bytes of each (Zhao et al., 2023).
- Within a node a rank sends at the rate of its link, between nodes at its share of the node's network. A collective
  over several nodes is one within each node, and one between nodes of what is left:
  ((g - 1) / g) · bytes / link + ((N - 1) / N) · bytes / network.
- The update of the weights is not divided among the ranks of DDP, each of which has all weights; those of FSDP2 update
  their part. On a GPU it takes as long as reading and writing weights, gradients and moments, 28 bytes a parameter.
- Communication overlaps with the pass that it belongs to, except that of one bucket or one unit, which comes first or
  last. Processes that share the cores of one machine cannot overlap: exchanging takes their processor time.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import nn

from regard.planning.hardware import Hardware
from regard.planning.memory import NUMBER

BUCKET = 25 * 1024 * 1024
"""Bytes of a bucket of gradients of DDP, torch's default."""
REACHED = 0.7
"""Share of the peak rate of a link or a network that collectives reach; NCCL's benchmarks report 0.6 to 0.9."""
FORWARD = 1 / 3
"""Share of the forward pass in the FLOPs of an update."""
WORTHWHILE = 0.5
"""Parallel efficiency below which more devices do not pay."""
MOST_DEVICES = 1 << 16
"""Largest number of devices that is considered."""


@dataclass(frozen=True)
class Sizes:
    """What is exchanged and kept, in bytes."""

    parameters: int
    outside: int
    """Parameters outside Transformer layers: embeddings, projections, recurrent layers."""
    largest_layer: int
    layers: int
    """How many Transformer layers there are."""

    @classmethod
    def of(cls, model: nn.Module) -> "Sizes":
        """Return the sizes of a model; a unit of FSDP2 is one Transformer layer, or everything outside them."""
        from regard.models.encoders import TransformerEncoderLayer
        from regard.models.transformer_decoder import TransformerDecoderLayer

        layers = [
            sum(parameter.numel() for parameter in module.parameters()) * NUMBER
            for module in model.modules()
            if isinstance(module, TransformerEncoderLayer | TransformerDecoderLayer)
        ]
        total = sum(parameter.numel() for parameter in model.parameters()) * NUMBER
        return cls(total, total - sum(layers), max(layers, default=0), len(layers))


@dataclass(frozen=True)
class Cluster:
    """Devices of one kind on nodes."""

    hardware: Hardware
    devices: int
    nodes: int
    cores: int | None = None
    """Cores that all devices share, if they are processes on one machine."""

    @property
    def per_node(self) -> int:
        """Devices of a node."""
        return self.devices // self.nodes

    @property
    def parallel(self) -> int:
        """How many devices really compute at the same time."""
        return self.devices if self.cores is None else min(self.devices, self.cores)

    def resized(self, devices: int) -> "Cluster":
        """Return as many other devices, with at most as many on a node."""
        return Cluster(self.hardware, devices, math.ceil(devices / self.per_node), self.cores)

    def collective(self, size: float, count: int = 1) -> float:
        """Return the seconds of reducing and scattering, or of gathering, `size` bytes in `count` parts."""
        hardware, reached = self.hardware, 1.0 if self.cores else REACHED
        inside, between = self.per_node - 1, self.nodes - 1
        seconds = inside / self.per_node * size / (hardware.link * 1e9 * reached)
        seconds += between / self.nodes * size / (hardware.network * 1e9 * reached)
        return seconds + count * (inside * hardware.link_latency + between * hardware.network_latency) * 1e-6


@dataclass(frozen=True, kw_only=True)
class Update:
    """One update on a cluster."""

    computing: float
    """Seconds of computation."""
    communicating: float
    """Seconds of communication."""
    waiting: float
    """Seconds of communication that computation does not hide."""
    sent: float
    """Bytes that every rank sends."""
    seconds: float = field(init=False)
    """Duration of the update."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", self.computing + self.waiting)


@dataclass(frozen=True, kw_only=True)
class Parallel:
    """Training with DDP or FSDP2 on a cluster."""

    kind: str
    """`ddp` or `fsdp`, as in `training.parallel`."""
    memory: dict[str, float]
    """Bytes of a rank by part."""
    fits: bool
    """Whether a rank fits into the memory of its device."""
    update: Update
    seconds: float
    """Duration of all updates."""
    efficiency: float
    """Time of one device, divided by the number of devices and their time: 1 is perfect."""
    efficiency_per_device: float
    """The same if the batch grows with the number of devices, which keeps what each computes."""
    worthwhile: int
    """The largest power of two of devices whose efficiency is at least `WORTHWHILE`."""
    worthwhile_per_device: int | None
    """The same if the batch grows; `None` if it is beyond `MOST_DEVICES`."""


def update_on(cluster: Cluster, sizes: Sizes, kind: str, computing: float, batches: int = 1) -> Update:
    """Return one update of a cluster, given the seconds of its computation on these devices.

    `batches` of an update are accumulated: gradients are exchanged in the last, and parameters gathered in each.
    """
    if cluster.devices == 1:
        return Update(computing=computing, communicating=0.0, waiting=0.0, sent=0.0)
    share = (cluster.devices - 1) / cluster.devices
    one_batch = computing / batches
    forward, backward = FORWARD * one_batch, (1 - FORWARD) * one_batch
    overlaps = cluster.cores is None
    if kind == "ddp":
        buckets = max(1, math.ceil(sizes.parameters / BUCKET))
        total = 2 * cluster.collective(sizes.parameters, buckets)
        waiting = _exposed(total, backward, total / buckets, overlaps=overlaps)
        return Update(computing=computing, communicating=total, waiting=waiting, sent=2 * share * sizes.parameters)
    inner, units = sizes.parameters - sizes.outside, sizes.layers + 1
    first = cluster.collective(sizes.parameters, units)
    again = cluster.collective(inner, sizes.layers)
    reduced = cluster.collective(sizes.parameters, units)
    waiting = batches * _exposed(first, forward, first / units, overlaps=overlaps)
    waiting += (batches - 1) * _exposed(again, backward, again / units, overlaps=overlaps)
    waiting += _exposed(again + reduced, backward, reduced / units, overlaps=overlaps)
    gathered = batches * (sizes.parameters + inner)
    return Update(
        computing=computing,
        communicating=batches * (first + again) + reduced,
        waiting=waiting,
        sent=share * (gathered + sizes.parameters),
    )


def _exposed(communicating: float, computing: float, least: float, *, overlaps: bool) -> float:
    """Return the seconds of communication that computation does not hide; at least those of one part."""
    return max(communicating - computing, min(least, communicating)) if overlaps else communicating


def memory_of_rank(memory: Mapping[str, float], sizes: Sizes, kind: str, devices: int) -> dict[str, float]:
    """Return the bytes of a rank by part, given those of one device that has the whole batch."""
    shared = {"activations": 1 / devices, "logits": 1.0, "program": 1.0}
    if kind == "ddp":
        parts = {name: size * shared.get(name, 1.0) for name, size in memory.items()}
        return parts | ({"communication": float(sizes.parameters)} if devices > 1 else {})
    parts = {name: size * shared.get(name, 1 / devices) for name, size in memory.items()}
    gathered = sizes.outside + 2 * sizes.largest_layer + max(sizes.outside, sizes.largest_layer)
    return parts | ({"communication": float(gathered)} if devices > 1 else {})


def parallel(
    cluster: Cluster,
    sizes: Sizes,
    kind: str,
    *,
    memory: Mapping[str, float],
    alone: float,
    repeated: float = 0.0,
    updates: int,
    batches: int = 1,
    sentences: float = math.inf,
) -> Parallel:
    """Return the cost of training on a cluster with DDP or FSDP2.

    Args:
        cluster: The devices.
        sizes: The sizes of the model.
        kind: `ddp` or `fsdp`.
        memory: Bytes by part of one device that has the whole batch.
        alone: Seconds that one device computes for the batches of an update, which devices divide among them.
        repeated: Seconds of an update that do not depend on the batch, such as the optimizer's.
        updates: Number of updates.
        batches: Batches of an update, whose gradients are accumulated.
        sentences: Sentences of a batch; more devices than these have nothing to do.
    """
    own = memory_of_rank(memory, sizes, kind, cluster.devices)

    def update(there: Cluster, batch: float = 1.0) -> Update:
        own_repeated = repeated if kind == "ddp" else repeated / there.devices
        computing = (alone * batch / there.devices + own_repeated) * there.devices / there.parallel
        return update_on(there, sizes, kind, computing, batches)

    def efficiency(devices: int, *, grows: bool) -> float:
        found = update(cluster.resized(devices), devices if grows else 1.0).seconds
        return (alone + repeated) / (found if grows else devices * found)

    here = update(cluster)
    most = MOST_DEVICES if math.isinf(sentences) else max(1, int(sentences))
    return Parallel(
        kind=kind,
        memory=own,
        fits=sum(own.values()) - own.get("program", 0.0) <= cluster.hardware.gigabytes * 1e9,
        update=here,
        seconds=here.seconds * updates,
        efficiency=efficiency(cluster.devices, grows=False),
        efficiency_per_device=efficiency(cluster.devices, grows=True),
        worthwhile=_largest(lambda devices: devices <= most and efficiency(devices, grows=False) >= WORTHWHILE) or 1,
        worthwhile_per_device=_largest(lambda devices: efficiency(devices, grows=True) >= WORTHWHILE, open_end=True),
    )


def _largest(pays: Callable[[int], bool], *, open_end: bool = False) -> int | None:
    """Return the largest power of two up to which more devices pay; `None` if that is beyond `MOST_DEVICES`."""
    devices = 1
    while devices < MOST_DEVICES and pays(2 * devices):
        devices *= 2
    return None if open_end and devices >= MOST_DEVICES else devices
