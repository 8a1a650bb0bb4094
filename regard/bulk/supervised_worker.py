"""A worker process that is restarted when it dies or hangs, and the search for lines that cause it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from regard.bulk.blocks import Block, Rejection, TranslatedBlock
from regard.bulk.decoding_options import Assignment
from regard.foundation.errors import RegardError, UsageError

SUSPICIOUS_DEATHS = 2
"""Deaths of the worker over the same lines after which a line that kills it is searched for."""
MOST_STARTS = 5
"""Attempts to start a worker, one after the other."""
FIRST_LIMIT = 600.0
"""Seconds after which a worker that has not replied yet is taken for hung: it may have to export the run first."""
LEAST_LIMIT = 60.0
"""Shortest time limit of later replies, in seconds."""
LIMIT_FACTOR = 30.0
"""A worker is taken for hung if a reply takes so many times as long as the slowest one before."""
COMMAND = (sys.executable, "-m", "regard.bulk.translation_worker")
"""The command of a worker process."""
KILLED = "The worker process ended over this line twice ({})."


class WorkerDied(Exception):
    """The worker process ended before it replied."""


class Stopped(Exception):
    """The job ends, so that the worker is not restarted."""


class SupervisedWorker:
    """A worker process with one thread. A worker that dies or hangs is restarted, and its lines are tried again."""

    def __init__(self, assignment: Assignment, *, quiet: bool = True) -> None:
        self._assignment, self._quiet = assignment, quiet
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._ending = ""
        self._slowest: float | None = None
        self.deaths = 0
        """How often the process has died, or was ended because it hung."""

    def translate(self, block: Block) -> TranslatedBlock:
        """Return the outputs of a block, chunk by chunk."""
        outputs: list[str] = []
        rejected = list(block.rejected)
        tokens = cut = 0
        for chunk in block.chunks:
            reply, killers = self._translate_chunk(chunk)
            reasons = {int(index): reason for index, reason in reply["reasons"].items()} | killers
            rejected += [Rejection(len(outputs) + index, reason) for index, reason in reasons.items()]
            outputs += reply["outputs"]
            tokens += reply["tokens"]
            cut += reply["cut"]
        rejected.sort(key=lambda rejection: rejection.index)
        counts = block.checksum, block.extent, tokens, cut
        return TranslatedBlock(block.shard, block.number, outputs, rejected, *counts)

    def _translate_chunk(self, lines: Sequence[str]) -> tuple[dict[str, Any], dict[int, str]]:
        """Return the reply for a chunk, and the lines that kill the worker, with the reason; these are left out.

        All other lines are translated together, however often the worker has died, so that the outputs of a disturbed
        job equal those of an undisturbed one.
        """
        killers: dict[int, str] = {}
        deaths = 0
        while True:
            kept = ["" if index in killers else line for index, line in enumerate(lines)]
            try:
                return self._call(kept), killers
            except WorkerDied:
                deaths += 1
            if deaths >= SUSPICIOUS_DEATHS:
                killers |= self._find_killers(kept, range(len(kept)))
                deaths = 0

    def _find_killers(self, lines: Sequence[str], places: range) -> dict[int, str]:
        """Return which of some lines kill the worker on their own, twice."""
        some = [lines[index] for index in places]
        if not any(some) or self._survives(some):
            return {}
        if len(places) == 1:
            return {} if self._survives(some) else {places[0]: KILLED.format(self._ending)}
        middle = len(places) // 2
        return self._find_killers(lines, places[:middle]) | self._find_killers(lines, places[middle:])

    def _survives(self, lines: Sequence[str]) -> bool:
        try:
            self._call(lines)
        except WorkerDied:
            return False
        return True

    def _call(self, lines: Sequence[str]) -> dict[str, Any]:
        """Send lines to the process, started if necessary, and return its reply."""
        self.start()
        return self._exchange(json.dumps(lines))

    def start(self) -> None:
        """Start the process, if it does not run; raises the error of a run or an engine that cannot be opened."""
        for _ in range(MOST_STARTS):
            if self._process is not None:
                return
            self._spawn()
            with contextlib.suppress(WorkerDied):
                reply = self._exchange(self._assignment.to_json())
                if "error" in reply:
                    self.stop()
                    raise (UsageError if reply["usage"] else RegardError)(reply["error"])
                return
        raise RegardError(
            f"A worker ended {MOST_STARTS} times while it started ({self._ending}). Its messages are above; if there "
            "are none, memory may be short: use fewer --workers."
        )

    def _spawn(self) -> None:
        if self._stopped:
            raise Stopped
        environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        if self._quiet:
            environment["REGARD_QUIET"] = "1"
        self._process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C in the terminal is for the driver
        )

    def _exchange(self, line: str) -> dict[str, Any]:
        """Send a line and return the reply; raises `WorkerDied`."""
        process = self._process
        if process is None:
            raise WorkerDied
        assert process.stdin is not None and process.stdout is not None
        with self._limited(process) as is_hung:
            try:
                process.stdin.write(line.encode() + b"\n")
                process.stdin.flush()
                answer = process.stdout.readline()
                reply: dict[str, Any] = json.loads(answer)
            except (OSError, ValueError) as error:
                self._bury(process, is_hung=is_hung.is_set())
                raise (Stopped if self._stopped else WorkerDied) from error
        return reply

    @property
    def time_limit(self) -> float:
        """Seconds after which the process is taken for hung."""
        return FIRST_LIMIT if self._slowest is None else max(LEAST_LIMIT, LIMIT_FACTOR * self._slowest)

    @contextlib.contextmanager
    def _limited(self, process: subprocess.Popen[bytes]) -> Iterator[threading.Event]:
        """Kill the process if an exchange exceeds the time limit; the event is then set."""
        is_hung = threading.Event()

        def kill() -> None:
            is_hung.set()
            process.kill()

        timer = threading.Timer(self.time_limit, kill)
        timer.daemon = True
        start = time.monotonic()
        timer.start()
        try:
            yield is_hung
        finally:
            timer.cancel()
        self._slowest = max(self._slowest or 0.0, time.monotonic() - start)

    def _bury(self, process: subprocess.Popen[bytes], *, is_hung: bool) -> None:
        """Note how the process ended, and forget it."""
        limit = self.time_limit
        try:
            code = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        self._close(process)
        self._ending = f"exit code {code}"
        if code < 0:
            with contextlib.suppress(ValueError):
                self._ending = f"signal {signal.Signals(-code).name}"
        if is_hung:
            self._ending = f"no reply within {limit:.0f} seconds"
        self.deaths += 1
        self._process = None

    @staticmethod
    def _close(process: subprocess.Popen[bytes]) -> None:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def kill(self) -> None:
        """End the process at once, from any thread; what it computes is lost, and it is not restarted."""
        self._stopped = True
        process = self._process
        if process is not None:
            process.kill()

    def stop(self) -> None:
        """End the process, which has nothing to do."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._close(self._process)
            self._process = None
