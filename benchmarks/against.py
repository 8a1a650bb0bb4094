"""Compare this tree with another checkout of Regard: training, decoding and start-up in interleaved rounds.

    git worktree add /tmp/before COMMIT
    python -m benchmarks.against /tmp/before --rounds 7

Both trees run in this environment, each with its own programs and its own prepared data. The weights that decode are
trained by the other tree, so that both translate with the same model. The corpus is found beside each tree, as
`regard bench` finds it: link `shared` next to the other checkout.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import report
from benchmarks.places import MULTI30K, ROOT, say
from benchmarks.training import ARCHITECTURES, UPDATES, WARMUP
from benchmarks.worker import Worker, surroundings

PREPARE = """
from benchmarks.corpus import at_hand
from benchmarks.training import ARCHITECTURES
print(at_hand(False).run("train-{name}", ARCHITECTURES["{name}"].settings()))
"""
TRAIN = """
from benchmarks.corpus import at_hand
from benchmarks.decoding import trained
from benchmarks.options import Options
print(trained(Options(rounds=1, quick=False, peers=["none"], models=[], run=None, threads=2), at_hand(False))[0])
"""
BEFORE, NOW = "before", "now"


def main() -> int:
    """Measure both trees and print a table of medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", default="tiny,gru", help=f"of {', '.join(ARCHITECTURES)}")
    given = parser.parse_args()
    trees = {BEFORE: given.tree.resolve(), NOW: ROOT}
    rows = [
        *(training(trees, name, given.rounds) for name in given.models.split(",")),
        *decoding(trees, given.rounds),
    ]
    print(report.markdown(["", "before", "now", "now / before"], rows))
    return 0


def training(trees: dict[str, Path], name: str, rounds: int) -> list[str]:
    """Return the row of one model: target tokens a second."""
    workers = {
        side: Worker(
            f"train {name} {side}",
            "regard",
            "train_regard",
            {"run": run_in(tree, PREPARE.format(name=name)), "warmup": WARMUP},
            tree=tree,
        )
        for side, tree in trees.items()
    }
    rates: dict[str, list[float]] = {side: [] for side in trees}
    try:
        for worker in workers.values():
            worker.start().ready()
        for number in range(rounds):
            for side in order(number):
                answer = workers[side].ask(seconds=8.0, updates=UPDATES)
                rates[side].append(answer["tokens"] / answer["seconds"])
                say(f"  training {name}, round {number + 1}, {side}: {rates[side][-1]:.0f} tokens/s")
    finally:
        for worker in workers.values():
            worker.close()
    return row(f"training {name}, target tokens/s", rates, ".0f")


def decoding(trees: dict[str, Path], rounds: int) -> list[list[str]]:
    """Return the rows of greedy and beam search, in seconds, and of start-up on both engines."""
    run = run_in(trees[BEFORE], TRAIN)
    sources = MULTI30K / "test_2016_flickr.en"
    settings = {"run": run, "usual": 4096, "engine": "native", "sources": str(sources), "penalty": 0.0}
    workers = {
        side: Worker(f"decode {side}", "regard", "decode_regard", settings, tree=tree) for side, tree in trees.items()
    }
    found: list[list[str]] = []
    try:
        for worker in workers.values():
            worker.start().ready()
        for title, beam in (("greedy", 1), ("beam 5", 5)):
            seconds: dict[str, list[float]] = {side: [] for side in trees}
            outputs = {side: Path(run) / f"said-{side}-{beam}.txt" for side in trees}
            for number in range(rounds):
                for side in order(number):
                    answer = workers[side].ask(do="decode", beam=beam, batch=4096, every=1, output=str(outputs[side]))
                    seconds[side].append(answer["seconds"])
                    say(f"  {title}, round {number + 1}, {side}: {seconds[side][-1]:.2f} s")
            texts = {side: path.read_text(encoding="utf-8") for side, path in outputs.items()}
            same = "same texts" if texts[BEFORE] == texts[NOW] else "DIFFERENT TEXTS"
            found.append(row(f"{title}, seconds for 1,000 sentences ({same})", seconds, ".2f"))
            for path in outputs.values():
                path.unlink()
    finally:
        for worker in workers.values():
            worker.close()
    for engine in ("native", "ctranslate2"):
        seconds = {side: [] for side in trees}
        for number in range(rounds + 1):  # the first warms the disk's cache
            for side in order(number):
                seconds[side].append(start(trees[side], run, engine))
        found.append(row(f"start, {engine}, seconds", {side: times[1:] for side, times in seconds.items()}, ".3f"))
    return found


def start(tree: Path, run: str, engine: str) -> float:
    """Return the seconds of a process that translates one sentence."""
    command = [sys.executable, "-m", "regard", "translate", run, "--engine", engine]
    begin = time.perf_counter()
    subprocess.run(
        command, input="A dog runs.\n", text=True, cwd=tree, env=environment(tree), check=True, capture_output=True
    )
    return time.perf_counter() - begin


def run_in(tree: Path, program: str) -> str:
    """Run a program with a tree's own code and return the last line that it printed."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tree, env=environment(tree), text=True, check=True, stdout=subprocess.PIPE)
    return done.stdout.splitlines()[-1]


def environment(tree: Path) -> dict[str, str]:
    """Return an environment in which this tree is imported."""
    return {**surroundings(len(os.sched_getaffinity(0))), "PYTHONPATH": str(tree)}


def order(number: int) -> tuple[str, str]:
    """Return the two sides; who goes first changes with every round."""
    return (NOW, BEFORE) if number % 2 else (BEFORE, NOW)


def row(title: str, figures: dict[str, list[float]], style: str) -> list[str]:
    """Return a row of the table: medians, and the median of the ratios of each round."""
    medians = {side: statistics.median(found) for side, found in figures.items()}
    ratio = statistics.median(now / before for before, now in zip(figures[BEFORE], figures[NOW], strict=True))
    return [title, f"{medians[BEFORE]:{style}}", f"{medians[NOW]:{style}}", f"{ratio:.3f}"]


if __name__ == "__main__":
    sys.exit(main())
