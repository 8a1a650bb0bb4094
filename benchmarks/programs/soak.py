"""Overload `regard serve` for minutes, and print as JSON what became of every request.

`python benchmarks/programs/soak.py RUN FILE --minutes 20 [--kill-every 10] [--answers answers.json]`

The program starts a server without a cache, asks for every sentence of FILE one by one (the sequential answers, kept in
`--answers`), measures the capacity with 64 connections, and then sends requests at random times of twice that mean
rate, whatever has been answered. Every answer is compared with the sequential one. With `--kill-every`, a worker is
killed every so many seconds. At the end, while requests still arrive, the server gets SIGTERM: every request that was
sent before must be answered.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

UNREAD = 0.25
"""Seconds before SIGTERM in which a request may have been sent and not yet been read by the server."""


@dataclass
class Request:
    """One request, and what became of it."""

    text: str
    sent: float
    status: int = 0
    """0: no answer."""
    is_right: bool = False
    seconds: float = 0.0
    error: str = ""


@dataclass
class Client:
    """Connections to a server, which are used again."""

    port: int
    idle: list = field(default_factory=list)

    async def ask(self, text: str) -> tuple[int, str]:
        """Return status and translation of one request."""
        while self.idle and self.idle[-1][0].at_eof():
            self.idle.pop()[1].close()
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection("127.0.0.1", self.port)
        body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
        head = f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        writer.write(head.encode() + b"\r\n\r\n" + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = re.search(r"content-length: (\d+)", answer)
        content = json.loads(await reader.readexactly(int(length[1]) if length else 0))
        if "connection: close" in answer:
            writer.close()
        else:
            self.idle.append((reader, writer))
        return int(answer.split()[1]), content.get("translatedText", content.get("error", ""))


def proportional_memory(pid: int) -> int:
    """Return the proportional memory of a process in bytes; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return 0


def workers_of(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def start_server(run: Path, engine: str, directory: Path) -> tuple[subprocess.Popen, int]:
    """Start a server with two workers and no cache; return it and its port."""
    settings, log = directory / "serving.yaml", directory / "server.log"
    settings.write_text("limits: {cache: 0}\n")
    command = [sys.executable, "-m", "regard", "serve", f"soak={run}", "--config", str(settings), "--port", "0"]
    command += ["--engine", engine, "--workers", "2", "--languages", "en-de"]
    with log.open("w") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output)
    while not (found := re.search(r"Serving on http://\S+:(\d+) with", log.read_text())):
        if server.poll() is not None:
            sys.exit(log.read_text())
        time.sleep(0.1)
    return server, int(found[1])


async def measure_capacity(client: Client, texts: list[str], connections: int = 64) -> float:
    """Return requests per second with so many connections."""
    remaining = iter(texts)

    async def work() -> None:
        for text in remaining:
            await client.ask(text)

    start = time.monotonic()
    await asyncio.gather(*(work() for _ in range(connections)))
    return len(texts) / (time.monotonic() - start)


class Soak:
    """An overload of a server, and what is recorded of it."""

    def __init__(self, server: subprocess.Popen, client: Client, expected: dict[str, str]) -> None:
        self.server, self.client, self.expected = server, client, expected
        self.requests: list[Request] = []
        self.memory: list[tuple[float, int, int]] = []
        """Seconds, memory of the front process, memory of the workers."""
        self.wrong: list[tuple[str, str, str]] = []
        """Text, sequential answer and answer, where they differ."""
        self.kills = 0
        self.stopped: float | None = None
        """When SIGTERM was sent."""

    async def send(self, text: str) -> None:
        """Send one request and record what became of it."""
        request = Request(text, time.monotonic())
        self.requests.append(request)
        try:
            request.status, found = await self.client.ask(text)
            request.is_right = request.status == 200 and found == self.expected[text]
            request.error = found if request.status != 200 else ""
            if request.status == 200 and not request.is_right:
                self.wrong.append((text, self.expected[text], found))
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            request.error = type(error).__name__
        request.seconds = time.monotonic() - request.sent

    async def sample(self, kill_every: float | None) -> None:
        """Sample memory every ten seconds, and kill workers."""
        start, last = time.monotonic(), time.monotonic()
        while self.stopped is None:
            now = time.monotonic()
            workers = workers_of(self.server.pid)
            if not self.memory or now - start - self.memory[-1][0] >= 10:
                held = sum(map(proportional_memory, workers))
                self.memory.append((now - start, proportional_memory(self.server.pid), held))
                statuses = Counter(request.status for request in self.requests)
                print(f"{now - start:6.0f} s {self.memory[-1][1:]} {dict(statuses)}", file=sys.stderr, flush=True)
            if kill_every and now - last >= kill_every and workers:
                os.kill(workers[self.kills % len(workers)], signal.SIGKILL)
                self.kills, last = self.kills + 1, now
            await asyncio.sleep(0.5)

    async def run(self, rate: float, seconds: float, kill_every: float | None) -> int:
        """Send requests for so many seconds, then stop the server; return its exit code."""
        chance, tasks = random.Random(1), []
        texts = list(self.expected)
        sampler = asyncio.create_task(self.sample(kill_every))
        start = due = time.monotonic()
        while self.stopped is None or time.monotonic() < self.stopped + 2:
            due += chance.expovariate(rate)
            await asyncio.sleep(max(due - time.monotonic(), 0))
            tasks.append(asyncio.create_task(self.send(chance.choice(texts))))
            if self.stopped is None and time.monotonic() - start >= seconds:
                self.server.send_signal(signal.SIGTERM)
                self.stopped = time.monotonic()
        await asyncio.gather(*tasks, sampler)
        return await asyncio.to_thread(self.server.wait, 120)

    def report(self) -> dict:
        """Return the counts and latencies."""
        assert self.stopped is not None
        before = [request for request in self.requests if request.sent < self.stopped - UNREAD]
        accepted = sorted(request.seconds for request in before if request.status == 200)
        refused = sorted(request.seconds for request in before if request.status not in (0, 200))
        pending = [request for request in before if request.sent + request.seconds > self.stopped]
        return {
            "requests": len(before),
            "statuses": dict(Counter(str(request.status) for request in before)),
            "errors": dict(Counter(request.error for request in before if request.error)),
            "wrong": self.wrong,
            "unanswered": sum(request.status == 0 for request in before),
            "unanswered_seconds": max((request.seconds for request in before if request.status == 0), default=0.0),
            "accepted_p50": percentile(accepted, 0.5),
            "accepted_p99": percentile(accepted, 0.99),
            "accepted_max": accepted[-1] if accepted else None,
            "refused_p99": percentile(refused, 0.99),
            "kills": self.kills,
            "pending_at_sigterm": len(pending),
            "pending_answered": dict(Counter(str(request.status) for request in pending)),
            "drain_seconds": max((request.sent + request.seconds for request in pending), default=0) - self.stopped,
            "memory": self.memory,
        }


def percentile(times: list[float], share: float) -> float | None:
    """Return the value below which a share of sorted times lies."""
    return times[min(int(len(times) * share), len(times) - 1)] if times else None


async def main() -> None:
    """Run the soak and print its report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--engine", default="ctranslate2")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--factor", type=float, default=2, help="rate of requests, as a multiple of the capacity")
    parser.add_argument("--kill-every", type=float, help="kill a worker every so many seconds")
    parser.add_argument("--answers", type=Path, help="a file that keeps the sequential answers")
    given = parser.parse_args()
    lines = dict.fromkeys(line.strip() for line in given.file.read_text(encoding="utf-8").splitlines() if line.strip())
    with tempfile.TemporaryDirectory() as directory:
        server, port = start_server(given.run.resolve(), given.engine, Path(directory))
        try:
            client = Client(port)
            if given.answers and given.answers.exists():
                expected = json.loads(given.answers.read_text())
            else:
                expected = {text: (await client.ask(text))[1] for text in lines}
                if given.answers:
                    given.answers.write_text(json.dumps(expected))
            capacity = await measure_capacity(client, list(expected))
            print(f"capacity {capacity:.1f} requests/s", file=sys.stderr, flush=True)
            soak = Soak(server, client, expected)
            code = await soak.run(given.factor * capacity, 60 * given.minutes, given.kill_every)
            facts = {"capacity": capacity, "rate": given.factor * capacity, "minutes": given.minutes}
            facts |= {"exit_code": code, "sentences": len(expected), **soak.report()}
            facts["tracebacks"] = (Path(directory) / "server.log").read_text().count("Traceback")
            print(json.dumps(facts))
        finally:
            if server.poll() is None:
                server.kill()


if __name__ == "__main__":
    asyncio.run(main())
