"""The scheduler: admits requests, batches their sentences across requests, and hands the batches to workers.

A request is refused at once if too much waits already. A batch that fails is tried again sentence by sentence: a
request never fails because of its neighbours.
"""

import asyncio
import json
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from regard.serving.errors import RequestError, deadline_passed, overloaded
from regard.serving.jobs import Job, JobQueue, QueueKey
from regard.serving.measures import Measures
from regard.serving.processes import WorkerDied, WorkerProcess
from regard.serving.worker_model import ModelKey

STUDIES = ("watch", "inspect", "corpus", "describe")
"""Tasks of the studio: one may take long, and its output is large. They are not cached, they do not count for the pace
of translation, and they are interrupted if no request waits for them any more."""
PACE_BATCHES = 32
"""Recent batches, taken while more jobs waited, from which the waiting time is estimated."""
FEWEST_PACE_BATCHES = 4
"""Batches before which there is no estimate."""
FIRST_PACE = 0.0005
"""Seconds per character by which the sentences of a request are spread before there is an estimate."""
LONGEST_CACHED = 2000
"""Characters of the longest text that is cached."""


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
        wait_limit: float | None = None,
        cache_entries: int = 10_000,
        batch_timeout: float = 120.0,
        memory_limit: int | None = None,
        idle_seconds: float = 300.0,
        measures: Measures | None = None,
    ) -> None:
        """`find_model` returns the present version of the model with a name.

        A request is refused while it would wait longer than `wait_limit` seconds, by the estimate of `expected_wait`.
        """
        self.find_model = find_model
        self.queue_limit, self.wait_limit = queue_limit, wait_limit
        self.memory_limit, self.idle_seconds = memory_limit, idle_seconds
        self.measures = measures or Measures()
        self.cache = Cache(cache_entries)
        self.workers = [WorkerProcess(threads=threads, timeout=batch_timeout) for _ in range(workers)]
        self.pace: float | None = None
        """Seconds that a worker needs for a character, from recent batches; `None` if there were too few."""
        self._recent: deque[tuple[float, int]] = deque(maxlen=PACE_BATCHES)
        """Seconds and characters of recent batches, taken while more jobs waited."""
        self._last_used: dict[tuple[int, str], float] = {}  # by worker and model
        self._shared: set[tuple[ModelKey, str]] = set()
        self._loading: set[asyncio.Future[dict[str, Any]]] = set()
        self._queue = JobQueue()
        self._idle = workers
        self._arrived = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.measures.queue_depth.set_function(lambda: self.pending)
        self.measures.models.set_function(lambda: sum(worker.models for worker in self.workers))
        self.measures.worker_memory.set_function(lambda: sum(worker.memory for worker in self.workers))

    async def start(self) -> None:
        """Start all workers and their loops."""
        for worker in self.workers:
            await worker.start()
        self._tasks = [asyncio.create_task(self._serve(worker)) for worker in self.workers]

    async def stop(self) -> None:
        """Stop the loops and the workers; jobs that still wait fail."""
        running: list[asyncio.Future[Any]] = [*self._tasks, *self._loading]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for job in self._queue.drain():
            _fail(job, RequestError(503, "The server is shutting down. Try again later."))
        await asyncio.gather(*(worker.stop() for worker in self.workers))

    async def answer(
        self,
        model: str,
        task: str,
        inputs: Sequence[Any],
        options: Mapping[str, Any],
        *,
        deadline: float,
        is_admitted: bool = False,
        show: Callable[[str], None] | None = None,
    ) -> list[dict[str, Any]]:
        """Return the output for each input, in order; `deadline` is a time of `time.monotonic`.

        `show` gets the progress of a worker that computes the output of a single input. Raises `RequestError` if the
        server is overloaded (unless `is_admitted`: this is a later part of a request that was admitted), the deadline
        passes, or an input cannot be answered. If the caller is cancelled, its jobs that still wait are dropped.
        """
        key = QueueKey(model, task, json.dumps(dict(options), sort_keys=True))
        version = self.find_model(model)
        outputs: dict[int, dict[str, Any]] = {}
        new: list[tuple[int, Any]] = []
        for index, content in enumerate(inputs):
            known = self.cache.get((version, key, content)) if isinstance(content, str) else None
            if known is None:
                new.append((index, content))
            else:
                outputs[index] = known
        self.measures.cached.inc(len(outputs))
        if new:
            jobs = self._make_jobs(key, [content for _, content in new])
            if show is not None:
                jobs[0].show = show
            if not is_admitted:
                self._check_room(jobs, deadline)
            found = await self._wait_for(jobs, deadline)
            outputs |= {index: output for (index, _), output in zip(new, found, strict=True)}
        return [outputs[index] for index in range(len(inputs))]

    async def stream(
        self, model: str, content: str, options: Mapping[str, Any], show: Callable[[str], None], *, deadline: float
    ) -> dict[str, Any]:
        """Return the output of one input, whose parts `show` gets as they are generated."""
        key = QueueKey(model, "stream", json.dumps(dict(options), sort_keys=True))
        (job,) = self._make_jobs(key, [content])
        job.show = show
        self._check_room([job], deadline)
        (output,) = await self._wait_for([job], deadline)
        return output

    def _make_jobs(self, key: QueueKey, contents: Sequence[Any]) -> list[Job]:
        """Return a job for each content, each due when those before it could be done."""
        jobs, due = [], time.monotonic()
        pace = (self.pace or FIRST_PACE) / len(self.workers)
        for content in contents:
            size = len(content) if isinstance(content, str) else len(json.dumps(content))
            jobs.append(Job(key, content, size, asyncio.get_running_loop().create_future(), due))
            due += size * pace
        return jobs

    async def _wait_for(self, jobs: Sequence[Job], deadline: float | None) -> list[dict[str, Any]]:
        """Queue jobs and return their outputs; they are dropped at the deadline, or if the caller is cancelled."""
        for job in jobs:
            self._queue.add(job)
        self._arrived.set()
        waiting = asyncio.gather(*(job.result for job in jobs))
        try:
            return await asyncio.wait_for(waiting, deadline and max(deadline - time.monotonic(), 0.0))
        except TimeoutError:
            self.measures.rejected.labels("deadline").inc()
            raise deadline_passed() from None
        finally:
            for job in jobs:
                job.result.cancel()

    def _check_room(self, jobs: Sequence[Job], deadline: float) -> None:
        """Raise the `RequestError` of an overloaded server, or if these jobs would not be done by their deadline."""
        size = self._queue.pending_size + sum(job.size for job in jobs)
        is_late = size * (self.pace or 0.0) / len(self.workers) > deadline - time.monotonic()
        if self.pending and (self.is_overloaded or is_late or self.pending + len(jobs) > self.queue_limit):
            self.measures.rejected.labels("queue").inc()
            raise overloaded()

    @property
    def pending(self) -> int:
        """Jobs that wait or run."""
        return self._queue.pending

    @property
    def is_overloaded(self) -> bool:
        """Whether new requests are refused."""
        is_slow = self.wait_limit is not None and self.expected_wait > self.wait_limit
        return is_slow or self.pending >= self.queue_limit

    @property
    def expected_wait(self) -> float:
        """Seconds until all jobs that are due are done, estimated from recent batches; 0 if there were too few."""
        return self._queue.due_size * (self.pace or 0.0) / len(self.workers)

    async def load(self, version: ModelKey, task: str) -> None:
        """Load a version of a model in all workers; raises `RequestError` if one cannot, and the old one stays."""
        try:
            replies = await asyncio.gather(*(self._load(worker, version, task) for worker in self.workers))
        except WorkerDied:
            raise RequestError(500, "A worker that loaded the model died. The old model stays in use.") from None
        for reply in replies:
            if "error" in reply:
                raise RequestError(500, f"{reply['error']} The old model stays in use.")

    async def _load(self, worker: WorkerProcess, version: ModelKey, task: str) -> dict[str, Any]:
        self._last_used[id(worker), version.name] = time.monotonic()
        request = {"model": version._asdict(), "task": "load", "inputs": [], "options": {"task": task}}
        return await worker.call(request)

    def _share(self, version: ModelKey, task: str, owner: WorkerProcess) -> None:
        """Load a model that a worker has loaded in the others, too, before they need it and while it can be read."""
        if (version, task) in self._shared:
            return
        self._shared.add((version, task))
        for worker in self.workers:
            if worker is not owner:
                loading = asyncio.ensure_future(self._load(worker, version, task))
                self._loading.add(loading)
                loading.add_done_callback(self._forget_loading)

    def _forget_loading(self, loading: "asyncio.Future[dict[str, Any]]") -> None:
        self._loading.discard(loading)
        if not loading.cancelled():
            loading.exception()  # a worker that died is started again when it is needed

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
        """Wait for jobs, and take a batch: a job does not wait for others, which gather while workers are busy."""
        while (oldest := self._queue.oldest()) is None:
            self._arrived.clear()
            await self._arrived.wait()
        return self._queue.take(oldest, max(self._idle, 1))

    async def _run(self, worker: WorkerProcess, batch: list[Job]) -> None:
        key = batch[0].key
        others_wait, size = not self._queue.is_empty, sum(job.size for job in batch)
        version = self.find_model(key.model)
        now = time.monotonic()
        self._last_used[id(worker), key.model] = now
        self.measures.batch_size.observe(len(batch))
        for job in batch:
            self.measures.queue_seconds.observe(max(now - job.due, 0.0))
        request = {
            "model": version._asdict(),
            "task": key.task,
            "inputs": [job.content for job in batch],
            "options": json.loads(key.options),
        }
        try:
            reply = await _call(worker, request, batch)
        except WorkerDied:
            self.measures.restarts.inc()
            self._retry_killers(batch)
            await worker.start()
            return
        if "error" in reply:
            if len(batch) > 1:
                self._retry(batch)
            else:
                _fail(batch[0], RequestError(400 if reply.get("fault") == "request" else 500, reply["error"]))
            return
        self._share(version, key.task, worker)
        self.measures.tokens.inc(reply.get("tokens", 0))
        if (
            others_wait
            and not batch[0].is_alone
            and key.task not in STUDIES
            and not any("pieces" in output for output in reply["outputs"])
        ):
            self._measure_pace(time.monotonic() - now, size)
        for job, output in zip(batch, reply["outputs"], strict=True):
            if "pieces" in output:
                self._split(job, output["pieces"])
                continue
            if not job.result.done():
                job.result.set_result(output)
            if (
                isinstance(job.content, str)
                and job.size <= LONGEST_CACHED
                and job.show is None
                and key.task not in STUDIES
            ):
                self.cache.put((version, key, job.content), output)
        await self._free_memory(worker)

    def _split(self, job: Job, pieces: Sequence[tuple[str, str]]) -> None:
        """Replace a job by jobs for its pieces, each a text and the white space after it."""
        if job.result.done():
            return
        self._queue.resize(job, 0)
        key = job.key._replace(options=json.dumps(json.loads(job.key.options) | {"whole": True}, sort_keys=True))
        parts = self._make_jobs(key, [text for text, _ in pieces if text])

        async def join() -> None:
            try:
                found = iter(await self._wait_for(parts, None))
            except RequestError as error:
                _fail(job, error)
                return
            if not job.result.done():
                job.result.set_result(
                    {"text": "".join((next(found)["text"] if text else "") + space for text, space in pieces)}
                )

        task = asyncio.ensure_future(join())
        job.result.add_done_callback(lambda _: task.cancel())

    def _measure_pace(self, seconds: float, size: int) -> None:
        self._recent.append((seconds, size))
        if len(self._recent) >= FEWEST_PACE_BATCHES:
            self.pace = sum(seconds for seconds, _ in self._recent) / max(sum(size for _, size in self._recent), 1)

    def _retry_killers(self, batch: list[Job]) -> None:
        """Try the jobs of a worker that died again, each alone; one of which two workers died alone fails."""
        for job in batch:
            job.deaths += 2 if job.show else job.is_alone  # what was streamed cannot be taken back
            if job.deaths > 1:
                _fail(job, RequestError(500, "The worker died twice while it answered this request."))
        self._retry(batch)

    def _retry(self, batch: list[Job]) -> None:
        self._queue.retry([job for job in batch if not job.result.done()])
        self._arrived.set()

    async def _free_memory(self, worker: WorkerProcess) -> None:
        """If the workers exceed the memory limit, unload models of this worker that have been idle for long."""
        if self.memory_limit is None or sum(other.memory for other in self.workers) <= self.memory_limit:
            return
        now = time.monotonic()
        for (owner, name), used in list(self._last_used.items()):
            if owner == id(worker) and now - used >= self.idle_seconds:
                self._last_used.pop((owner, name))
                await worker.call({"model": {"name": name}, "task": "unload", "inputs": [], "options": {}})


async def _call(worker: WorkerProcess, request: Mapping[str, Any], batch: Sequence[Job]) -> dict[str, Any]:
    """Return a worker's reply to a batch; a computation for the studio that no request waits for is interrupted."""
    if request["task"] not in STUDIES:
        return await worker.call(request, batch[0].show)
    interrupt = partial(_interrupt_unless_wanted, worker, batch)
    for job in batch:
        job.result.add_done_callback(interrupt)
    try:
        return await worker.call(request, batch[0].show)
    finally:
        for job in batch:
            job.result.remove_done_callback(interrupt)


def _interrupt_unless_wanted(worker: WorkerProcess, batch: Sequence[Job], _: object) -> None:
    """Interrupt a worker if no request waits for any output of its batch."""
    if all(job.result.done() for job in batch):
        worker.interrupt()


def _fail(job: Job, error: RequestError) -> None:
    if not job.result.done():
        job.result.set_exception(error)
