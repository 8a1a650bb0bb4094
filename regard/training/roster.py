"""Which processes of a distributed training are alive.

Every process writes a heartbeat into the store through which torchrun's processes found each other, and the reason if
it fails. When a collective operation fails, the others read there which process is missing, and why.
"""

import json
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from socket import gethostname
from uuid import uuid4

from torch._C._distributed_c10d import PrefixStore, Store

from regard.foundation.errors import RegardError

BEAT = 0.5
"""Seconds between two heartbeats."""
PATIENCE = 5.0
"""Seconds without a heartbeat after which a process counts as missing."""
MOST_CHARACTERS = 2000
"""Characters of an error message that are passed on to other processes."""
STORE_LOST = "Rank 0 or its launcher, which connects the processes, does not answer. It has probably failed."


class LostProcess(RegardError):
    """Another process of this training has ended or does not answer."""


def meet(store: Store, rank: int, world_size: int, timeout: timedelta) -> Store:
    """Wait until every process has joined, and return a store for them alone; raises an error that names the missing.

    A launcher that restarts processes may give them a store with the keys of those before. So rank 0 opens a session
    under a new name, every process joins it with a number of its own, and rank 0 confirms these numbers.
    """
    number, deadline = uuid4().hex, time.monotonic() + timeout.total_seconds()
    session = number
    if rank == 0:
        store.set("session", session)
    while True:
        if rank and store.check(["session"]):
            session = store.get("session").decode()
        store.set(f"{session}/joined/{rank}", number)
        missing = [other for other in range(world_size) if not store.check([f"{session}/joined/{other}"])]
        if rank == 0 and not missing:
            numbers = [store.get(f"{session}/joined/{other}").decode() for other in range(world_size)]
            store.set(f"{session}/confirmed", json.dumps(numbers))
        if store.check([f"{session}/confirmed"]) and json.loads(store.get(f"{session}/confirmed"))[rank] == number:
            return PrefixStore(session, store)
        if time.monotonic() > deadline:
            names = "Rank 0" if rank and not missing else _ranks(missing)
            raise LostProcess(
                f"{names} of {world_size} did not join within {timeout.total_seconds():.0f} s. Start all processes "
                "with the same WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or use torchrun."
            )
        time.sleep(0.05)


class Roster:
    """The processes of a training, by rank."""

    def __init__(self, store: Store, rank: int, world_size: int) -> None:
        self.rank, self.world_size = rank, world_size
        self._store = store
        self.operations = 0
        """How many operations with the other processes this one has begun; who has begun fewer keeps them waiting."""
        self._hosts: dict[int, str] = {}
        self._stop = threading.Event()
        own = store.clone()  # type: ignore[attr-defined]  # a connection that waiting in another thread does not block
        self._thread = threading.Thread(target=self._beat, args=(own,), daemon=True, name="heartbeat")
        self._store.set(f"host/{rank}", gethostname())
        self._thread.start()

    def close(self) -> None:
        """Stop the heartbeat."""
        self._stop.set()
        self._thread.join(timeout=2 * BEAT)

    def name(self, rank: int) -> str:
        """Return a rank with its host, such as `rank 2 (node-b)`."""
        if rank not in self._hosts and self._store.check([f"host/{rank}"]):
            self._hosts[rank] = self._store.get(f"host/{rank}").decode(errors="replace")
        host = self._hosts.get(rank)
        return f"rank {rank} ({host})" if host else f"rank {rank}"

    def wait_for(self, event: str, rank: int) -> None:
        """Wait without a time limit until a rank has announced an event; raises an error if that rank is missing."""
        try:
            watch = _Watch(self._store, [rank])
            while not self._store.check([f"event/{event}"]):
                if self._failure(rank) or watch.silence(rank) > 4 * PATIENCE:
                    raise LostProcess(self.describe_loss())
                time.sleep(0.05)
        except (RuntimeError, ValueError):
            raise LostProcess(STORE_LOST) from None

    def announce(self, event: str) -> None:
        """Announce an event to the ranks that wait for it."""
        self._store.set(f"event/{event}", "1")

    def report_failure(self, message: str) -> None:
        """Leave the reason why this process ends, for the others' messages."""
        try:
            self._store.set(f"failed/{self.rank}", message[:MOST_CHARACTERS])
        except (RuntimeError, ValueError):
            return  # the store is gone with the process that held it

    def describe_loss(self) -> str:
        """Return sentences that name the processes that are missing, after waiting for their heartbeats."""
        others = [rank for rank in range(self.world_size) if rank != self.rank]
        try:
            self._store.set(f"lost/{self.rank}", "1")
            watch, start = _Watch(self._store, others), time.monotonic()
            while time.monotonic() - start < PATIENCE:
                failures = {rank: reason for rank in others if (reason := self._failure(rank))}
                missing = [rank for rank in others if watch.silence(rank) > 4 * BEAT and not self._has_noticed(rank)]
                if failures or missing:
                    return self._sentences(failures, [rank for rank in missing if rank not in failures])
                time.sleep(BEAT / 2)
            if late := [rank for rank in others if self._operations(rank) < self.operations]:
                names = " and ".join(self.name(rank) for rank in late)
                return f"{names[0].upper()}{names[1:]} kept the others waiting too long: it hangs, or is much slower."
            return "All processes are alive, but a message between them was lost. Check the network between the nodes."
        except (RuntimeError, ValueError):
            return STORE_LOST

    def _sentences(self, failures: dict[int, str], missing: Sequence[int]) -> str:
        sentences = [f"The process of {self.name(rank)} failed: {reason}" for rank, reason in failures.items()]
        if missing:
            names = " and ".join(self.name(rank) for rank in missing)
            verbs = "process of {} has ended or does" if len(missing) == 1 else "processes of {} have ended or do"
            sentences.append(f"The {verbs.format(names)} not answer, probably killed.")
        return " ".join(sentences)

    def _failure(self, rank: int) -> str:
        key = f"failed/{rank}"
        return self._store.get(key).decode(errors="replace") if self._store.check([key]) else ""

    def _operations(self, rank: int) -> int:
        return int(self._store.get(f"beat/{rank}").decode().split()[1])

    def _has_noticed(self, rank: int) -> bool:
        """Return whether a rank has itself noticed the loss of another; it is not the cause then."""
        return bool(self._store.check([f"lost/{rank}"]))

    def _beat(self, store: Store) -> None:
        count = 0
        while not self._stop.wait(BEAT):
            count += 1
            try:
                store.set(f"beat/{self.rank}", f"{count} {self.operations}")
            except (RuntimeError, ValueError):
                return


class _Watch:
    """How long the heartbeats of some ranks have not changed."""

    def __init__(self, store: Store, ranks: Sequence[int]) -> None:
        self._store = store
        now = time.monotonic()
        self._seen = dict.fromkeys(ranks, (b"", now))

    def silence(self, rank: int) -> float:
        """Return the seconds since the last change of a rank's heartbeat."""
        key, now = f"beat/{rank}", time.monotonic()
        beat = self._store.get(key) if self._store.check([key]) else b""
        if beat != self._seen[rank][0]:
            self._seen[rank] = (beat, now)
        return now - self._seen[rank][1]


def _ranks(ranks: Sequence[int]) -> str:
    """Return ranks as the subject of a sentence."""
    if len(ranks) == 1:
        return f"Rank {ranks[0]}"
    return f"Ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
