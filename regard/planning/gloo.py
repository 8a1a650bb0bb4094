"""The rate at which processes on this machine sum gradients with gloo, measured by starting them."""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from regard.foundation.errors import RegardError

PATIENCE = 120.0
"""Seconds to wait for the processes."""
ROUNDS = 5


@dataclass(frozen=True)
class Gloo:
    """Measured collectives of processes on this machine."""

    latency: float
    """Microseconds of one of the 2 (n - 1) steps of a ring."""
    gigabytes: float
    """Rate at which every process sends, in GB/s, as in the formula of a ring."""


def measure_gloo(processes: int, size: int) -> Gloo:
    """Sum `size` bytes over several processes a few times, and one number; return latency and rate."""
    with tempfile.TemporaryDirectory() as place:
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        if sys.platform == "linux":
            environment["GLOO_SOCKET_IFNAME"] = "lo"
        commands = [
            [sys.executable, "-m", __name__, str(rank), str(processes), f"{place}/meeting", str(size)]
            for rank in range(processes)
        ]
        started = [
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for command in commands
        ]
        try:
            output, _ = started[0].communicate(timeout=PATIENCE)
            found = json.loads(output)
        except (subprocess.TimeoutExpired, ValueError) as error:
            raise RegardError(
                f"The rate of {processes} gloo processes on this machine could not be measured. Leave out "
                f"--devices {processes}xhere."
            ) from error
        finally:
            for process in started:
                process.kill()
                process.communicate()
    steps = 2 * (processes - 1)
    seconds = max(found["large"] - found["small"], 1e-9)
    return Gloo(found["small"] / steps * 1e6, steps / processes * size / seconds / 1e9)


def _take_part(rank: int, processes: int, meeting: str, size: int) -> None:
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{Path(meeting)}", rank=rank, world_size=processes)
    found = {}
    for name, elements in (("small", 1), ("large", max(size // 4, 1))):
        numbers = torch.zeros(elements)
        times = []
        for _ in range(ROUNDS):
            distributed.barrier()
            start = time.perf_counter()
            distributed.all_reduce(numbers)
            times.append(time.perf_counter() - start)
        found[name] = sorted(times)[ROUNDS // 2]
    if rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    _take_part(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
