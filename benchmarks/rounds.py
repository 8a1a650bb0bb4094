"""Interleaved rounds: every program once, then every program again; whoever fails is left out, with the reason."""

from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.environments import Unavailable
from benchmarks.machine import SIZE
from benchmarks.places import say
from benchmarks.report import Figure
from benchmarks.worker import Worker

Answer = dict[str, Any]


class Crowd:
    """Programs that are all up, of which one runs at a time."""

    def __init__(self, workers: Mapping[str, Worker], threads: int) -> None:
        self.workers = dict(workers)
        self.failed: dict[str, str] = {}
        self.limit = Figure()
        self._sgemm = Worker("sgemm", "regard", "sgemm", {"size": SIZE}, threads)

    def __enter__(self) -> "Crowd":
        try:
            for name, worker in self.workers.items():
                self._try(name, worker.start)
            for name, worker in self.workers.items():
                self._try(name, worker.first_answer)
            self._sgemm.start().ready()
            for name, worker in self.workers.items():
                self._try(name, worker.warm_up)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (*self.workers.values(), self._sgemm):
            worker.close()

    def measure_limit(self, seconds: float) -> None:
        """FLOP/s of the machine, once more."""
        self.limit.rounds.append(self._sgemm.ask(seconds=seconds)["flops"])

    def each(self, what: str, ask: Callable[[Worker], Answer]) -> dict[str, Answer]:
        """One round: the answer of every program that still runs."""
        found = {}
        for name, worker in self.workers.items():
            if name not in self.failed:
                say(f"  {what}: {name}")
                self._try(name, lambda name=name, worker=worker: found.update({name: ask(worker)}))  # type: ignore[misc]
        return found

    def peaks(self) -> dict[str, float]:
        """The most bytes that each held."""
        return {name: worker.peak() for name, worker in self.workers.items() if name not in self.failed}

    def _try(self, name: str, act: Callable[[], Any]) -> None:
        if name in self.failed:
            return
        try:
            act()
        except Unavailable as error:
            self.failed[name] = str(error)
            self.workers[name].close()
            say(f"  {name} is left out: {error}")
