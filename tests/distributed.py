"""Training by several processes, for tests: `python -m tests.distributed train …` under torchrun, with faults on order.

The environment variable FAULT is `RANK:STEP:KIND:FILE`: before that step the process of that rank (`*`: of any) kills
itself (`kill`) or itself and its launcher (`node`), stops to respond (`hang`) or raises an error of a full disk
(`full`), unless FILE exists, which it creates.
"""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def write_corpus(directory: Path, **training: Any) -> Path:
    """Write a corpus of reversed words and the configuration of a small Transformer without dropout."""
    import random

    draw = random.Random(3)
    lines = [" ".join(draw.choice("abcdefghij") for _ in range(draw.randint(3, 12))) for _ in range(300)]
    (directory / "s.txt").write_text("\n".join(lines) + "\n")
    (directory / "t.txt").write_text("\n".join(" ".join(reversed(line.split())) for line in lines) + "\n")
    layers = {"kind": "transformer", "layers": 2}
    settings = {
        "data": {"train": {"source": "s.txt", "target": "t.txt"}, "held_out": 20},
        "text": {"tokenizer": {"kind": "words"}},
        "model": {"width": 16, "dropout": 0.0, "encoder": layers, "decoder": layers},
        "training": {
            "steps": 8,
            "batch_tokens": 150,
            "validate_every": 4,
            "checkpoint_every": 2,
            "log_every": 1,
            "schedule": {"warmup": 2},  # so that it does not depend on the number of steps
            **training,
        },
    }
    path = directory / "tiny.yaml"
    path.write_text(json.dumps(settings))
    return path


def torchrun(
    processes: int, arguments: Sequence[str], *, options: Sequence[str] = ("--standalone",), **named: Any
) -> list[str]:
    """Return a command that runs `regard ARGUMENTS` by several processes."""
    launcher = [sys.executable, "-m", "torch.distributed.run", *options, "--nproc-per-node", str(processes)]
    return [*launcher, "-m", "tests.distributed", *arguments]


def environment(**more: str) -> dict[str, str]:
    """Return the environment of processes under test."""
    kept = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**kept, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "REGARD_TIMEOUT": "60", **more}


def run(command: Sequence[str], directory: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command, cwd=directory, env=environment(**more), capture_output=True, text=True, timeout=300, check=False
    )


def curve(run_directory: Path) -> list[tuple[float, float, float]]:
    """Return (step, loss, gradient norm) of every step of a run."""
    lines = [json.loads(line) for line in (run_directory / "metrics.jsonl").read_text().splitlines()]
    return [(line["step"], line["loss"], line["gradient_norm"]) for line in lines if line["kind"] == "train"]


def _inject_fault(order: str) -> None:
    from regard.training.trainer import Trainer

    rank, step, kind, name = order.split(":", 3)
    update = Trainer.update

    def faulty(self: Trainer, **named: Any) -> None:
        mine = rank in ("*", str(self.ranks.rank))
        if mine and self.progress.step + 1 == int(step) and not Path(name).exists():
            Path(name).touch()
            if kind == "node":
                os.kill(os.getppid(), signal.SIGKILL)
            if kind in ("kill", "node"):
                os.kill(os.getpid(), signal.SIGKILL)
            elif kind == "hang":
                time.sleep(600)
            elif kind == "full":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")
        update(self, **named)

    Trainer.update = faulty  # type: ignore[method-assign]


if __name__ == "__main__":
    from regard.cli import main

    if "FAULT" in os.environ:
        _inject_fault(os.environ["FAULT"])
    if other := os.environ.get(f"SETTING_{os.environ.get('RANK', '0')}"):  # a setting of one rank alone
        sys.argv.append(other)
    sys.exit(main(sys.argv[1:]))
