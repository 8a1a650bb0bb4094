"""Measure the time of suggested replies per message, by the number of responses, and print it as JSON.

`OMP_NUM_THREADS=1 python benchmarks/programs/replies.py RUN --responses 1000 10000 [--messages 200]`

The bundle is copied to a temporary directory. Its most frequent responses are taken, and if there are too few, others
are generated from their words (seeded), so that the trie is as branched as that of real responses. The messages are
held-out ones, and every one gets suggestions unless it is sensitive (rate 1). `search` is the search in the trie alone;
`total` is everything: language, sensitivity, trigger, both searches and the choice.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from regard.reply.responses import Response, read_responses, write_responses
from regard.reply.suggester import CANDIDATES, Suggester

SEED = 1
WARM_UP = 10
RUNS = ("scorer", "classifier", "language", "trigger", "sensitivity")
PARTS = ("bundle.json", "responses.yaml", "sensitive.yaml", *RUNS)


def pad_responses(found: list[Response], count: int) -> list[Response]:
    """Return `count` responses: the first ones, or all of them and generated ones."""
    responses = found[:count]
    generator = random.Random(SEED)
    words = [word for response in found for word in response.normal.split() for _ in range(max(1, response.count))]
    lengths = [len(response.normal.split()) for response in found]
    known = {response.normal for response in responses}
    while len(responses) < count:
        text = " ".join(generator.choice(words) for _ in range(generator.choice(lengths) + 1))
        response = Response(text, text, generator.choice(("positive", "negative", "neutral")))
        if response.normal not in known:
            known.add(response.normal)
            responses.append(response)
    return responses


def measure(work: Callable[[str], object], messages: list[str]) -> dict[str, float]:
    """Return the time per message in milliseconds: median and 95th percentile, and the median of the CPU time.

    On a machine that other programs use, the CPU time is closer to what a message takes alone.
    """
    for message in messages[:WARM_UP]:
        work(message)
    times, cpu = [], []
    for message in messages:
        begin, begin_cpu = time.perf_counter(), time.process_time()
        work(message)
        times.append(1000 * (time.perf_counter() - begin))
        cpu.append(1000 * (time.process_time() - begin_cpu))
    return {
        "median": round(statistics.median(times), 2),
        "p95": round(statistics.quantiles(times, n=20)[-1], 2),
        "cpu_median": round(statistics.median(cpu), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--responses", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--messages", type=int, default=200)
    given = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    lines = (given.run / "held-out.jsonl").read_text(encoding="utf-8").splitlines()
    messages = [json.loads(line)["message"] for line in lines]
    random.Random(SEED).shuffle(messages)
    messages = messages[: given.messages]
    lowered = [message.lower() for message in messages]
    rows = []
    for count in given.responses:
        with tempfile.TemporaryDirectory() as folder:
            for name in PARTS:
                copy = shutil.copytree if (given.run / name).is_dir() else shutil.copy
                copy(given.run / name, Path(folder) / name)
            write_responses(
                Path(folder) / "responses.yaml", pad_responses(read_responses(given.run / "responses.yaml"), count)
            )
            suggester = Suggester.open(folder)
            rows.append(
                {
                    "responses": len(suggester.responses),
                    "nodes": len(suggester.scorer.trie),
                    "search": measure(partial(suggester.scorer.rank, count=CANDIDATES), lowered),
                    "total": measure(partial(suggester.suggest, rate=1.0), messages),
                }
            )
    facts = {"threads": torch.get_num_threads(), "messages": len(messages), "milliseconds": rows}
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
