"""Device, precision and memory settings."""

import ctypes
import os
import sys
from functools import cache

import torch

from regard.foundation.errors import UsageError

_TRIM, _MAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)
KEPT, MAPPED = 2**29, 2**27
"""Bytes of freed memory that are kept, and the size from which an allocation is mapped separately."""


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """Return the device: `auto` is CUDA, then Apple's GPU, then the CPU; others must be available."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", local_rank % torch.cuda.device_count())
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"training.device `{name}` is not a device. Use auto, cpu, cuda, cuda:1 or mps.") from None
    there = {
        "cpu": device.index in (None, 0),
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(device.type, False):
        raise UsageError(
            f"training.device `{name}` is not on this machine. Use auto, which takes the best one available."
        )
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", local_rank % torch.cuda.device_count())
    return device


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """Return the precision: `auto` is bfloat16 on GPUs that support it, otherwise float32."""
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float32
    if name == "float16" and device.type == "cpu":
        raise UsageError("training.precision `float16` needs a GPU. On a CPU use float32 (or bfloat16).")
    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[name]


def describe(device: torch.device) -> str:
    """Return a short description of a device."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        return "Apple GPU"
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads != 1 else ''}"


@cache
def keep_freed() -> None:
    """Let glibc keep freed memory instead of returning large blocks to the system and mapping them again.

    Mapping takes about 7 % of decoding time. Settings of the user are kept, and other C libraries are not changed.
    """
    chosen = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if sys.platform != "linux" or chosen:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MAP, MAPPED)
        mallopt(_TRIM, KEPT)
