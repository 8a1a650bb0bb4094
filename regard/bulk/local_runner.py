"""Local processes: one thread of this process for each worker process, which uses one core.

Workers are not bound to cores: that was not faster (benchmarks/results/bulk.md).
"""

import queue
import threading
from collections.abc import Iterator, Sequence

from regard.bulk.blocks import Block, Event, PendingShard, ReadEvent
from regard.bulk.decoding_options import Assignment
from regard.bulk.runner import core_count
from regard.bulk.supervised_worker import Stopped, SupervisedWorker

WAITING_BLOCKS = 16
"""Translated blocks for each worker that may wait to be written."""


class LocalRunner:
    """Worker processes on this machine."""

    def __init__(self, assignment: Assignment, workers: int | None = None) -> None:
        self._workers = [SupervisedWorker(assignment) for _ in range(workers or core_count())]
        self._results: queue.Queue[Event | BaseException | None] = queue.Queue(WAITING_BLOCKS * len(self._workers))
        self._reading = threading.Lock()
        self._is_stopped = False

    @property
    def restarts(self) -> int:
        """How often a worker has been restarted."""
        return sum(worker.deaths for worker in self._workers)

    def run(self, shards: Sequence[PendingShard]) -> Iterator[Event]:
        """Yield the translated blocks of all shards, and how each shard ends."""
        events = (event for shard in shards for event in shard.read())
        threads = [threading.Thread(target=self._work, args=(worker, events), daemon=True) for worker in self._workers]
        try:
            for thread in threads:
                thread.start()
            working = len(threads)
            while working:
                found = self._results.get()
                if found is None:
                    working -= 1
                elif isinstance(found, BaseException):
                    raise found
                else:
                    yield found
        finally:
            self._is_stopped = True
            for worker in self._workers:
                worker.kill()
            while any(thread.is_alive() for thread in threads):
                self._discard_results()
                for thread in threads:
                    thread.join(0.05)
            for worker in self._workers:
                worker.stop()

    def _discard_results(self) -> None:
        """Make room for threads that wait to hand over a result nobody takes any more."""
        try:
            while True:
                self._results.get_nowait()
        except queue.Empty:
            return

    def _work(self, worker: SupervisedWorker, events: Iterator[ReadEvent]) -> None:
        """Read and translate blocks until there are none."""
        try:
            while not self._is_stopped:
                with self._reading:
                    event = next(events, None)
                if event is None:
                    break
                self._results.put(worker.translate(event) if isinstance(event, Block) else event)
        except Stopped:
            pass
        except BaseException as error:
            self._results.put(error)
        self._results.put(None)
