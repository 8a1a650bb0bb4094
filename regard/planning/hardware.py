"""Devices to train on: their peak rates and memory."""

import re
from dataclasses import dataclass

from regard.foundation.errors import UsageError


@dataclass(frozen=True)
class Hardware:
    """A device to train on."""

    teraflops: float
    """Peak rate in the precision that training would use."""
    gigabytes: float
    precision: str


HARDWARE = {
    "P100": Hardware(9.5, 16, "float32, as Vaswani et al. (2017) count it"),
    "V100": Hardware(125, 32, "float16"),
    "T4": Hardware(65, 16, "float16"),
    "A10": Hardware(125, 24, "bfloat16"),
    "L4": Hardware(121, 24, "bfloat16"),
    "A100": Hardware(312, 80, "bfloat16"),
    "H100": Hardware(989, 80, "bfloat16"),
    "RTX3090": Hardware(71, 24, "bfloat16"),
    "RTX4090": Hardware(165, 24, "bfloat16"),
}
"""Dense peak rates according to the manufacturers."""


def parse_devices(text: str) -> tuple[int, str]:
    """Return the number and the name of devices such as `8xA100` or `A100`."""
    match = re.fullmatch(r"(?:(\d{1,5})\s*[x×*]\s*)?([\w-]+)", text.strip(), re.IGNORECASE)
    known = {name.lower(): name for name in HARDWARE}
    name = known.get(match[2].replace("-", "").lower()) if match else None
    if match is None or name is None or not int(match[1] or 1):
        raise UsageError(
            f"`{text}` is not known hardware. Use, for example, 8xA100, with one of {', '.join(HARDWARE)}."
        )
    return int(match[1] or 1), name
