"""Send sentences to a translation server from many connections, and print what was measured as JSON.

`python benchmarks/programs/load.py URL FILE --connections 32 --requests 1000 [--seconds 10] [--rate 100]`: each request
is one sentence in the LibreTranslate protocol, or with `--beam` in that of `/v1`. Without a rate each connection sends
its next request when the last one is answered; with a rate, requests start at random times of that mean rate (an open
loop), whatever has been answered. With `--seconds`, no request starts later than that.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from pathlib import Path
from urllib.parse import urlparse


async def ask(pool: asyncio.Queue, host: str, port: int, text: str, beam: int | None) -> tuple[int, str, float]:
    """Return status, answer and seconds of one request, on a connection of the pool."""
    path, content = "/translate", {"q": text, "source": "en", "target": "de"}
    if beam is not None:
        path, content = "/v1/translate", {"texts": [text], "beam": beam}
    body = json.dumps(content).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: "
    connection = await pool.get()
    start = time.perf_counter()
    try:
        if connection is None:
            connection = await asyncio.open_connection(host, port)
        reader, writer = connection
        writer.write(head.encode() + str(len(body)).encode() + b"\r\n\r\n" + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        answer = await reader.readexactly(int(headers["content-length"]))
        status = int(lines[0].split()[1])
        seconds = time.perf_counter() - start
        if headers.get("connection", "").lower() == "close":
            writer.close()
            connection = None
        found = json.loads(answer) if status == 200 else {}
        return status, found.get("translatedText") or found.get("outputs", [{"text": ""}])[0]["text"], seconds
    except (OSError, asyncio.IncompleteReadError, ValueError, KeyError):
        connection = None
        return 0, "", time.perf_counter() - start
    finally:
        pool.put_nowait(connection)


async def measure(
    url: str, texts: list[str], connections: int, rate: float | None, *, seconds: float = 1e9, beam: int | None = None
) -> dict:
    """Send the texts that can be sent in so many seconds, and return counts, throughput and latencies."""
    address = urlparse(url)
    pool: asyncio.Queue = asyncio.LifoQueue()  # open connections first: servers limit their number
    for _ in range(connections):
        pool.put_nowait(None)
    chance, began, tasks = random.Random(1), time.perf_counter(), []
    due = began

    async def timed(text: str) -> tuple[int, str, float]:
        arrived = time.perf_counter()
        status, found, _ = await ask(pool, address.hostname, address.port, text, beam)
        return status, found, time.perf_counter() - arrived

    if rate is None:
        remaining = iter(list(enumerate(texts)))
        results: list = [None] * len(texts)

        async def work() -> None:
            for index, text in remaining:
                if time.perf_counter() - began > seconds:
                    break
                results[index] = await timed(text)
            connection = await pool.get()
            if connection is not None:  # others may wait for a place among the connections of the server
                connection[1].close()

        await asyncio.gather(*(work() for _ in range(connections)))
    else:
        for text in texts:
            due += chance.expovariate(rate)
            if due - began > seconds:
                break
            await asyncio.sleep(max(due - time.perf_counter(), 0))
            tasks.append(asyncio.create_task(timed(text)))
        results = list(await asyncio.gather(*tasks))
    elapsed = time.perf_counter() - began
    results = [result for result in results if result is not None]
    times = sorted(taken for status, _, taken in results if status == 200)
    statuses: dict[str, int] = {}
    for status, _, _ in results:
        statuses[str(status)] = statuses.get(str(status), 0) + 1
    return {
        "requests": len(results),
        "statuses": statuses,
        "seconds": elapsed,
        "per_second": len(times) / elapsed,
        "p50": statistics.median(times) if times else None,
        "p99": times[min(int(len(times) * 0.99), len(times) - 1)] if times else None,
        "texts": [found for _, found, _ in results],
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("file", type=Path)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--rate", type=float)
    parser.add_argument("--beam", type=int)
    given = parser.parse_args()
    lines = [line.strip() for line in given.file.read_text(encoding="utf-8").splitlines() if line.strip()]
    chosen = [lines[index % len(lines)] for index in range(given.requests)]
    measured = measure(given.url, chosen, given.connections, given.rate, seconds=given.seconds, beam=given.beam)
    print(json.dumps(asyncio.run(measured), ensure_ascii=False))
