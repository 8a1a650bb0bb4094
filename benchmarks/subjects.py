"""Subject lines: ROUGE of several systems with intervals, and how well outputs keep to a number of words.

    python benchmarks/subjects.py runs/subjects runs/subjects-plain

Outputs are those of a beam that agree best with the others (minimum Bayes risk, --beam and --mbr; `--mbr none` for the
best score). Scores the first sentence of each e-mail and the outputs of each run on the test part of the first run,
against all references and against the first, which is the author's own. Differences from the first run are by a paired
bootstrap over e-mails (1,000 resamples). Then each run is asked for as many words as the first reference has: the share
of outputs with this number, and within one word of it.
"""

import argparse
import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from regard.data.corpus import group_references, read
from regard.foundation.display import columns
from regard.metrics.intervals import bootstrap_interval, wilson
from regard.metrics.scoring import make
from regard.runs.run import Run
from regard.search import Constraints, Search
from regard.tasks.loaded import LoadedRun, load_run

METRICS = ("rouge1", "rouge2", "rougeL")


def first_sentence(text: str) -> str:
    """Return the text up to its first full stop, question mark, exclamation mark or line break."""
    return re.split(r"(?<=[.!?])\s|\n", text.strip(), maxsplit=1)[0]


def mean(totals: np.ndarray) -> np.ndarray:
    """Return the mean of the first column in per cent, from sums of it and of the number of texts."""
    return 100 * totals[..., 0] / totals[..., 1]


def scores(outputs: dict[str, list[str]], references: list[tuple[str, ...]]) -> list[list[str]]:
    """Return the table of scores, with intervals and differences from the first system."""
    rows, first = [], next(iter(outputs))
    for metric in make(METRICS).values():
        by_system = {system: metric.statistics(lines, references)[:, 0] for system, lines in outputs.items()}
        for system, values in by_system.items():
            ones = np.ones_like(values)
            low, high = bootstrap_interval(np.stack([values, ones], 1), mean) or (0.0, 0.0)
            apart = ""
            if system != first:
                change = bootstrap_interval(np.stack([by_system[first] - values, ones], 1), mean) or (0.0, 0.0)
                apart = f"{100 * (by_system[first] - values).mean():+.2f} ({change[0]:+.2f} to {change[1]:+.2f})"
            rows.append([metric.label, system, f"{100 * values.mean():.2f}", f"{low:.2f} to {high:.2f}", apart])
    return rows


def lengths(run: LoadedRun, sources: list[str], references: list[tuple[str, ...]], search: Search) -> list[str]:
    """Ask for as many words as the first reference has; return how often an output has them, and its ROUGE-1."""
    asked = [max(1, len(several[0].split())) for several in references]
    outputs = [""] * len(sources)
    for count in sorted(set(asked)):
        rows = [row for row, wanted in enumerate(asked) if wanted == count]
        limited = replace(search, constraints=Constraints(words=(count, count)))
        for row, text in zip(rows, run.generator.translate([sources[row] for row in rows], limited), strict=True):
            outputs[row] = text
    apart = [abs(len(text.split()) - wanted) for text, wanted in zip(outputs, asked, strict=True)]
    near = sum(distance <= 1 for distance in apart)
    low, high = wilson(near, len(apart))
    rouge = make(["rouge1"])["rouge1"]
    score = rouge.score(rouge.statistics(outputs, references).sum(0))
    exact = 100 * sum(not distance for distance in apart) / len(apart)
    share = f"{100 * near / len(apart):.1f} % ({100 * low:.1f} to {100 * high:.1f})"
    return [f"{exact:.1f} %", share, f"{score:.2f}"]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--beam", type=int, default=16)
    parser.add_argument("--mbr", default="rouge", metavar="METRIC")
    options = parser.parse_args()
    directories, search = options.runs, Search(beam=options.beam)
    if options.mbr != "none":
        search = replace(search, utility=options.mbr)
    data = Run.open(directories[0]).config.data
    assert data.test is not None
    sources, references = group_references(read(data.test))
    runs = {str(directory): load_run(directory) for directory in directories}
    outputs = {name: run.generator.translate(sources, search) for name, run in runs.items()}
    outputs["first sentence"] = [first_sentence(source) for source in sources]
    head = ["metric", "system", "score", "95 % interval", f"{directories[0]} minus this (interval)"]
    for title, some in (("all references", references), ("the first reference", [row[:1] for row in references])):
        print(f"{title}:\n\n{columns([head, *scores(outputs, some)], right=[2])}\n")
    head = ["run", "exactly as asked", "within one word (interval)", "ROUGE-1 at this length"]
    print(
        columns(
            [head, *([name, *lengths(run, sources, references, search)] for name, run in runs.items())], right=[1, 3]
        )
    )


if __name__ == "__main__":
    main()
