"""Jobs that wait for a worker or run: their order, and how they are grouped into batches."""

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LARGEST_BATCH = 16
"""Sentences in a batch. With a beam of 5, larger batches of CTranslate2 take longer and are not faster per sentence."""
LARGEST_SIZE = 6000
"""Characters in a batch, padding included; a longer text is a batch of its own."""
GROUP = 8 * LARGEST_BATCH
"""Jobs that are sorted by length together. A job is overtaken by fewer jobs than this that are due after it."""


MOST_LATER = 1000
"""Jobs that are not due yet, above which those that no request waits for are dropped early."""


class QueueKey(NamedTuple):
    """What the sentences of a batch have in common."""

    model: str
    task: str
    options: str
    """Options as JSON."""


@dataclass(eq=False)
class Job:
    """One input that waits for its output."""

    key: QueueKey
    content: Any
    size: int
    """Characters."""
    result: "asyncio.Future[dict[str, Any]]"
    due: float = field(default_factory=lambda: time.monotonic())  # noqa: PLW0108 (looked up at each call, for virtual time in tests)
    """When it is its turn: see `JobQueue`."""
    is_due: bool = False
    """Whether its turn has come."""
    deaths: int = 0
    """Workers that died of it, when it was alone."""
    is_alone: bool = False
    """Whether it is tried in a batch of its own, because a batch with it failed."""
    show: Callable[[str], None] | None = None
    """Gets parts of the output while it grows; such a job is always alone."""


class JobQueue:
    """The jobs that wait, in the order in which they are served.

    The first job of a request is due when the request arrives, the others when they would be reached if the request had
    all workers for itself (start-time fair queueing: Goyal, Vin and Cheng, 1996). So a long request uses what is left,
    and delays requests that arrive later by a group of jobs at most.

    The jobs that are due are taken in groups. A group is sorted by length and cut into batches with little padding, and
    the next group is formed when all its batches are taken.
    """

    def __init__(self) -> None:
        self.pending = 0
        """Jobs that wait or run."""
        self.pending_size = 0
        """Their characters."""
        self.due_size = 0
        """Characters of those of them that are due."""
        self._later: list[tuple[float, int, Job]] = []  # a heap
        self._number = 0
        self._most_later = MOST_LATER
        self._due: dict[QueueKey, deque[Job]] = {}
        self._batches: deque[list[Job]] = deque()

    def add(self, job: Job) -> None:
        """Add a job."""
        self._number += 1
        heapq.heappush(self._later, (job.due, self._number, job))
        if len(self._later) > self._most_later:
            self._drop_done()
            self._most_later = max(2 * len(self._later), MOST_LATER)
        self.pending += 1
        self.pending_size += job.size
        job.result.add_done_callback(lambda _: self._forget(job))
        self._promote(time.monotonic())

    def _forget(self, job: Job) -> None:
        self.pending -= 1
        self.resize(job, 0)

    def resize(self, job: Job, size: int) -> None:
        """Count a job with another number of characters."""
        self.pending_size += size - job.size
        if job.is_due:
            self.due_size += size - job.size
        job.size = size

    def retry(self, jobs: Sequence[Job]) -> None:
        """Put the jobs of a batch that failed before all others, each as a batch of its own."""
        for job in reversed(jobs):
            job.is_alone = True
            self._batches.appendleft([job])

    def oldest(self) -> Job | None:
        """Return the job that is served next; jobs that no request waits for any more are dropped."""
        while self._batches:
            self._batches[0] = [job for job in self._batches[0] if not job.result.done()]
            if self._batches[0]:
                return self._batches[0][0]
            self._batches.popleft()
        self._promote(time.monotonic())
        live = {key: deque(job for job in queue if not job.result.done()) for key, queue in self._due.items()}
        self._due = {key: queue for key, queue in live.items() if queue}
        if not self._due:
            self._drop_done()
            if not self._later:
                return None
            self._promote(self._later[0][0])
        return min((queue[0] for queue in self._due.values()), key=lambda job: job.due)

    @property
    def is_empty(self) -> bool:
        """Whether no job waits."""
        return not self._batches and not self._due and not self._later

    def take(self, oldest: Job, idle: int) -> list[Job]:
        """Return a batch with the oldest job, as `oldest` returns it; `idle` workers could take one now."""
        if not self._batches:
            self._plan(oldest, idle)
        return self._batches.popleft()

    def drain(self) -> list[Job]:
        """Remove and return all jobs."""
        jobs = [job for batch in self._batches for job in batch]
        jobs += [job for queue in self._due.values() for job in queue]
        jobs += [job for _, _, job in self._later]
        self._batches, self._due, self._later = deque(), {}, []
        return jobs

    def _plan(self, oldest: Job, idle: int) -> None:
        """Form the next group and cut it into batches, the one with the oldest job first."""
        while self._later and len(self._due[oldest.key]) < LARGEST_BATCH * idle:
            self._promote(self._later[0][0])  # workers would be idle otherwise
        queue = self._due[oldest.key]
        group = [queue.popleft() for _ in range(min(len(queue), GROUP))]
        if not queue:
            del self._due[oldest.key]
        batches = cut(group, idle)
        batches.sort(key=lambda batch: min(job.due for job in batch))
        first = next(number for number, batch in enumerate(batches) if oldest in batch)
        self._batches.extend([batches.pop(first), *batches])

    def _promote(self, until: float) -> None:
        """Move the jobs whose turn comes until a time to those that are due."""
        while self._later and self._later[0][0] <= until:
            job = heapq.heappop(self._later)[2]
            if not job.result.done():
                job.is_due = True
                self.due_size += job.size
                self._due.setdefault(job.key, deque()).append(job)

    def _drop_done(self) -> None:
        self._later = [entry for entry in self._later if not entry[2].result.done()]
        heapq.heapify(self._later)


def cut(group: list[Job], idle: int) -> list[list[Job]]:
    """Cut jobs into batches of similar length: one for each idle worker, or as many as the limits of a batch need."""
    if group[0].show is not None:
        return [[job] for job in group]
    count = max(-(-len(group) // LARGEST_BATCH), min(idle, len(group)), 1)
    most = -(-len(group) // count)
    batches: list[list[Job]] = []
    for job in sorted(group, key=lambda job: job.size):
        if not batches or len(batches[-1]) == most or (len(batches[-1]) + 1) * job.size > LARGEST_SIZE:
            batches.append([])
        batches[-1].append(job)
    return batches
