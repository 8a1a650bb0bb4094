"""The machine's own limit, and what machine it is."""

import os
import platform
import time
from pathlib import Path
from typing import Any

from benchmarks.worker import cores

SIZE = 1024
QUIET = 0.3
"""Cores that others may use without spoiling the figures."""


def facts() -> dict[str, Any]:
    """What a reader has to know of the machine."""
    import torch

    return {
        "processor": _processor(),
        "cores_in_use": len(cores()) or os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "busy_before": round(busy(), 2),
    }


def in_words(machine: dict[str, Any]) -> str:
    """The same in a sentence."""
    others = machine["busy_before"]
    return (
        f"{machine['cores_in_use']} cores of {machine['processor']}; Python {machine['python']}, torch "
        f"{machine['torch']}; others used {others:.1f} cores just before"
        + (" (**take no figure from this: the machine was not quiet**)." if others > QUIET else ".")
    )


def busy(seconds: float = 1.0) -> float:
    """How many cores others use at this moment; 0 where the system does not tell."""
    before = _ticks()
    time.sleep(seconds)
    after = _ticks()
    passed = sum(after) - sum(before)
    idle = sum(after[3:5]) - sum(before[3:5])
    return (1 - idle / passed) * (os.cpu_count() or 1) if passed else 0.0


def _ticks() -> list[int]:
    """What the processor has done so far: user, nice, system, idle, waiting, and so on."""
    try:
        return [int(one) for one in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except OSError:
        return [0] * 8


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
