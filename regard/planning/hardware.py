"""Devices to train on: their peak rates, memory, and the links and networks between them."""

import re
from dataclasses import dataclass

from regard.foundation.errors import UsageError

ON_A_NODE = 8
"""Devices of a node, unless their number is given."""
HERE = "here"
"""The name of a process on this machine, which exchanges gradients by gloo; also `cpu`."""
MOST_PROCESSES = 64
"""Largest number of processes on this machine."""


@dataclass(frozen=True)
class Hardware:
    """A device to train on."""

    teraflops: float
    """Peak rate in the precision that training would use."""
    gigabytes: float
    precision: str
    link: float
    """Peak rate to the other devices of a node in GB/s, in one direction: NVLink, or PCIe without it."""
    memory: float
    """Peak rate of its memory in GB/s."""
    network: float = 12.5
    """Peak rate of a node to the others in GB/s, in one direction; 12.5 is Ethernet of 100 Gbit/s."""
    link_latency: float = 5.0
    """Microseconds of a step of a collective within a node."""
    network_latency: float = 15.0
    """Microseconds of a step of a collective between nodes."""


HARDWARE = {
    "P100": Hardware(9.5, 16, "float32, as Vaswani et al. (2017) count it", link=80, memory=732, network=50),
    "V100": Hardware(125, 32, "float16", link=150, memory=900, network=50),
    "T4": Hardware(65, 16, "float16", link=16, memory=320),
    "A10": Hardware(125, 24, "bfloat16", link=32, memory=600),
    "L4": Hardware(121, 24, "bfloat16", link=32, memory=300),
    "A100": Hardware(312, 80, "bfloat16", link=300, memory=2039, network=200),
    "H100": Hardware(989, 80, "bfloat16", link=450, memory=3350, network=400),
    "RTX3090": Hardware(71, 24, "bfloat16", link=32, memory=936),
    "RTX4090": Hardware(165, 24, "bfloat16", link=32, memory=1008),
}
"""Dense peak rates according to the manufacturers. Networks are those of DGX systems (DGX-1: four adapters of 100
Gbit/s; DGX A100 and H100: eight of 200 and 400), where there is one; clouds often have less."""


def parse_devices(text: str) -> tuple[int, str]:
    """Return the number and the name of devices such as `8xA100`, `A100` or `2xhere`."""
    match = re.fullmatch(r"(?:(\d{1,5})\s*[x×*]\s*)?([\w-]+)", text.strip(), re.IGNORECASE)
    known = {name.lower(): name for name in HARDWARE} | {HERE: HERE, "cpu": HERE}
    name = known.get(match[2].replace("-", "").lower()) if match else None
    if match is None or name is None or not int(match[1] or 1):
        raise UsageError(
            f"`{text}` is not known hardware. Use, for example, 8xA100, with one of {', '.join(HARDWARE)}, or 2xhere "
            "for processes on this machine."
        )
    if name == HERE and int(match[1] or 1) > MOST_PROCESSES:
        raise UsageError(f"`{text}` is more than {MOST_PROCESSES} processes, which one machine is not planned for.")
    return int(match[1] or 1), name


def nodes_for(devices: int, wanted: int | None) -> int:
    """Return the number of nodes of devices; by default eight devices share a node."""
    nodes = -(-devices // ON_A_NODE) if wanted is None else wanted
    if devices % nodes:
        raise UsageError(
            f"{devices} devices cannot be divided evenly among {nodes} nodes. Give --nodes a divisor of {devices}."
        )
    return nodes
