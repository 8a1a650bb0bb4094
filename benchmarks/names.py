"""Which values of records do outputs have, by how often training had them?

    python benchmarks/names.py runs/webnlg runs/webnlg-plain

For every value of a test record (a subject or an object) that at least one reference has word for word: whether the
output has it, too. Values are grouped by the number of training records that have them; 0 are names and numbers that
the model has never read. Intervals are Wilson's, 95 %.
"""

import argparse
import re
from collections import Counter
from pathlib import Path

from regard.data.corpus import group_references, read
from regard.foundation.display import columns
from regard.metrics.intervals import wilson
from regard.runs.run import Run
from regard.tasks.loaded import load_run
from regard.text.records import parse_record, record_form

GROUPS = ((0, 0), (1, 9), (10, 99), (100, 10**9))
"""Smallest and largest frequency of each group."""


def values_of(source: str, run: Run) -> set[str]:
    """Return the values of a record: all parts of its fields but names."""
    fields = parse_record(source, record_form(run.config.data.train))
    return {part for parts in fields for part in (*parts[:-2], parts[-1])}


def has(text: str, value: str) -> bool:
    """Return whether a text has a value as whole words, in any case."""
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None


def measure(directory: Path) -> list[list[str]]:
    """Return a row of the table for each group of frequencies."""
    run = Run.open(directory)
    assert run.config.data.test is not None
    seen: Counter[str] = Counter()
    for source in dict.fromkeys(pair.source for pair in read(run.config.data.train)):
        seen.update(values_of(source, run))
    sources, references = group_references(read(run.config.data.test))
    outputs = load_run(run).translate(sources)
    found: dict[tuple[int, int], list[bool]] = {group: [] for group in GROUPS}
    for source, texts, output in zip(sources, references, outputs, strict=True):
        for value in values_of(source, run):
            if any(has(text, value) for text in texts):
                group = next(group for group in GROUPS if group[0] <= seen[value] <= group[1])
                found[group].append(has(output, value))
    rows = []
    for (least, most), hits in found.items():
        low, high = wilson(sum(hits), len(hits))
        frequency = f"{least}" if least == most else f"{least} to {most}" if most < 10**9 else f"{least} and more"
        share = 100 * sum(hits) / max(len(hits), 1)
        rows.append(
            [str(directory), frequency, f"{len(hits):,}", f"{share:.1f} %", f"{100 * low:.1f} to {100 * high:.1f}"]
        )
    return rows


def main() -> None:
    """Print the table of all runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    head = ["run", "frequency in training", "values", "in the output", "95 % interval"]
    print(columns([head, *(row for run in parser.parse_args().runs for row in measure(run))], right=[2, 3]))


if __name__ == "__main__":
    main()
