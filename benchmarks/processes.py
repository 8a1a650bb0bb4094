"""What the bandwidth model of `regard plan` predicts for gloo processes on this machine, and what they take."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.environments import Unavailable
from benchmarks.options import Options
from benchmarks.places import ROOT, say
from benchmarks.report import markdown

CONFIG: dict[str, Any] = {
    "data": {"train": {"generate": "copy"}},
    "model": {"width": 256, "encoder": {"layers": 3}, "decoder": {"layers": 3}},
}
VOCABULARY = 8000
LENGTHS = [(20.0, 20.0)]
PROCESSES = (1, 2, 4)
BATCHES = (1024, 4096)
"""Tokens of a batch, which all processes share: with the smaller, communication is a larger part."""
UPDATES = 14
PATIENCE = 900.0


def measure_processes(options: Options) -> list[dict[str, Any]]:
    """Return the predicted and the measured seconds of an update for each batch and number of processes."""
    import torch

    from regard.config.loading import from_mapping
    from regard.models import build
    from regard.planning.estimate import divide_time
    from regard.planning.gloo import measure_gloo
    from regard.planning.hardware import Hardware
    from regard.planning.scaling import Cluster, Sizes, parallel
    from regard.tasks.chunk_workers import available_cores

    with torch.device("meta"):
        sizes = Sizes.of(build(from_mapping(CONFIG).model, VOCABULARY, VOCABULARY))
    links = {count: measure_gloo(count, sizes.parameters) for count in PROCESSES if count > 1}
    rows = []
    for tokens in (512,) if options.quick else BATCHES:
        say(f"Plan, one process, batches of {tokens // PROCESSES[-1]:,} tokens")
        updates = 4 if options.quick else UPDATES
        share, alone, repeated = _train(1, tokens // PROCESSES[-1], updates), 0.0, 0.0
        for count in PROCESSES:
            say(f"Plan, {count} gloo processes, batches of {tokens:,} tokens")
            measured = _train(count, tokens, updates)
            if count == 1:
                alone, repeated = divide_time(measured, share, PROCESSES[-1])
            link = links.get(count)
            hardware = Hardware(
                1.0,
                1.0,
                "",
                link=link.gigabytes if link else 1.0,
                memory=0.0,
                link_latency=link.latency if link else 0.0,
            )
            cluster = Cluster(hardware, count, 1, available_cores())
            planned = parallel(cluster, sizes, "ddp", memory={}, alone=alone, repeated=repeated, updates=1).update
            rows.append(
                {
                    "tokens": tokens,
                    "processes": count,
                    "gigabytes_per_second": link.gigabytes if link else None,
                    "latency_microseconds": link.latency if link else None,
                    "planned_seconds": planned.seconds,
                    "planned_waiting": planned.waiting,
                    "seconds": measured,
                }
            )
    return rows


def _train(processes: int, tokens: int, updates: int) -> float:
    """Return the median seconds of an update of several processes."""
    with tempfile.TemporaryDirectory() as place:
        environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "benchmarks.programs.plan_gloo"]
        started = [
            subprocess.Popen(
                [*command, str(rank), str(processes), f"{place}/meeting", str(tokens), str(updates)],
                env=environment,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(processes)
        ]
        try:
            answers = [process.communicate(timeout=PATIENCE)[0] for process in started]
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{processes} gloo processes took more than {PATIENCE:g} s") from None
        finally:
            for process in started:
                process.kill()
        if any(process.returncode for process in started):
            raise Unavailable(f"{processes} gloo processes failed")
    return float(json.loads(answers[0])["seconds"])


def describe_processes(rows: list[dict[str, Any]]) -> str:
    """Return the table, and how far the model is off."""
    shown = []
    for row in rows:
        off = row["planned_seconds"] / row["seconds"] - 1
        link = f"{row['gigabytes_per_second']:.2f} GB/s" if row["gigabytes_per_second"] else ""
        shown.append(
            [
                f"{row['tokens']:,}",
                str(row["processes"]),
                link,
                f"{row['planned_seconds']:.3f} s",
                f"{row['planned_waiting']:.3f} s",
                f"{row['seconds']:.3f} s",
                f"{off:+.0%}" if row["processes"] > 1 else "taken from it",
            ]
        )
    several = [abs(row["planned_seconds"] / row["seconds"] - 1) for row in rows if row["processes"] > 1]
    head = ["tokens in all", "processes", "gloo", "planned", "of it communication", "measured", "off"]
    return (
        "## Processes on this machine\n\n"
        "The bandwidth model of `regard plan --devices Nxhere`: one Transformer of width 256 with 3 and 3 layers, DDP "
        "with gloo, one thread per process, batches of random text that all processes share. Planned from the time of "
        "one process, with the batch and with a quarter of it, and the measured rate of gloo all-reduce. Four "
        "processes share two cores, so they compute no faster than two. "
        f"Median difference {statistics.median(several):.0%}.\n\n" + markdown(head, shown)
    )
