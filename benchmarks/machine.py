"""The machine's own limit, and what machine it is."""

import os
import platform
from pathlib import Path
from typing import Any

from benchmarks.worker import cores

SIZE = 1024


def facts() -> dict[str, Any]:
    """What a reader has to know of the machine."""
    import torch

    return {
        "processor": _processor(),
        "cores_in_use": len(cores()) or os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "load_before": round(os.getloadavg()[0], 2),
    }


def in_words(machine: dict[str, Any]) -> str:
    """The same in a sentence."""
    busy = machine["load_before"] > 0.7
    return (
        f"{machine['cores_in_use']} cores of {machine['processor']}; Python {machine['python']}, torch "
        f"{machine['torch']}; load before the start {machine['load_before']:.1f}"
        + (" (**others were using the machine: take no figure from this**)." if busy else ".")
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
