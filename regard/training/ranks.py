"""Distributed training: the rank of this process, as set by the launcher (torchrun); one process without it."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from regard.foundation.errors import RegardError, UsageError

TIMEOUT = timedelta(minutes=30)
"""How long a rank waits for another before the run fails (rank 0 prepares data and validates alone)."""


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """The rank of this process and the number of processes."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0

    @classmethod
    def from_environment(cls) -> "Ranks":
        """Read RANK, WORLD_SIZE and LOCAL_RANK as set by torchrun; one process without them."""
        if "RANK" not in os.environ:
            return cls()
        try:
            rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            local_rank = int(os.environ.get("LOCAL_RANK", rank))
        except (KeyError, ValueError) as error:
            raise UsageError(
                f"RANK, WORLD_SIZE and LOCAL_RANK are not consistent ({error}). "
                "Start with torchrun --nproc-per-node N -m regard train …"
            ) from None
        if not (0 <= rank < world_size and local_rank >= 0):
            raise UsageError(
                f"RANK={rank}, WORLD_SIZE={world_size} and LOCAL_RANK={local_rank} are not consistent. "
                "Start with torchrun --nproc-per-node N -m regard train …"
            )
        return cls(rank=rank, world_size=world_size, local_rank=local_rank)

    @property
    def first(self) -> bool:
        """Whether this is the process that prepares, validates and writes."""
        return self.rank == 0

    @contextmanager
    def together(self, device: torch.device) -> Iterator[None]:
        """Join the process group, and leave it at the end."""
        if self.world_size == 1:
            yield
            return
        try:
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=TIMEOUT)
        except (RuntimeError, ValueError) as error:
            raise RegardError(
                f"The {self.world_size} processes of this training cannot connect ({_first_line(error)}). Start all "
                "of them with torchrun --nproc-per-node N -m regard train …; check MASTER_ADDR and MASTER_PORT if they "
                "are set by hand."
            ) from error
        try:
            yield
        finally:
            dist.destroy_process_group()

    def wait(self) -> None:
        """Wait until every process has called this."""
        if self.world_size > 1:
            with _connect():
                dist.barrier()

    def total(self, numbers: Sequence[float], device: torch.device) -> list[float]:
        """Return the sum of each number over all processes."""
        if self.world_size == 1:
            return list(numbers)
        kind = torch.float32 if device.type == "mps" else torch.float64
        sums = torch.tensor(numbers, dtype=kind, device=device)
        with _connect():
            dist.all_reduce(sums)
        return [float(number) for number in sums.tolist()]

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes."""
        if self.world_size == 1 or not tensors:
            return
        together = torch.cat([tensor.reshape(-1) for tensor in tensors])
        with _connect():
            dist.all_reduce(together)
        parts = together.split([tensor.numel() for tensor in tensors])  # type: ignore[no-untyped-call]
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))

    def gather(self, tensor: Tensor, device: torch.device) -> list[Tensor]:
        """Return the tensors of all processes, which have one shape, by rank."""
        if self.world_size == 1:
            return [tensor]
        tensor = tensor.to(device)
        parts = [torch.empty_like(tensor) for _ in range(self.world_size)]
        with _connect():
            dist.all_gather(parts, tensor)
        return [part.cpu() for part in parts]


@contextmanager
def _connect() -> Iterator[None]:
    """Report a lost connection to another process as `RegardError`."""
    try:
        yield
    except RuntimeError as error:  # the base class of torch's DistError
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise RegardError(
            f"The connection to another process of this training is lost ({_first_line(error)}). That process has "
            "probably failed. See its output, fix the cause, and resume all of them with --resume RUN."
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
