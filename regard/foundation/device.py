"""Which device a run uses, in which precision, and how its memory is kept."""

import ctypes
import os
import sys
from functools import cache

import torch

from regard.foundation.errors import UsageError

_TRIM, _MAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of mallopt(3)
KEPT, MAPPED = 2**29, 2**27
"""Bytes kept for what comes next, and the size from which a piece is the system's own."""


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """`auto` takes CUDA, then Apple's GPU, then the CPU; any other name must be a device that is there."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", local_rank % torch.cuda.device_count())
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"training.device `{name}` is no device. Use auto, cpu, cuda, cuda:1 or mps.") from None
    there = {
        "cpu": device.index in (None, 0),
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(device.type, False):
        raise UsageError(f"training.device `{name}` is not on this machine. Use auto, which takes the best there is.")
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", local_rank % torch.cuda.device_count())
    return device


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """`auto` is bfloat16 on GPUs that have it, otherwise float32."""
    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else torch.float32
    if name == "float16" and device.type == "cpu":
        raise UsageError("training.precision `float16` needs a GPU: on a CPU use float32 (or bfloat16).")
    return {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}[name]


def describe(device: torch.device) -> str:
    """Return a device in a few words, for people."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        return "Apple GPU"
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads != 1 else ''}"


@cache
def keep_freed() -> None:
    """Let glibc keep what is freed: it would give large pieces back to the system, and get them again page by page.

    Those pages are a fourteenth of the time that decoding takes. Where somebody has chosen settings, or there is
    another C library, nothing changes.
    """
    chosen = any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ)
    if sys.platform != "linux" or chosen:
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MAP, MAPPED)
        mallopt(_TRIM, KEPT)
