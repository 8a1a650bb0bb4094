"""The loop of every program that translates: whole files for throughput, sentence by sentence for latency.

Standard library only: this runs in the environment of every peer.
"""

import os
import time
from pathlib import Path

from pace import answer, command, loaded


def by_length(texts, lengths, size):
    """Places of texts in batches of like length, the longest first."""
    order = sorted(range(len(texts)), key=lambda place: -lengths[place])
    return [order[start : start + size] for start in range(0, len(order), size)]


def serve(translate, sources):
    """Answer orders with `translate(texts, beam, batch) -> texts`; or say one sentence, where the start is timed."""
    if os.environ.get("BENCH_START"):
        print(translate(sources[:1], 5, 1)[0], flush=True)
        os._exit(0)
    loaded()
    translate(sources[:8], 1, 8)
    answer(ready=True)
    while True:
        order = command()
        texts = sources[:: order.get("every", 1)]
        try:
            if order["do"] == "latency":
                seconds = []
                for text in texts:
                    start = time.perf_counter()
                    translate([text], order["beam"], 1)
                    seconds.append(time.perf_counter() - start)
                answer(seconds=sorted(seconds)[len(seconds) // 2])
            else:
                start = time.perf_counter()
                said = translate(texts, order["beam"], order["batch"])
                seconds = time.perf_counter() - start
                with Path(order["output"]).open("w", encoding="utf-8") as file:
                    file.writelines(" ".join(one.split()) + "\n" for one in said)
                answer(seconds=seconds)
        except Exception as error:
            answer(failed=f"{type(error).__name__}: {str(error)[:200]}")
            raise
