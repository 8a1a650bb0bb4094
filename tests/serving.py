"""A running server for tests: `regard serve` in a process of its own, on a free port of the loopback address."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).parent.parent


@dataclass
class RunningServer:
    """A server process and its address."""

    process: subprocess.Popen
    url: str
    log: Path

    def client(self, timeout: float = 60.0) -> httpx.Client:
        """A client for many threads, which keeps all its connections: closing some at times disturbs the others."""
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        return httpx.Client(base_url=self.url, timeout=timeout, limits=limits)

    def worker_pids(self) -> list[int]:
        """The processes of the workers, which are children of the server."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in children]

    def stop(self, *, kill: bool = False) -> int:
        """Ask the server to finish; returns its exit code."""
        self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        return self.process.wait(timeout=60)


@contextmanager
def running_server(directory: Path, *arguments: str | Path, **environment: str) -> Iterator[RunningServer]:
    """Start `regard serve` with these arguments, and stop it afterwards; its log is in the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / "server.log"
    command = [sys.executable, "-m", "regard", "serve", *map(str, arguments), "--port", "0"]
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=ROOT, env=os.environ | environment
        )
    try:
        until = time.monotonic() + 120
        while not (found := re.search(r"Serving on (\S+) with", log.read_text())):
            assert process.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        yield RunningServer(process, found[1], log)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
