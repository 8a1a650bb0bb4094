"""A measured program as a process of its own: it starts, says that it is ready, and does a round when it is told."""

import json
import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.environments import Unavailable, interpreter
from benchmarks.places import CACHE, PROGRAMS, ROOT

PATIENCE = 300.0
"""Seconds in which an answer must come."""


def cores() -> list[int]:
    """The two cores that everything is measured on."""
    return sorted(os.sched_getaffinity(0))[:2] if hasattr(os, "sched_getaffinity") else []


def surroundings(threads: int) -> dict[str, str]:
    """The environment of a measured program."""
    quiet = {"TOKENIZERS_PARALLELISM": "true", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    quiet["PYTHONWARNINGS"] = "ignore"
    several = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), str(threads))
    return {**os.environ, **quiet, **several}


def pinned(command: list[str]) -> list[str]:
    """A command that keeps to two cores, where the system can say so."""
    found = cores()
    if len(found) < 2 or os.cpu_count() == 2 or not Path("/usr/bin/taskset").exists():
        return command
    return ["/usr/bin/taskset", "-c", ",".join(map(str, found)), *command]


class Worker:
    """One program in the environment of one peer."""

    def __init__(
        self, name: str, peer: str, program: str, settings: dict[str, Any], threads: int = 2, *, tree: Path = ROOT
    ) -> None:
        self.name, self.peer, self.program = name, peer, program
        self.settings, self.threads, self.tree = settings, threads, tree
        self._process: subprocess.Popen[bytes] | None = None
        self._answers = -1
        self._rest = b""
        self.log = CACHE / "logs" / f"{name.replace(' ', '-').replace('/', '-')}.log"

    def start(self) -> Self:
        """Start the program; `ready` waits for it."""
        python = interpreter(self.peer)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._answers, theirs = os.pipe()
        command = pinned([str(python), str(self._program), json.dumps(self.settings)])
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs,),
                env=self._environment(str(theirs)),
                cwd=self.tree,
                start_new_session=True,
            )
        os.close(theirs)
        return self

    def first_answer(self) -> dict[str, Any]:
        """What the program says first: that all is in memory, or all that it has to say."""
        return self._answer()

    def warm_up(self) -> None:
        """Let the program do for once what it will be measured at."""
        self.ask(do="warm up")

    def ready(self) -> None:
        """Wait until the program can be measured."""
        self.first_answer()
        self.warm_up()

    def ask(self, **order: Any) -> dict[str, Any]:
        """One round: send the order, wait for the answer."""
        process = self._running()
        assert process.stdin is not None
        try:
            process.stdin.write((json.dumps(order) + "\n").encode())
            process.stdin.flush()
        except BrokenPipeError:
            raise Unavailable(self._last_words()) from None
        return self._answer()

    def peak(self) -> float:
        """The most bytes that the program and its children have held; what they share is counted once."""
        return peak_of(self._running().pid)

    def close(self) -> None:
        """End the program and whatever it started."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin:
            process.stdin.close()
        os.close(self._answers)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def _program(self) -> Path:
        programs = PROGRAMS if self.tree == ROOT else self.tree / "benchmarks" / "programs"
        return programs / f"{self.program}.py"

    def _environment(self, answers: str) -> dict[str, str]:
        """The environment of the program; another checkout comes before the installed one."""
        other = {} if self.tree == ROOT else {"PYTHONPATH": str(self.tree)}
        return {**surroundings(self.threads), "BENCH_ANSWERS": answers, **other}

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise Unavailable("it is not running")
        return self._process

    def _answer(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\n" not in self._rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                raise Unavailable(f"no answer within {PATIENCE:.0f} s ({self.log.name})")
            more = os.read(self._answers, 1 << 16)
            if not more:
                raise Unavailable(self._last_words())
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        if "failed" in found:
            raise Unavailable(str(found["failed"]))
        return found

    def _last_words(self) -> str:
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return f"it ended with: {lines[-1][:200]}" if lines else "it ended without a word"


def peak_of(pid: int) -> float:
    """Return the most bytes that a process and its children have held; what they share is counted once."""
    found = _family(pid)
    high = sum(_status(pid, "VmHWM") for pid in found)
    if len(found) == 1:
        return high
    return high - sum(_status(pid, "VmRSS") for pid in found) + sum(_proportional(pid) for pid in found)


def _family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found = [pid]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except OSError:
                continue
    return found


def _status(pid: int, name: str) -> float:
    return _field(Path(f"/proc/{pid}/status"), name)


def _proportional(pid: int) -> float:
    return _field(Path(f"/proc/{pid}/smaps_rollup"), "Pss")


def _field(path: Path, name: str) -> float:
    """A figure in kB from a file of the system, in bytes; 0 where it is not told."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")), 0.0)
