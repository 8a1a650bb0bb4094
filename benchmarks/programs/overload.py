"""Send more requests to `regard serve` than it can answer, and print as JSON how many it still answers.

`python benchmarks/programs/overload.py RUN FILE --factors 1,2,5,10 --seconds 30`: the program starts a server without a
cache, measures its capacity with 64 connections, and then sends requests at random times of a multiple of that rate,
whatever has been answered. This program and the server share the cores, so that CPU times are measured, too.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from soak import Client, measure_capacity, percentile, start_server, workers_of


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def overload(server: subprocess.Popen, client: Client, texts: list[str], rate: float, seconds: float) -> dict:
    """Send requests at a rate for so many seconds, and return what was answered in that time."""
    answers: list[tuple[str, float, float]] = []
    """Status, seconds and time of each."""

    async def send(text: str) -> None:
        sent = time.monotonic()
        try:
            status = str((await client.ask(text))[0])
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            status = type(error).__name__
        answers.append((status, time.monotonic() - sent, time.monotonic()))

    def cpu() -> tuple[float, float, float]:
        return cpu_seconds(server.pid), sum(map(cpu_seconds, workers_of(server.pid))), time.process_time()

    chance, tasks = random.Random(1), []
    before, start = cpu(), time.monotonic()
    due = start
    while due - start < seconds:
        due += chance.expovariate(rate)
        await asyncio.sleep(max(due - time.monotonic(), 0))
        tasks.append(asyncio.create_task(send(chance.choice(texts))))
    elapsed, used = time.monotonic() - start, [after - at for after, at in zip(cpu(), before, strict=True)]
    in_time = sum(status == "200" and at <= start + elapsed for status, _, at in answers)
    await asyncio.gather(*tasks)
    accepted = sorted(taken for status, taken, _ in answers if status == "200")
    refused = sorted(taken for status, taken, _ in answers if status != "200")
    return {
        "sent_per_second": len(tasks) / elapsed,
        "answered_per_second": in_time / elapsed,
        "statuses": dict(Counter(status for status, _, _ in answers)),
        "accepted_p50": percentile(accepted, 0.5),
        "accepted_p99": percentile(accepted, 0.99),
        "refused_p99": percentile(refused, 0.99),
        "cpu": dict(zip(("front", "workers", "generator"), (each / elapsed for each in used), strict=True)),
        "load_average": os.getloadavg()[0],
    }


async def main() -> None:
    """Measure, and print the report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("run", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--engine", default="ctranslate2")
    parser.add_argument("--factors", default="1,2,5,10")
    parser.add_argument("--seconds", type=float, default=30)
    given = parser.parse_args()
    lines = dict.fromkeys(line.strip() for line in given.file.read_text(encoding="utf-8").splitlines() if line.strip())
    texts = list(lines)
    with tempfile.TemporaryDirectory() as directory:
        server, port = start_server(given.run.resolve(), given.engine, Path(directory))
        try:
            client = Client(port)
            await measure_capacity(client, texts[:300])  # both workers have loaded the model
            capacity = await measure_capacity(client, texts)
            facts: dict = {"capacity": capacity, "seconds": given.seconds, "factors": {}}
            for factor in given.factors.split(","):
                found = await overload(server, client, texts, float(factor) * capacity, given.seconds)
                facts["factors"][factor] = found
                print(f"{factor} × {capacity:.1f}: {found}", file=sys.stderr, flush=True)
                await asyncio.sleep(2)
            print(json.dumps(facts))
        finally:
            server.kill()


if __name__ == "__main__":
    asyncio.run(main())
