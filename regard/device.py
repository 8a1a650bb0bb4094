"""Which device a run uses, and in which precision."""

import torch

from regard.errors import UsageError


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """`auto` takes CUDA, then Apple's GPU, then the CPU; any other name must be a device that is there."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", local_rank % torch.cuda.device_count())
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UsageError(f"training.device `{name}` is no device: use auto, cpu, cuda, cuda:1 or mps.") from None
    there = {
        "cpu": device.index in (None, 0),
        "cuda": torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(device.type, False):
        raise UsageError(f"training.device `{name}` is not on this machine: use auto, which takes the best there is.")
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
    """A device in a few words, for people."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        return "Apple GPU"
    threads = torch.get_num_threads()
    return f"CPU, {threads} thread{'s' if threads != 1 else ''}"
