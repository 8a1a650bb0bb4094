"""Batches searched side by side: a thread for each core, each with a batch of its own.

Two threads that share the products of one small batch mostly wait for each other; with a batch each they hardly do.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Generic, TypeVar

import torch
from torch import Tensor

from regard.search.steps import S, Source, StepModel

MOST = 8
"""Threads at most: with more they would wait for Python's lock; each gets several cores instead."""

Task = TypeVar("Task")
Result = TypeVar("Result")


class Stopped(Exception):
    """Nobody waits for this batch any longer."""


class Interruptible(Generic[S]):
    """A step model that stops between two steps when it is told to."""

    def __init__(self, steps: StepModel[S], stop: Event) -> None:
        self._steps, self._stop = steps, stop

    def start(self, source: Source) -> S:
        """The state before the first token."""
        return self._steps.start(source)

    def step(self, tokens: Tensor, state: S) -> tuple[Tensor, S]:
        """Log-probabilities B×V of the next token, unless it is too late."""
        if self._stop.is_set():
            raise Stopped
        return self._steps.step(tokens, state)


def side_by_side(work: Callable[[Task, Event], Result], tasks: Sequence[Task], most: int = MOST) -> Iterator[Result]:
    """The result of each task, in order; work is told by its event when nobody waits for it any longer.

    What a task gives does not depend on how many threads there are.
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
        for each in waiting:
            yield each.result()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)
