"""Time and memory of one training step on long sources, with full and with local self-attention.

    python benchmarks/long_sources.py --lengths 500 2000 --window 64 --rows 4

Each measurement is a process of its own: the encoder of a preset reads random tokens, a short target is predicted, and
gradients are computed with one thread; the median CPU time of some steps, and the peak of resident memory above that
before the first step.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time


def measure(length: int, window: int | None, rows: int, steps: int) -> dict[str, float]:
    """Return seconds per step and the growth of peak memory in MB, in this process."""
    import torch

    from regard.config.cell import resolve
    from regard.config.model import Model as Cell
    from regard.models import build
    from regard.objectives.objective import batch_loss

    torch.manual_seed(0)
    torch.set_num_threads(1)
    sides = {"kind": "transformer", "layers": 4, "feed_forward": 256}
    cell = Cell.model_validate(
        {
            "width": 128,
            "copying": True,
            "encoder": {**sides, "window": window},
            "decoder": sides,
            "positions": {"kind": "rotary"},
        }
    )
    model = build(resolve(cell, shared_vocabulary=True), 8000, 8000)
    source, target = torch.randint(6, 8000, (rows, length)), torch.randint(6, 8000, (rows, 12))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times = []
    for _ in range(steps + 1):
        start = time.process_time()
        batch_loss(model, model.outputs(source, target[:, :-1]), target[:, 1:]).smoothed.backward()
        times.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": statistics.median(times[1:]), "megabytes": (peak - before) / 1024}


def main() -> None:
    """Measure in one process for each length and window, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", nargs="+", type=int, default=[500, 1000, 2000])
    parser.add_argument("--window", type=int, default=64)
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--one", nargs=2, metavar=("LENGTH", "WINDOW"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        length, window = map(int, given.one)
        print(json.dumps(measure(length, window or None, given.rows, given.steps)))
        return
    print(f"{'tokens':>7}  {'attention':<12}  {'CPU s/step':>10}  {'MB':>7}")
    for length in given.lengths:
        for window in (0, given.window):
            command = [sys.executable, __file__, "--one", str(length), str(window)]
            command += ["--rows", str(given.rows), "--steps", str(given.steps)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            name = f"window {window}" if window else "full"
            print(f"{length:>7,}  {name:<12}  {found['seconds']:>10.3f}  {found['megabytes']:>7.0f}", flush=True)


if __name__ == "__main__":
    main()
