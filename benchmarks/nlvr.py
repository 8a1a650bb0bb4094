"""NLVR's statements (Suhr et al., 2017) as a table for `recipes/nlvr.yaml`: picture, statement, true or false, part.

    python benchmarks/nlvr.py $REGARD_DATA/nlvr/dev.jsonl.gz runs/nlvr.tsv

A statement, with all its pictures, belongs to one part: four fifths to learn from, a tenth to choose by, one to test.
"""

import gzip
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path

PARTS = {"test": 10, "validation": 20, "train": 100}
"""Up to which percentage of statements, in the order of their hashes, each part goes."""


def part_of(statement: str) -> str:
    """The part of a statement: the same wherever it occurs, and on every machine."""
    normal = " ".join(statement.lower().rstrip(" .").split())
    place = int.from_bytes(hashlib.blake2b(normal.encode(), digest_size=4).digest(), "little") % 100
    return next(part for part, end in PARTS.items() if place < end)


def main(source: Path, target: Path) -> None:
    """Write the table, and tell how large its parts are."""
    lines: list[str] = []
    counts: Counter[tuple[str, str]] = Counter()
    with gzip.open(source, "rt", encoding="utf-8") as file:
        for line in file:
            example = json.loads(line)
            statement, part = " ".join(example["sentence"].split()), part_of(example["sentence"])
            for number in range(example["n_images"]):
                lines.append(f"{example['id']}-{number}.png\t{statement}\t{example['label']}\t{part}\n")
                counts[part, example["label"]] += 1
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(lines), encoding="utf-8")
    for part in ("train", "validation", "test"):
        true, false = counts[part, "true"], counts[part, "false"]
        print(f"{part}: {true + false:,} pictures with a statement, {100 * true / max(1, true + false):.1f} % true")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
