"""Worker processes for chunks of a corpus; results come back in order, whichever worker is faster.

A worker is a new Python process that runs this module. It shares no memory or threads with its parent, and ends when
its parent does. Both ends of its connection are Regard's own processes: nothing that comes from a file is unpickled.
"""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self, TypeVar

from regard.foundation.errors import RegardError

AHEAD = 2
"""Chunks in flight for each worker, which bounds memory."""

Item = TypeVar("Item")
Found = TypeVar("Found")
Step = Callable[[Item], Found]


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ChunkWorkers:
    """Worker processes, started when they are needed first; with fewer than two, everything runs in this process."""

    def __init__(self, count: int, plugins: Iterable[str] = ()) -> None:
        self.count = count if hasattr(socket, "AF_UNIX") else 1
        self._plugins = list(plugins)
        self._processes: list[_Worker] = []
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._threads: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._processes:
            worker.stop()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def map(self, step: Step[Item, Found], items: Iterable[Item]) -> Iterator[Found]:
        """Yield the results of a step for all items, in their order.

        An error is raised where the first item that causes it stands, as if there were one process.
        """
        if self.count < 2:
            yield from map(step, items)
            return
        if self._threads is None:
            self._start()
        assert self._threads is not None
        pending: deque[Future[Any]] = deque()
        source, fault = iter(items), None
        while True:
            try:
                item = next(source)
            except StopIteration:
                break
            except RegardError as error:  # raised after the results of the items before it
                fault = error
                break
            pending.append(self._threads.submit(self._call, step, item))
            if len(pending) >= AHEAD * self.count:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
        if fault is not None:
            raise fault

    def _start(self) -> None:
        self._threads = ThreadPoolExecutor(self.count)
        for _ in range(self.count):
            worker = _Worker(self._plugins)
            self._processes.append(worker)
            self._idle.put(worker)

    def _call(self, step: Step[Any, Any], item: Any) -> Any:
        worker = self._idle.get()
        try:
            return worker.call(step, item)
        finally:
            self._idle.put(worker)


class _Worker:
    """One worker process, as its parent sees it."""

    def __init__(self, plugins: list[str]) -> None:
        own, other = socket.socketpair()
        environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                env=environment | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
                start_new_session=True,  # Ctrl-C in the terminal is for the parent, which stops its workers
            )
        self._connection = Connection(own.detach())
        self._connection.send(plugins)
        self._step: object = None

    def call(self, step: Step[Any, Any], item: Any) -> Any:
        """Return the result of a step for an item."""
        try:
            if step is not self._step:
                self._connection.send(step)
                self._step = step
            self._connection.send((item,))
            found, fault = self._connection.recv()
        except (OSError, EOFError) as error:
            code = self._process.wait()
            cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise RegardError(
                f"A worker process of the preparation ended unexpectedly ({cause}). If memory was short, start again "
                "with fewer workers."
            ) from error
        if fault is None:
            return found
        if isinstance(fault, RegardError):
            raise fault
        raise RuntimeError(f"A worker process failed:\n{fault}")

    def stop(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            self._connection.close()


def work(connection: Connection) -> None:
    """Do steps until the parent ends; the step is sent once, then its items one by one."""
    from regard.config import plugins

    for plugin in connection.recv():
        plugins.load(plugin)
    step: Any = None
    while True:
        try:
            received = connection.recv()
        except (EOFError, OSError):
            return
        if not isinstance(received, tuple):
            step = received
            continue
        reply: tuple[Any, Any]
        try:
            reply = step(*received), None
        except RegardError as error:
            reply = None, error
        except Exception:
            reply = None, traceback.format_exc()
        try:
            connection.send(reply)
        except OSError:
            return


if __name__ == "__main__":
    work(Connection(int(sys.argv[1])))
