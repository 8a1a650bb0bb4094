"""The contract of runners: from shards to translated blocks, in any order."""

import os
from collections.abc import Iterator, Sequence
from typing import Protocol

from regard.bulk.blocks import Event, PendingShard


class Runner(Protocol):
    """Reads shards, and has their blocks translated by workers. A block whose worker dies is translated by another."""

    def run(self, shards: Sequence[PendingShard]) -> Iterator[Event]:
        """Yield the translated blocks of all shards in any order, and how each shard ends; close it to stop early."""

    @property
    def restarts(self) -> int:
        """How often a worker has been restarted so far, as far as it is known."""


def core_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
