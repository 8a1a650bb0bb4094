"""Time and peak memory of storing and batching corpora from a thousand to ten million pairs.

    python benchmarks/store.py [--sizes 1000 100000 1000000 10000000] [--directory /tmp/store]

Each size runs in a process of its own: a corpus of made-up sentences is written as TSV (not counted), then prepared by
`regard.tasks.preparation` exactly as `regard train` does (read, cleaned, tokenizer learnt, stored), and one epoch of
batches is ordered and some of it made. Results go to benchmarks/results/store.md and store.json.
"""

import argparse
import json
import os
import platform
import random
import resource
import shutil
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
SIZES = (1_000, 100_000, 1_000_000, 10_000_000)
BATCHES = 200
LIMIT_GB = 2.0


def words(generator: random.Random, count: int) -> list[str]:
    """Made-up words, the frequent ones short."""
    syllables = [c + v + e for c in "bdfgklmnprstvz" for v in "aeiou" for e in ("", "n", "r", "s")]
    made = {
        "".join(generator.choices(syllables, k=1 + (place > 60) + (place > 4000))): None for place in range(2 * count)
    }
    return list(made)[:count]


def write_corpus(path: Path, size: int) -> None:
    """Pairs of sentences whose words follow Zipf's law, streamed to a file."""
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


def measure(size: int, directory: Path) -> dict[str, float]:
    """Prepare and batch a corpus of this size in this process."""
    from regard.config.run import RunConfig
    from regard.data.batches import Batches
    from regard.tasks.preparation import prepare

    config = RunConfig.model_validate({"data": {"train": {"tsv": str(directory / "corpus.tsv")}}})
    start = time.perf_counter()
    prepared = prepare(config, directory / "run")
    stored = time.perf_counter()
    batches = Batches(prepared.train, tokens=4096, seed=1)
    count = batches.per_epoch(0)
    ordered = time.perf_counter()
    made = sum(len(batch) for batch, _ in islice(batches.after(), BATCHES))
    end = time.perf_counter()
    return {
        "pairs": size,
        "kept": len(prepared.train),
        "tokens": sum(prepared.train.tokens),
        "prepare_seconds": round(stored - start, 2),
        "order_seconds": round(ordered - stored, 3),
        "batches_per_epoch": count,
        "batched_pairs_per_second": round(made / (end - ordered)),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2, 3),
    }


def table(rows: list[dict[str, float]]) -> str:
    """The results as Markdown."""
    lines = [
        "# Token store: time and peak memory\n",
        f"`python benchmarks/store.py` on {platform.machine()}, Python {platform.python_version()}, one core "
        f"({os.cpu_count()} in the machine, shared). Peak memory is of the whole process, torch included; "
        f"the limit is {LIMIT_GB:g} GB.\n",
        "| pairs | kept for training | tokens | prepare | pairs/s | order of an epoch | batches | made/s | peak |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    lines += [
        f"| {row['pairs']:,} | {row['kept']:,} | {row['tokens']:,} | {row['prepare_seconds']:,.1f} s "
        f"| {row['pairs'] / row['prepare_seconds']:,.0f} | {row['order_seconds']:.2f} s | {row['batches_per_epoch']:,} "
        f"| {row['batched_pairs_per_second']:,} | {row['peak_gb']:.2f} GB |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--directory", type=Path, default=Path("/tmp/regard-store-benchmark"))
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one, arguments.directory)))
        return
    rows = []
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for size in arguments.sizes:
        shutil.rmtree(arguments.directory, ignore_errors=True)
        arguments.directory.mkdir(parents=True)
        write_corpus(arguments.directory / "corpus.tsv", size)
        command = [sys.executable, __file__, "--one", str(size), "--directory", str(arguments.directory)]
        rows.append(
            json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
        )
        print(json.dumps(rows[-1]), flush=True)
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "store.json").write_text(json.dumps(rows, indent=2) + "\n")
        (RESULTS / "store.md").write_text(table(rows))
    shutil.rmtree(arguments.directory, ignore_errors=True)
    if any(row["peak_gb"] > LIMIT_GB for row in rows):
        sys.exit(f"peak memory above {LIMIT_GB:g} GB")


if __name__ == "__main__":
    main()
