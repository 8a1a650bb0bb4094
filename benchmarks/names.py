"""Which values of records do outputs have, by how often training had them?

    python benchmarks/names.py runs/webnlg runs/webnlg-plain
    python benchmarks/names.py runs/webnlg --hypotheses out/hypotheses.txt     # outputs of regard evaluate -o out

For every value of a test record (a subject or an object) that at least one reference has word for word: whether the
output has it, too. Values are grouped by the number of training texts that have them; 0 are names and numbers that
the model has never written. Intervals are Wilson's, 95 %.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from regard.data.corpus import group_references, read
from regard.foundation.display import columns
from regard.metrics.intervals import wilson
from regard.runs.run import Run
from regard.tasks.loaded import load_run
from regard.text.records import Fields, parse_record, record_form

Group = tuple[int, int]
GROUPS: tuple[Group, ...] = ((0, 0), (1, 5), (6, 20), (21, 10**9))
"""Smallest and largest frequency of each group."""


def values_of(fields: Fields) -> set[str]:
    """Return the values of a record: all parts of its fields but names."""
    return {part for parts in fields for part in (*parts[:-2], parts[-1])}


def has(text: str, value: str) -> bool:
    """Return whether a text has a value as whole words, in any case."""
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text, re.IGNORECASE) is not None


def count_texts(values: Iterable[str], texts: Sequence[str]) -> dict[str, int]:
    """Return how many of the texts have each value."""
    index: dict[str, set[int]] = defaultdict(set)
    for number, text in enumerate(texts):
        for word in _words(text):
            index[word].add(number)
    counts = {}
    for value in values:
        candidates = [index.get(word, set()) for word in _words(value)] or [set(range(len(texts)))]
        counts[value] = sum(has(texts[number], value) for number in set.intersection(*candidates))
    return counts


def _words(text: str) -> Iterator[str]:
    return (word.lower() for word in re.findall(r"\w+", text))


def group_hits(
    records: Sequence[Fields], references: Sequence[Sequence[str]], outputs: Sequence[str], counts: Mapping[str, int]
) -> dict[Group, list[bool]]:
    """Return for each group whether the outputs have the values that a reference has."""
    found: dict[Group, list[bool]] = {group: [] for group in GROUPS}
    for fields, texts, output in zip(records, references, outputs, strict=True):
        for value in values_of(fields):
            if any(has(text, value) for text in texts):
                group = next(group for group in GROUPS if group[0] <= counts[value] <= group[1])
                found[group].append(has(output, value))
    return found


def measure(directory: Path, hypotheses: Path | None = None) -> list[list[str]]:
    """Return a row of the table for each group of frequencies; of stored outputs, if there are any."""
    run = Run.open(directory)
    data = run.config.data
    assert data.test is not None
    sources, references = group_references(read(data.test))
    records = [parse_record(source, record_form(data.train)) for source in sources]
    values = set[str]().union(*map(values_of, records))
    counts = count_texts(values, [pair.target for pair in read(data.train)])
    outputs = (
        hypotheses.read_text("utf-8").split("\n")[: len(sources)] if hypotheses else load_run(run).translate(sources)
    )
    rows = []
    for (least, most), hits in group_hits(records, references, outputs, counts).items():
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
    parser.add_argument("--hypotheses", nargs="*", default=[], type=Path, help="stored outputs of each run")
    given = parser.parse_args()
    stored = given.hypotheses or [None] * len(given.runs)
    rows = [row for run, outputs in zip(given.runs, stored, strict=True) for row in measure(run, outputs)]
    head = ["run", "training texts with the value", "values", "in the output", "95 % interval"]
    print(columns([head, *rows], right=[2, 3]))


if __name__ == "__main__":
    main()
