"""The scheduler with workers that only wait: what it refuses, and how long accepted jobs take."""

import asyncio
import random
import time

import pytest

from regard.serving.errors import RequestError
from regard.serving.jobs import GROUP, LARGEST_BATCH, Job, JobQueue, QueueKey
from regard.serving.scheduler import Scheduler
from regard.serving.worker_model import ModelKey
from tests.virtual_time import run_in_virtual_time

SECONDS = 0.05
"""Time of a batch, whatever its size."""


class SlowWorker:
    """Answers each batch with its own inputs after a fixed time."""

    memory = models = 0

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def call(self, request: dict, show: object = None) -> dict:
        await asyncio.sleep(SECONDS)
        return {"outputs": [{"text": text} for text in request["inputs"]]}


def run_load(scheduler: Scheduler, bursts: list[int]) -> list[list[tuple[bool, float]]]:
    """Send bursts of requests, each after the one before; return whether each was accepted, and its seconds."""

    async def ask(text: str) -> tuple[bool, float]:
        start = time.monotonic()
        try:
            found = await scheduler.answer("m", "translate", [text], {}, deadline=start + 60)
        except RequestError as error:
            assert error.status == 503
            assert error.retry_after
            return False, time.monotonic() - start
        assert found == [{"text": text}]
        return True, time.monotonic() - start

    async def run() -> list[list[tuple[bool, float]]]:
        await scheduler.start()
        results = []
        for number, burst in enumerate(bursts):
            results.append(await asyncio.gather(*(ask(f"{number:04} {index:06}") for index in range(burst))))
        await scheduler.stop()
        return results

    return run_in_virtual_time(run())


def make_scheduler(workers: int = 1, **limits: float) -> Scheduler:
    scheduler = Scheduler(lambda name: ModelKey(name, 0, "", ""), workers=workers, cache_entries=0, **limits)
    scheduler.workers = [SlowWorker() for _ in range(workers)]
    return scheduler


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_requests_that_would_wait_too_long_are_refused_at_once(workers):
    bursts = [12 * workers * LARGEST_BATCH, 40 * workers * LARGEST_BATCH, 1]
    first, second, third = run_load(make_scheduler(workers, wait_limit=1.0, queue_limit=10**6), bursts)
    assert all(accepted for accepted, _ in first)  # no estimate yet: a burst within the queue limit is accepted
    seconds = [taken for accepted, taken in second if accepted]
    refused = [taken for accepted, taken in second if not accepted]
    expected = 1.0 / SECONDS * LARGEST_BATCH * workers
    assert 0.9 * expected < len(seconds) < 1.1 * expected
    assert max(seconds) < 1.1
    assert max(refused) == 0.0
    assert third[0][0]  # the backlog is gone


def test_slow_single_requests_do_not_shrink_the_queue():
    """A batch of one takes as long as a full one here; a burst after requests one by one is not refused."""
    *alone, burst = run_load(make_scheduler(wait_limit=1.0), [*[1] * 40, 15 * LARGEST_BATCH])
    assert all(accepted for results in [*alone, burst] for accepted, _ in results)


def test_without_a_limit_nothing_is_refused_below_the_queue_limit():
    first, second = run_load(make_scheduler(queue_limit=2000), [12 * LARGEST_BATCH, 40 * LARGEST_BATCH])
    assert all(accepted for accepted, _ in [*first, *second])


def test_a_long_request_does_not_delay_short_ones():
    """A request of a thousand sentences and, after it, requests of one: these wait for a group of jobs at most."""
    scheduler = make_scheduler(queue_limit=5000)
    taken: list[float] = []

    async def run() -> float:
        await scheduler.start()
        scheduler.pace = SECONDS / LARGEST_BATCH / 10  # what is measured with texts of ten characters
        start = time.monotonic()
        texts = [f"{index:010}" for index in range(1000)]
        long = asyncio.ensure_future(scheduler.answer("m", "translate", texts, {}, deadline=start + 60))
        for number in range(5):
            await asyncio.sleep(0.1)
            asked = time.monotonic()
            await scheduler.answer("m", "translate", [f"short {number:04}"], {}, deadline=asked + 60)
            taken.append(time.monotonic() - asked)
        assert not long.done()
        found = await long
        assert [output["text"] for output in found] == texts
        total = time.monotonic() - start
        await scheduler.stop()
        return total

    total = asyncio.run(run())
    batches = GROUP / LARGEST_BATCH + 2  # the group before, the batch that runs, and its own
    assert max(taken) < batches * SECONDS + 0.2 < total / 2
    assert total < 1000 / LARGEST_BATCH * SECONDS * 1.5  # and batches stay full


def test_a_job_is_overtaken_by_a_group_at_most():
    """However lengths are distributed: a rare length does not wait for ever among jobs of other lengths."""
    chance = random.Random(1)

    async def run() -> list[int]:
        queue, order = JobQueue(), []
        loop = asyncio.get_running_loop()

        def add(number: int) -> None:
            size = 500 if number % 97 == 0 else chance.randrange(10, 60)
            queue.add(Job(QueueKey("m", "t", ""), number, size, loop.create_future(), due=float(number)))

        for number in range(600):
            add(number)
        added = 600
        while (oldest := queue.oldest()) is not None:
            for job in queue.take(oldest, 1):
                order.append(job.content)
                job.result.set_result({})
            while added < 3000 and added < len(order) + 600:  # the queue stays full of younger jobs
                add(added)
                added += 1
        return order

    order = asyncio.run(run())
    assert sorted(order) == list(range(3000))
    place = {number: index for index, number in enumerate(order)}
    assert max(place[number] - number for number in order) < GROUP
