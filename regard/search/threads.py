"""Searches batches in parallel: one thread per core, each with its own batch.

Threads that share the matrix products of one small batch mostly wait for each other; with a batch each they do not.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Generic, TypeVar

import torch
from torch import Tensor

from regard.search.steps import S, Source, StepModel

MOST = 8
"""Maximum number of threads: more would wait for Python's lock. On larger machines each thread uses several cores."""

Task = TypeVar("Task")
Result = TypeVar("Result")


class Stopped(Exception):
    """The result of this batch is no longer needed."""


class Interruptible(Generic[S]):
    """A step model that stops between two steps once an event is set, and shows the tokens of each step."""

    def __init__(
        self, steps: StepModel[S], stop: Event, show_tokens: Callable[[list[int]], None] | None = None
    ) -> None:
        self._steps, self._stop, self._show_tokens = steps, stop, show_tokens

    def start(self, source: Source) -> S:
        """Return the state before the first token."""
        return self._steps.start(source)

    def step(self, tokens: Tensor, state: S) -> tuple[Tensor, S]:
        """Return the log-probabilities B×V of the next token; raises `Stopped` once the event is set."""
        if self._stop.is_set():
            raise Stopped
        if self._show_tokens is not None:
            self._show_tokens(tokens.tolist())
        return self._steps.step(tokens, state)


def run_in_threads(work: Callable[[Task, Event], Result], tasks: Sequence[Task], most: int = MOST) -> Iterator[Result]:
    """Yield the result of each task, in order; the event that `work` gets is set once results are no longer needed.

    Results do not depend on the number of threads.
    """
    threads = torch.get_num_threads()
    workers = min(threads, len(tasks), most)
    stop = Event()
    if workers <= 1:
        for task in tasks:
            yield work(task, stop)
        return
    pool = ThreadPoolExecutor(workers, "search", initializer=torch.set_num_threads, initargs=(threads // workers,))
    try:
        waiting = [pool.submit(work, task, stop) for task in tasks]
        for future in waiting:
            yield future.result()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)
