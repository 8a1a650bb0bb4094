"""Distributed training: the rank of this process, as set by the launcher (torchrun); one process without it.

Every operation here fails within a time limit, with a message that names the process that is missing.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, TCPStore

from regard.foundation.errors import RegardError, UsageError
from regard.training.interruption import Interrupted
from regard.training.roster import LostProcess, Roster, meet

TIMEOUT = 600.0
"""Seconds that a process waits for another in one operation; the environment variable REGARD_TIMEOUT changes it."""
BUCKET = 25 * 2**20
"""Bytes of gradients that are summed over processes at a time."""

Result = TypeVar("Result")


@dataclass(kw_only=True)
class Ranks:
    """The rank of this process and the number of processes."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    roster: Roster | None = field(default=None, init=False)
    """Which processes are alive; set while they are connected."""

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
        """Whether this is the process that prepares data, writes and shows progress."""
        return self.rank == 0

    @property
    def backend(self) -> str:
        """The library that connects the processes: NCCL for CUDA devices, otherwise gloo."""
        return "nccl" if self.device.type == "cuda" else "gloo"

    @contextmanager
    def together(self, device: torch.device) -> Iterator[None]:
        """Join the process group, and leave it at the end; if this process fails, the others learn why."""
        self.device = device
        if self.world_size == 1:
            yield
            return
        timeout = timedelta(seconds=time_limit())
        try:
            store = meet(self._store(timeout), self.rank, self.world_size, timeout)
            self.roster = Roster(store, self.rank, self.world_size)
            dist.init_process_group(
                self.backend,
                store=PrefixStore("group", store),
                rank=self.rank,
                world_size=self.world_size,
                timeout=timeout,
                device_id=device if device.type == "cuda" else None,
            )
        except (RuntimeError, ValueError, KeyError) as error:
            raise RegardError(
                f"The {self.world_size} processes of this training cannot connect ({_first_line(error)}). Start all "
                "of them with torchrun --nproc-per-node N -m regard train …; check MASTER_ADDR and MASTER_PORT if they "
                "are set by hand."
            ) from error
        try:
            with self.connected():
                yield
        except LostProcess:
            raise
        except BaseException as error:
            stopped = isinstance(error, Interrupted | KeyboardInterrupt)
            self.roster.report_failure("It was stopped." if stopped else str(error) or type(error).__name__)
            raise
        finally:
            self.roster.close()
            self.roster = None
            dist.destroy_process_group()

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Context in which a lost connection raises `LostProcess` with the name of the process that is missing."""
        if self.roster:
            self.roster.operations += 1
        try:
            yield
        except RuntimeError as error:  # also the base class of torch's DistError
            if self.world_size == 1 or not _is_lost_connection(error):
                raise
            loss = self.roster.describe_loss() if self.roster else "Another process is missing."
            raise LostProcess(
                f"{loss} Training stops here ({_first_line(error)}). Fix the cause, then resume from the last "
                "checkpoint with all processes: regard train --resume RUN."
            ) from error

    def wait(self) -> None:
        """Wait until every process has called this."""
        if self.world_size > 1:
            with self.connected():
                dist.barrier()

    def first_alone(self, event: str, call: Callable[[], object]) -> None:
        """Run a call on rank 0; the others wait for it, without a time limit, as long as rank 0 is alive."""
        if self.first:
            call()
            if self.roster:
                self.roster.announce(event)
        elif self.roster:
            self.roster.wait_for(event, 0)
        self.wait()

    def decide(self, call: Callable[[], Result]) -> Result:
        """Return on all processes the JSON value of a call on rank 0; if it fails there, it raises on all of them."""
        value = self.agree(lambda: call() if self.first else None)
        return cast(Result, self.gather(value)[0])

    def agree(self, call: Callable[[], Result]) -> Result:
        """Return the result of a call; if it fails on one process, it raises on all of them, naming that one."""
        result: Result | None = None
        error: RegardError | None = None
        try:
            result = call()
        except RegardError as failure:
            error = failure
        problems = self.gather(str(error) if error else None)
        if error:
            raise error
        for rank, problem in enumerate(problems):
            if problem is not None:
                raise LostProcess(f"The process of {self._name(rank)} failed: {problem}")
        return result  # type: ignore[return-value]

    def refuse_differences(self, facts: dict[str, Any]) -> None:
        """Raise on all processes if the named facts of one, such as its settings, differ from those of rank 0."""
        every = self.gather(facts)
        for rank, other in enumerate(every):
            names = [name for name in {**every[0], **other} if every[0].get(name) != other.get(name)]
            if names:
                name = names[0]
                raise RegardError(
                    f"The processes of this training differ: {name} is {every[0].get(name)!r} at {self._name(0)} and "
                    f"{other.get(name)!r} at {self._name(rank)}. Start all of them with the same command and version."
                )

    def total(self, numbers: Sequence[float]) -> list[float]:
        """Return the sum of each number over all processes."""
        if self.world_size == 1:
            return list(numbers)
        kind = torch.float32 if self.device.type == "mps" else torch.float64
        sums = torch.tensor(numbers, dtype=kind, device=self.device)
        with self.connected():
            dist.all_reduce(sums)
        return [float(number) for number in sums.tolist()]

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes: in buckets, so that copying overlaps with sending."""
        if self.world_size == 1 or not tensors:
            return
        with self.connected():
            sent = []
            for bucket in _buckets(tensors):
                joined = torch.cat([tensor.reshape(-1) for tensor in bucket])
                sent.append((bucket, joined, dist.all_reduce(joined, async_op=True)))
            for bucket, joined, work in sent:
                work.wait()
                parts = joined.split([tensor.numel() for tensor in bucket])  # type: ignore[no-untyped-call]
                torch._foreach_copy_(bucket, [part.view_as(tensor) for tensor, part in zip(bucket, parts, strict=True)])

    def gather(self, value: Any) -> list[Any]:
        """Return the JSON values of all processes, by rank."""
        if self.world_size == 1:
            return [value]
        content = json.dumps(value).encode()
        sizes = [int(size.item()) for size in self.gather_tensors(torch.tensor([len(content)]))]
        padded = torch.zeros(max(sizes), dtype=torch.uint8)
        padded[: len(content)] = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        parts = self.gather_tensors(padded)
        return [json.loads(part[:size].numpy().tobytes()) for part, size in zip(parts, sizes, strict=True)]

    def gather_tensors(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of all processes, which have one shape, by rank, on the CPU."""
        if self.world_size == 1:
            return [tensor]
        tensor = tensor.to(self.device)
        parts = [torch.empty_like(tensor) for _ in range(self.world_size)]
        with self.connected():
            dist.all_gather(parts, tensor)
        return [part.cpu() for part in parts]

    def _store(self, timeout: timedelta) -> TCPStore:
        """Return the store through which processes find each other: that of torchrun, or else one of rank 0."""
        launched = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        return TCPStore(
            os.environ["MASTER_ADDR"],
            int(os.environ["MASTER_PORT"]),
            self.world_size,
            is_master=self.first and not launched,
            timeout=timeout,
            wait_for_workers=False,
            multi_tenant=True,
        )

    def _name(self, rank: int) -> str:
        return self.roster.name(rank) if self.roster else f"rank {rank}"


def time_limit() -> float:
    """Return the seconds that processes wait for each other."""
    given = os.environ.get("REGARD_TIMEOUT", "")
    try:
        seconds = float(given or TIMEOUT)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86400:
        raise UsageError(f"REGARD_TIMEOUT must be a number of seconds between 1 and 86400, not {given!r}.")
    return seconds


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Yield tensors of one type in groups of about `BUCKET` bytes."""
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if bucket and (size > BUCKET or tensor.dtype != bucket[0].dtype):
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.numel() * tensor.element_size()
    yield bucket


def _is_lost_connection(error: RuntimeError) -> bool:
    """Return whether an error comes from the connection between processes."""
    if isinstance(error, torch.OutOfMemoryError):
        return False
    text = str(error).lower()
    return isinstance(error, dist.DistError) or any(word in text for word in ("gloo", "nccl", "connection", "tcpstore"))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
