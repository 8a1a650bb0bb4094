"""Time and peak memory of preparing corpora of up to ten million pairs, on one core and on two.

    regard bench store
    python -m benchmarks.store [--sizes 1000000 10000000] [--workers 1 2] [--directory /tmp/store]

The pairs are those of Tatoeba and Multi30k, repeated with variations: a number is inserted in both sides, so that they
are not duplicates. Without these corpora they are made-up words. Every measurement is a process of its own; one worker
is one process with one thread. It prepares the data as `regard prepare` and `regard train` do (read, cleaned, tokenizer
learnt, stored), orders one epoch of batches and makes some of it. Memory is the sum over all processes of the memory
that each has for itself (PSS), sampled. Results go to benchmarks/results/store.md and store.json.
"""

import argparse
import contextlib
import gzip
import hashlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

from benchmarks import machine, report
from benchmarks.options import Options
from benchmarks.places import MULTI30K, ROOT, say

SIZES = (1_000_000, 10_000_000)
QUICK = (20_000,)
WORKERS = (1, 2)
BATCHES = 200
LIMIT_GB = 2.0
FASTER = 1.8
"""What two workers on two cores must reach against one on one core."""
EVERY = 0.5
"""Seconds between two looks at memory."""


def measure(options: Options) -> str:
    """Prepare corpora of all sizes with all numbers of workers, and write the table."""
    return compare(QUICK if options.quick else SIZES, WORKERS, Path("/tmp/regard-store-benchmark"), quick=options.quick)


def compare(sizes: tuple[int, ...], workers: tuple[int, ...], directory: Path, *, quick: bool) -> str:
    """Measure every size with every number of workers; the results must be identical."""
    facts: dict[str, Any] = {"machine": machine.facts(), "rows": []}
    text = ""
    for size in sizes:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        facts["corpus"] = write_corpus(directory / "corpus.tsv", size)
        for number in workers:
            say(f"Store, {size:,} pairs, {number} workers")
            facts["rows"].append(_in_own_process(size, number, directory))
            text = _write(facts, quick=quick)  # after each: what is done is not lost
    shutil.rmtree(directory, ignore_errors=True)
    return text


def write_corpus(path: Path, size: int) -> str:
    """Write pairs as tab-separated lines, and return what they are."""
    known = [*_tatoeba(), *_multi30k()]
    if not known:
        write_made_up(path, size)
        return "made-up words"
    with path.open("w", encoding="utf-8") as file:
        for source, target in islice(_varied(known), size):
            file.write(f"{source}\t{target}\n")
    return "Tatoeba and Multi30k (English-German), repeated with variations"


def _tatoeba() -> Iterator[tuple[str, str]]:
    for path in sorted((MULTI30K.parent / "tatoeba").glob("eng-deu.*.tsv.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                source, target = line.rstrip("\n").split("\t")[:2]
                yield source, target


def _multi30k() -> Iterator[tuple[str, str]]:
    paths = [MULTI30K / f"train.{language}.gz" for language in ("en", "de")]
    if all(path.is_file() for path in paths):
        with gzip.open(paths[0], "rt", encoding="utf-8") as left, gzip.open(paths[1], "rt", encoding="utf-8") as right:
            for source, target in zip(left, right, strict=True):
                yield source.strip().replace("\t", " "), target.strip().replace("\t", " ")


def _varied(pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield all pairs, then all with a number inserted after some word of each side, and so on with other numbers."""
    yield from pairs
    for copy in count(2):
        for number, pair in enumerate(pairs):
            sides = []
            for text in pair:
                words = text.split()
                words.insert((number + copy) % (len(words) + 1), str(copy))
                sides.append(" ".join(words))
            yield sides[0], sides[1]


def words(generator: random.Random, count: int) -> list[str]:
    """Made-up words, the frequent ones short."""
    syllables = [c + v + e for c in "bdfgklmnprstvz" for v in "aeiou" for e in ("", "n", "r", "s")]
    made = {
        "".join(generator.choices(syllables, k=1 + (place > 60) + (place > 4000))): None for place in range(2 * count)
    }
    return list(made)[:count]


def write_made_up(path: Path, size: int) -> None:
    """Pairs of made-up sentences whose words follow Zipf's law, streamed to a file."""
    generator = random.Random(1)
    vocabularies = [words(generator, 30_000) for _ in range(2)]
    weights = [1 / (rank + 3) for rank in range(30_000)]
    chunk = 200_000
    with path.open("w") as file:
        written = 0
        while written < size:
            draws = [generator.choices(vocabulary, weights, k=chunk) for vocabulary in vocabularies]
            places = [0, 0]
            while written < size and max(places) < chunk - 40:
                length = generator.randint(4, 20)
                sides = []
                for side, drawn in enumerate(draws):
                    count = max(1, length + generator.randint(-2, 2))
                    sides.append(" ".join(drawn[places[side] : places[side] + count]))
                    places[side] += count
                file.write("\t".join(sides) + "\n")
                written += 1


def measure_here(size: int, workers: int, directory: Path) -> dict[str, Any]:
    """Prepare and batch the corpus in this process."""
    from regard.config.run import RunConfig
    from regard.data.batches import Batches
    from regard.tasks.preparation import prepare

    config = RunConfig.model_validate({"data": {"train": {"tsv": str(directory / "corpus.tsv")}}})
    stages: dict[str, float] = {}
    start = time.perf_counter()

    def progress(stage: str, done: int, total: int | None) -> None:
        stages[stage] = time.perf_counter() - start

    prepared = prepare(config, directory / "run", progress, workers=workers)
    stored = time.perf_counter()
    batches = Batches(prepared.train, tokens=4096, seed=1)
    per_epoch = batches.per_epoch(0)
    ordered = time.perf_counter()
    made = sum(len(batch) for batch, _ in islice(batches.after(), BATCHES))
    end = time.perf_counter()
    return {
        "pairs": size,
        "workers": workers,
        "kept": len(prepared.train),
        "tokens": sum(prepared.train.tokens),
        "prepare_seconds": round(stored - start, 2),
        "stages": {name: round(seconds, 2) for name, seconds in stages.items()},
        "order_seconds": round(ordered - stored, 3),
        "batches_per_epoch": per_epoch,
        "batched_pairs_per_second": round(made / (end - ordered)),
        "cpu_seconds": round(_processor_seconds(), 2),
        "sha256": _hash_of(directory / "run"),
    }


def _processor_seconds() -> float:
    """Return the processor time of this process and of its workers, which have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _machine_seconds() -> float:
    """Return the processor time of all processes of the machine since it was started."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _hash_of(directory: Path) -> str:
    """Return a hash of all files of a directory."""
    total = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                total.update(f"{path.relative_to(directory)} ".encode() + hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def _in_own_process(size: int, workers: int, directory: Path) -> dict[str, Any]:
    shutil.rmtree(directory / "run", ignore_errors=True)
    command = [sys.executable, "-m", "benchmarks.store", "--one", str(size), "--workers", str(workers)]
    environment = {
        **os.environ,
        "TOKENIZERS_PARALLELISM": "true" if workers > 1 else "false",
        "RAYON_NUM_THREADS": str(workers),
        "OMP_NUM_THREADS": "1",
    }
    process = subprocess.Popen(
        [*command, "--directory", str(directory)], env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    peak, busy, start = 0, _machine_seconds(), time.perf_counter()

    def watch() -> None:
        nonlocal peak
        while process.poll() is None:
            peak = max(peak, sum(map(_memory_of, _family(process.pid))))
            time.sleep(EVERY)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    answer, _ = process.communicate()
    watcher.join()
    if process.returncode:
        sys.exit(f"preparing {size:,} pairs with {workers} workers failed")
    found = json.loads(answer.splitlines()[-1])
    others = (_machine_seconds() - busy - found["cpu_seconds"]) / (time.perf_counter() - start)
    return {**found, "others": round(max(others, 0.0), 2), "peak_gb": round(peak / 1024**2, 3)}


def _family(pid: int) -> Iterator[int]:
    """Yield a process and all its descendants."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                yield from _family(int(child))


def _memory_of(pid: int) -> int:
    """Return the memory of a process in KB, with its share of what it has in common with others."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1])
    return 0


def _write(facts: dict[str, Any], *, quick: bool) -> str:
    rows, first = [], {}
    for row in facts["rows"]:
        alone = first.setdefault(row["pairs"], row)
        faster = alone["prepare_seconds"] / row["prepare_seconds"]
        rows.append(
            [
                f"{row['pairs']:,}",
                f"{row['workers']}",
                f"{row['kept']:,}",
                f"{row['tokens']:,}",
                f"{row['prepare_seconds']:,.1f} s",
                f"{row['pairs'] / row['prepare_seconds']:,.0f}",
                f"{faster:.2f}×" if row is not alone else "",
                "" if row is alone else "yes" if row["sha256"] == alone["sha256"] else "**no**",
                f"{row['cpu_seconds']:,.0f} s",
                f"{row['others']:.1f}",
                f"{row['order_seconds']:.2f} s",
                f"{row['batched_pairs_per_second']:,}",
                f"{row['peak_gb']:.2f} GB",
            ]
        )
    header = ["pairs", "workers", "kept for training", "tokens", "prepare", "pairs/s", "faster", "identical", "CPU"]
    text = "\n".join(
        [
            "# Token store: preparing data",
            "",
            f"`regard bench store`: reading, cleaning, learning the tokenizer and tokenising {facts['corpus']}. One "
            f"worker is one process with one thread. Two must be {FASTER}× faster than one and write the same files; "
            f"memory, the sum over all processes with torch, must stay below {LIMIT_GB:g} GB. "
            f"{machine.in_words(facts['machine'])}",
            "",
            report.markdown([*header, "cores of others", "order of an epoch", "batched pairs/s", "peak memory"], rows),
        ]
    )
    return report.write("store", text, facts, quick=quick)


def main() -> None:
    """Measure from the command line, or be the process that is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--workers", type=int, nargs="+", default=WORKERS)
    parser.add_argument("--directory", type=Path, default=Path("/tmp/regard-store-benchmark"))
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="into results/quick")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure_here(given.one, given.workers[0], given.directory)))
        return
    print(compare(tuple(given.sizes), tuple(given.workers), given.directory, quick=given.quick))


if __name__ == "__main__":
    main()
