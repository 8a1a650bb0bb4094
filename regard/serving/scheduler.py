"""The scheduler: batches sentences across requests and hands them to workers.

Sentences of the same model and options wait in one queue. An idle worker takes the oldest of them and others of similar
length, so that a batch has little padding and a bounded cost. A batch that fails is tried again sentence by sentence:
a request never fails because of its neighbours.
"""

import asyncio
import json
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from regard.serving.errors import RequestError, deadline_passed, overloaded
from regard.serving.measures import Measures
from regard.serving.processes import WorkerDied, WorkerProcess
from regard.serving.worker import ModelKey

LARGEST_BATCH = 32
"""Sentences in a batch."""
LARGEST_SIZE = 6000
"""Characters in a batch, padding included; a longer text is a batch of its own."""
WINDOW = 0.002
"""Seconds that a sentence waits for others if a worker is idle."""
PACE_BATCHES = 32
"""Recent batches, taken while more jobs waited, from which the waiting time is estimated."""
FEWEST_PACE_BATCHES = 8
"""Batches before which there is no estimate."""
LONGEST_CACHED = 2000
"""Characters of the longest text that is cached."""


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
    queued: float = 0.0
    """When it was added to its queue."""
    alone: bool = False
    """Whether it is tried in a batch of its own, because a batch with it failed."""
    deaths: int = 0
    """Workers that died of it, when it was alone."""
    show: Callable[[str], None] | None = None
    """Gets parts of the output while it grows; such a job is always alone."""


class Cache:
    """The outputs of recent sentences, least recently used first."""

    def __init__(self, entries: int) -> None:
        self.entries = entries
        self._outputs: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()

    def get(self, key: tuple[Any, ...]) -> dict[str, Any] | None:
        """Return an output, if it is known."""
        found = self._outputs.get(key)
        if found is not None:
            self._outputs.move_to_end(key)
        return found

    def put(self, key: tuple[Any, ...], output: dict[str, Any]) -> None:
        """Keep an output, and drop the oldest ones that there is no room for."""
        if self.entries:
            self._outputs[key] = output
            while len(self._outputs) > self.entries:
                self._outputs.popitem(last=False)


class Scheduler:
    """Queues of jobs, and the workers that serve them."""

    def __init__(
        self,
        find_model: Callable[[str], ModelKey],
        *,
        workers: int,
        threads: int = 1,
        queue_limit: int = 2000,
        cache_entries: int = 10_000,
        batch_timeout: float = 120.0,
        wait_limit: float | None = None,
        memory_limit: int | None = None,
        idle_seconds: float = 300.0,
        measures: Measures | None = None,
    ) -> None:
        """`find_model` returns the present version of the model with a name.

        While the jobs that are pending are estimated to take longer than `wait_limit` seconds, requests are refused.
        """
        self.find_model = find_model
        self.queue_limit, self.wait_limit = queue_limit, wait_limit
        self.memory_limit, self.idle_seconds = memory_limit, idle_seconds
        self.measures = measures or Measures()
        self.cache = Cache(cache_entries)
        self.workers = [WorkerProcess(threads=threads, timeout=batch_timeout) for _ in range(workers)]
        self.pending = 0
        """Jobs that wait or run."""
        self._last_used: dict[tuple[int, str], float] = {}  # by worker and model
        self.pending_size = 0
        """Their characters."""
        self._pace: deque[tuple[float, int]] = deque(maxlen=PACE_BATCHES)
        """Seconds and characters of recent batches, taken while more jobs waited."""
        self._queues: dict[QueueKey, list[Job]] = {}
        self._idle = workers
        self._arrived = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start all workers and their loops."""
        for worker in self.workers:
            await worker.start()
        self._tasks = [asyncio.create_task(self._serve(worker)) for worker in self.workers]

    async def stop(self) -> None:
        """Stop the loops and the workers; jobs that still wait fail."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for queue in self._queues.values():
            for job in queue:
                if not job.result.done():
                    job.result.set_exception(RequestError(503, "The server is shutting down. Try again later."))
        await asyncio.gather(*(worker.stop() for worker in self.workers))

    async def answer(
        self, model: str, task: str, inputs: Sequence[Any], options: Mapping[str, Any], *, deadline: float
    ) -> list[dict[str, Any]]:
        """Return the output for each input, in order; `deadline` is a time of `time.monotonic`.

        Raises `RequestError` if the queue is full, the deadline passes, or an input cannot be answered. If the caller
        is cancelled, its jobs that still wait are dropped.
        """
        key = QueueKey(model, task, json.dumps(dict(options), sort_keys=True))
        version = self.find_model(model)
        outputs: list[dict[str, Any] | None] = [None] * len(inputs)
        jobs: list[tuple[int, Job]] = []
        loop = asyncio.get_running_loop()
        for index, content in enumerate(inputs):
            outputs[index] = self.cache.get((version, key, content)) if isinstance(content, str) else None
            if outputs[index] is None:
                size = len(content) if isinstance(content, str) else len(json.dumps(content))
                jobs.append((index, Job(key, content, size, loop.create_future())))
        self.measures.cached.inc(len(inputs) - len(jobs))
        if not jobs:
            return [output for output in outputs if output is not None]
        is_full = self.pending + len(jobs) > self.queue_limit
        is_slow = self.wait_limit is not None and self.expected_wait > self.wait_limit
        if self.pending and (is_full or is_slow):
            self.measures.rejected.labels("queue").inc()
            raise overloaded()
        for _, job in jobs:
            self._add(job)
        waiting = asyncio.gather(*(job.result for _, job in jobs))
        try:
            found = await asyncio.wait_for(waiting, max(deadline - time.monotonic(), 0.0))
        except TimeoutError:
            self.measures.rejected.labels("deadline").inc()
            raise deadline_passed() from None
        finally:
            for _, job in jobs:
                job.result.cancel()
        for (index, _), output in zip(jobs, found, strict=True):
            outputs[index] = output
        return [output for output in outputs if output is not None]

    async def stream(
        self, model: str, content: str, options: Mapping[str, Any], show: Callable[[str], None], *, deadline: float
    ) -> dict[str, Any]:
        """Return the output of one input, whose parts `show` gets as they are generated."""
        key = QueueKey(model, "stream", json.dumps(dict(options), sort_keys=True))
        if self.pending >= self.queue_limit:
            self.measures.rejected.labels("queue").inc()
            raise overloaded()
        job = Job(key, content, len(content), asyncio.get_running_loop().create_future(), alone=True, show=show)
        self._add(job)
        try:
            return await asyncio.wait_for(job.result, max(deadline - time.monotonic(), 0.0))
        except TimeoutError:
            self.measures.rejected.labels("deadline").inc()
            raise deadline_passed() from None
        finally:
            job.result.cancel()

    @property
    def expected_wait(self) -> float:
        """Seconds until all pending jobs are done, estimated from recent batches; 0 if there were too few."""
        if len(self._pace) < FEWEST_PACE_BATCHES:
            return 0.0
        seconds = sum(seconds for seconds, _ in self._pace)
        size = sum(size for _, size in self._pace)
        return self.pending_size * seconds / max(size, 1) / len(self.workers)

    async def load(self, key: ModelKey, task: str) -> None:
        """Load a version of a model in one worker; raises `RequestError` if it cannot be loaded."""
        worker = self.workers[0]
        request = {"model": key._asdict(), "task": "load", "inputs": [], "options": {"task": task}}
        try:
            reply = await worker.call(request)
        except WorkerDied:
            raise RequestError(500, "The worker that loaded the model died. The old model stays in use.") from None
        if "error" in reply:
            raise RequestError(500, f"{reply['error']} The old model stays in use.")

    def _add(self, job: Job) -> None:
        job.queued = time.monotonic()
        self._queues.setdefault(job.key, []).append(job)
        self.pending += 1
        self.pending_size += job.size
        job.result.add_done_callback(lambda _: self._is_done(job))
        self.measures.queue_depth.set(self.pending)
        self._arrived.set()

    def _is_done(self, job: Job) -> None:
        self.pending -= 1
        self.pending_size -= job.size
        self.measures.queue_depth.set(self.pending)

    async def _serve(self, worker: WorkerProcess) -> None:
        """Give batches to a worker, one after the other."""
        while True:
            batch = await self._next_batch()
            self._idle -= 1
            try:
                await self._run(worker, batch)
            except Exception as error:  # never lose a loop: the jobs fail, the worker goes on
                for job in batch:
                    _fail(job, RequestError(500, f"This request failed in the server ({type(error).__name__})."))
            finally:
                self._idle += 1

    async def _next_batch(self) -> list[Job]:
        """Wait for jobs, and take a batch: the oldest job and those of similar length."""
        while True:
            oldest = self._oldest()
            if oldest is None:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            waited = time.monotonic() - oldest.queued
            if waited < WINDOW and not oldest.alone and len(self._queues[oldest.key]) < LARGEST_BATCH:
                await asyncio.sleep(WINDOW - waited)
                oldest = self._oldest()
                if oldest is None:
                    continue
            return self._take(oldest)

    def _oldest(self) -> Job | None:
        """Return the oldest job that is still wanted; forget those that are not."""
        for key in list(self._queues):
            queue = self._queues[key] = [job for job in self._queues[key] if not job.result.done()]
            if not queue:
                del self._queues[key]
        return min((queue[0] for queue in self._queues.values()), key=lambda job: job.queued, default=None)

    def _take(self, oldest: Job) -> list[Job]:
        queue = self._queues[oldest.key]
        if oldest.alone:
            queue.remove(oldest)
            return [oldest]
        together = [job for job in queue if not job.alone]
        share = -(-len(together) // max(self._idle, 1))  # leave work for other idle workers
        together.sort(key=lambda job: abs(job.size - oldest.size))
        batch: list[Job] = []
        longest = 0
        for job in together[: min(share, LARGEST_BATCH)]:
            longest = max(longest, job.size)
            if batch and longest * (len(batch) + 1) > LARGEST_SIZE:
                break
            batch.append(job)
        taken = set(map(id, batch))
        self._queues[oldest.key] = [job for job in queue if id(job) not in taken]
        return batch

    async def _run(self, worker: WorkerProcess, batch: list[Job]) -> None:
        key = batch[0].key
        others_wait = key in self._queues and bool(self._queues[key])
        version = self.find_model(key.model)
        now = time.monotonic()
        self._last_used[id(worker), key.model] = now
        self.measures.batch_size.observe(len(batch))
        for job in batch:
            self.measures.queue_seconds.observe(now - job.queued)
        request = {
            "model": version._asdict(),
            "task": key.task,
            "inputs": [job.content for job in batch],
            "options": json.loads(key.options),
        }
        try:
            reply = await worker.call(request, batch[0].show)
        except WorkerDied:
            self.measures.restarts.inc()
            self._retry(batch)
            await worker.start()
            return
        if "error" in reply:
            if len(batch) > 1:
                self._requeue(batch)
            else:
                _fail(batch[0], RequestError(400 if reply.get("fault") == "request" else 500, reply["error"]))
            return
        if others_wait and not batch[0].alone:
            self._pace.append((time.monotonic() - now, sum(job.size for job in batch)))
        for job, output in zip(batch, reply["outputs"], strict=True):
            if not job.result.done():
                job.result.set_result(output)
            if isinstance(job.content, str) and job.size <= LONGEST_CACHED and job.show is None:
                self.cache.put((version, key, job.content), output)
        await self._free_memory(worker)

    def _retry(self, batch: list[Job]) -> None:
        """Try the jobs of a worker that died again, each alone; one that was alone twice fails."""
        for job in batch:
            job.deaths += 2 if job.show else job.alone  # what was streamed cannot be taken back
        for job in [job for job in batch if job.deaths > 1]:
            _fail(job, RequestError(500, "The worker died twice while it answered this request."))
        self._requeue([job for job in batch if job.deaths <= 1])

    def _requeue(self, batch: list[Job]) -> None:
        for job in batch:
            if not job.result.done():
                job.alone = True
                self._queues.setdefault(job.key, []).insert(0, job)
        self._arrived.set()

    async def _free_memory(self, worker: WorkerProcess) -> None:
        """If the workers exceed the memory limit, unload models of this worker that have been idle for long."""
        total = sum(other.memory for other in self.workers)
        self.measures.worker_memory.set(total)
        if self.memory_limit is None or total <= self.memory_limit:
            return
        now = time.monotonic()
        for (owner, name), used in list(self._last_used.items()):
            if owner == id(worker) and now - used >= self.idle_seconds:
                self._last_used.pop((owner, name))
                await worker.call({"model": {"name": name}, "task": "unload", "inputs": [], "options": {}})


def _fail(job: Job, error: RequestError) -> None:
    if not job.result.done():
        job.result.set_exception(error)
