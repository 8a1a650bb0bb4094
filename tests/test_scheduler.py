"""The scheduler with workers that are functions: batches, isolation of failures, deadlines, cache and memory."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from regard.serving.errors import RequestError
from regard.serving.jobs import LARGEST_BATCH
from regard.serving.processes import WorkerDied
from regard.serving.scheduler import Scheduler
from regard.serving.worker_model import ModelKey
from tests.virtual_time import run_in_virtual_time


class FakeWorker:
    """A worker that answers with a function of its request."""

    def __init__(self, answer: Callable[[dict[str, Any]], dict[str, Any]], seconds: float = 0.0) -> None:
        self.answer, self.seconds = answer, seconds
        self.memory = self.models = 0
        self.is_alive = True
        self.requests: list[dict[str, Any]] = []

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def call(self, request: dict[str, Any], show: Any = None) -> dict[str, Any]:
        self.requests.append(request)
        await asyncio.sleep(self.seconds)
        return self.answer(request)


def echo(request: dict[str, Any]) -> dict[str, Any]:
    return {"outputs": [{"text": str(content).upper()} for content in request["inputs"]]}


def scheduler(worker: FakeWorker, **options: Any) -> Scheduler:
    found = Scheduler(lambda name: ModelKey(name, versions.get(name, 0), "run", "native"), workers=1, **options)
    found.workers = [worker]  # type: ignore[list-item]
    return found


versions: dict[str, int] = {}


def run(worker: FakeWorker, work: Callable[[Scheduler], Any], **options: Any) -> Any:
    async def whole() -> Any:
        found = scheduler(worker, **options)
        await found.start()
        try:
            return await work(found)
        finally:
            await found.stop()

    return run_in_virtual_time(whole())


def soon(seconds: float = 10.0) -> float:
    return time.monotonic() + seconds


def test_every_caller_gets_its_own_answers_and_calls_share_batches():
    worker = FakeWorker(echo, seconds=0.01)

    async def work(found: Scheduler) -> Any:
        calls = [found.answer("m", "translate", [f"a{n}", f"b{n}"], {}, deadline=soon()) for n in range(50)]
        return await asyncio.gather(*calls)

    answers = run(worker, work)
    assert answers == [[{"text": f"A{n}"}, {"text": f"B{n}"}] for n in range(50)]
    sizes = [len(request["inputs"]) for request in worker.requests]
    assert sum(sizes) == 100 and max(sizes) <= LARGEST_BATCH and len(sizes) < 10


def test_batches_do_not_mix_models_tasks_or_options():
    worker = FakeWorker(echo, seconds=0.01)

    async def work(found: Scheduler) -> Any:
        kinds = [("m", "translate", {}), ("n", "translate", {}), ("m", "predict", {}), ("m", "translate", {"beam": 1})]
        calls = [found.answer(*kind[:2], [f"x{n}"], kind[2], deadline=soon()) for n in range(5) for kind in kinds]
        return await asyncio.gather(*calls)

    run(worker, work)
    assert len(worker.requests) >= 4
    for request in worker.requests:
        assert len({request["model"]["name"], request["task"]}) == 2 and len(request["inputs"]) <= 5


def test_texts_of_very_different_lengths_are_not_padded_to_each_other():
    worker = FakeWorker(echo, seconds=0.01)

    async def work(found: Scheduler) -> Any:
        return await found.answer("m", "translate", ["x" * 5000, *("y" * n for n in range(1, 30))], {}, deadline=soon())

    assert len(run(worker, work)) == 30
    longest = [request["inputs"] for request in worker.requests if any(len(text) == 5000 for text in request["inputs"])]
    assert [len(inputs) for inputs in longest] == [1]


def test_a_poisoned_input_fails_alone():
    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if "poison" in request["inputs"]:
            return {"error": "This text cannot be translated.", "fault": "request"}
        return echo(request)

    worker = FakeWorker(answer, seconds=0.005)

    async def work(found: Scheduler) -> Any:
        calls = [found.answer("m", "translate", [text], {}, deadline=soon()) for text in ["a", "poison", "b", "c"]]
        return await asyncio.gather(*calls, return_exceptions=True)

    first, poisoned, *others = run(worker, work)
    assert [first, *others] == [[{"text": "A"}], [{"text": "B"}], [{"text": "C"}]]
    assert isinstance(poisoned, RequestError) and poisoned.status == 400


def test_an_input_that_kills_workers_fails_after_two_and_others_do_not():
    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if "deadly" in request["inputs"]:
            raise WorkerDied
        return echo(request)

    worker = FakeWorker(answer, seconds=0.005)

    async def work(found: Scheduler) -> Any:
        calls = [found.answer("m", "translate", [text], {}, deadline=soon()) for text in ["a", "deadly", "b"]]
        return await asyncio.gather(*calls, return_exceptions=True)

    first, deadly, last = run(worker, work)
    assert (first, last) == ([{"text": "A"}], [{"text": "B"}])
    assert isinstance(deadly, RequestError) and deadly.status == 500 and "died twice" in str(deadly)


def test_what_was_streamed_is_not_begun_again_when_the_worker_dies():
    """A caller that has seen the beginning of an answer would see it twice."""

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        raise WorkerDied

    worker = FakeWorker(answer, seconds=0.005)

    async def work(found: Scheduler) -> int:
        with pytest.raises(RequestError) as died:
            await found.stream("m", "a", {}, lambda part: None, deadline=soon())
        return died.value.status

    assert run(worker, work) == 500
    assert len(worker.requests) == 1


def test_what_waits_past_its_deadline_is_never_computed():
    worker = FakeWorker(echo, seconds=0.1)

    async def work(found: Scheduler) -> Any:
        slow = asyncio.ensure_future(found.answer("m", "translate", ["first"], {}, deadline=soon()))
        await asyncio.sleep(0.02)
        with pytest.raises(RequestError) as late:
            await found.answer("m", "translate", ["late"], {}, deadline=soon(0.03))
        await slow
        await asyncio.sleep(0.15)
        return late.value.status, found.pending

    assert run(worker, work) == (504, 0)
    assert not any("late" in request["inputs"] for request in worker.requests)


def test_a_caller_that_is_gone_is_dropped():
    worker = FakeWorker(echo, seconds=0.05)

    async def work(found: Scheduler) -> int:
        first = asyncio.ensure_future(found.answer("m", "translate", ["first"], {}, deadline=soon()))
        await asyncio.sleep(0.01)
        gone = asyncio.ensure_future(found.answer("m", "translate", ["gone"], {}, deadline=soon()))
        await asyncio.sleep(0.01)
        gone.cancel()
        await first
        await asyncio.sleep(0.1)
        return found.pending

    assert run(worker, work) == 0
    assert not any("gone" in request["inputs"] for request in worker.requests)


def test_a_full_queue_refuses_at_once():
    worker = FakeWorker(echo, seconds=0.05)

    async def work(found: Scheduler) -> Any:
        calls = [found.answer("m", "translate", [f"x{n}"], {}, deadline=soon()) for n in range(10)]
        return await asyncio.gather(*calls, return_exceptions=True)

    answers = run(worker, work, queue_limit=4)
    refused = [answer for answer in answers if isinstance(answer, RequestError)]
    assert len(refused) == 6 and all(error.status == 503 and error.retry_after for error in refused)


def test_repeats_come_from_the_cache_until_the_model_is_reloaded():
    worker = FakeWorker(echo)

    async def work(found: Scheduler) -> None:
        for _ in range(3):
            assert await found.answer("m", "translate", ["a", "b"], {}, deadline=soon()) == [
                {"text": "A"},
                {"text": "B"},
            ]
        versions["m"] = 1
        await found.answer("m", "translate", ["a"], {}, deadline=soon())

    try:
        run(worker, work)
    finally:
        versions.clear()
    assert [request["inputs"] for request in worker.requests] == [["a", "b"], ["a"]]
    assert worker.requests[-1]["model"]["version"] == 1


def test_the_cache_is_bounded():
    worker = FakeWorker(echo)

    async def work(found: Scheduler) -> None:
        for text in ["a", "b", "c", "a"]:
            await found.answer("m", "translate", [text], {}, deadline=soon())

    run(worker, work, cache_entries=2)
    assert len(worker.requests) == 4


def test_a_full_cache_drops_what_was_not_used_for_longest():
    worker = FakeWorker(echo)

    async def work(found: Scheduler) -> None:
        for text in ["a", "b", "a", "c", "a", "b"]:
            await found.answer("m", "translate", [text], {}, deadline=soon())

    run(worker, work, cache_entries=2)
    assert [request["inputs"] for request in worker.requests] == [["a"], ["b"], ["c"], ["b"]]


def test_idle_models_are_unloaded_above_the_memory_limit():
    worker = FakeWorker(echo)
    worker.memory = 1000

    async def work(found: Scheduler) -> None:
        await found.answer("old", "translate", ["a"], {}, deadline=soon())
        await asyncio.sleep(0.06)
        await found.answer("new", "translate", ["b"], {}, deadline=soon())
        await asyncio.sleep(0.02)

    run(worker, work, memory_limit=500, idle_seconds=0.05)
    unloaded = [request["model"]["name"] for request in worker.requests if request["task"] == "unload"]
    assert unloaded == ["old"]
    worker.requests.clear()
    run(worker, work, memory_limit=5000, idle_seconds=0.05)
    assert not [request for request in worker.requests if request["task"] == "unload"]
