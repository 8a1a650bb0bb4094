"""What is pretraining worth? Taggers with few labelled sentences, from scratch and from a masked language model.

    python benchmarks/pretraining.py                          about a quarter of an hour on one core
    python benchmarks/pretraining.py --sizes 100 1000 --seeds 1 2 3 4 5

An encoder learns from the words alone of English EWT's training sentences (`recipes/masked.yaml`, never a tag); then
taggers (`recipes/tagging.yaml`) learn from a few of them with their tags, some from the pretrained weights, some from
weights that were trained for a single step: the same tokenizer, model and course, so that the weights are all that
differs. No other tags are seen (validation has the same sentences), and all are tested on the dev part. Runs go to
runs/pretraining and are kept: what is done is not done again. Results go to benchmarks/results/pretraining.md and
.json, the picture to docs/images/pretraining.png.
"""

import argparse
import json
import os
import random
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS, PICTURE = HERE / "results", HERE.parent / "docs" / "images" / "pretraining.png"
RECIPES = HERE.parent / "recipes"
TREEBANK = Path(os.environ.get("REGARD_DATA", ".")) / "ud" / "en_ewt"
SIZES, SEEDS = (100, 300, 1000, 3000), (1, 2, 3)
WORDS = "text.tokenizer={kind: words, lower: true, vocabulary: null}"
PRETRAINED, SCRATCH = "pretrained", "from scratch"
STEPS = {PRETRAINED: 1000, SCRATCH: 1}
"""Of the masked language model that each sort of tagger starts from."""


def sentences(path: Path) -> list[str]:
    """The sentences of a CoNLL-U file, as they stand there."""
    from regard.data.lines import read_lines

    found: list[list[str]] = [[]]
    for line in read_lines(path):
        found[-1].append(line) if line.strip() else found.append([])
    return ["\n".join(lines) + "\n\n" for lines in found if lines]


def sample(every: list[str], size: int, seed: int) -> str:
    """Some sentences at random, among them one at least of every tag: of those that tell a new tag, the first."""
    order = random.Random(seed).sample(every, len(every))
    known: set[str] = set()
    telling = []
    for sentence in order:
        tags = {line.split("\t")[3] for line in sentence.splitlines() if line[:1].isdecimal()} - {"_"}
        if tags - known:
            telling.append(sentence)
            known |= tags
    chosen = dict.fromkeys([*telling, *order])
    return "".join(list(chosen)[:size])


def learnt(recipe: str, directory: Path, *overrides: str) -> Any:
    """A run of a recipe, trained where it is not yet, and how it ended."""
    from regard.config.loading import load
    from regard.training.loop import train

    return train(load(RECIPES / f"{recipe}.yaml", overrides), directory, resume=directory.exists())


def measure(place: Path, sizes: list[int], seeds: list[int]) -> dict[str, dict[int, list[float]]]:
    """The accuracy on the dev part by sort, size and seed."""
    from regard.config.text_corpora import ConlluFiles
    from regard.data.corpus import read

    place.mkdir(parents=True, exist_ok=True)
    whole, dev = (TREEBANK / f"en_ewt-ud-{part}.conllu.gz" for part in ("train", "dev"))
    plain = place / "text.txt"
    plain.write_text("".join(f"{pair.source}\n" for pair in read(ConlluFiles(conllu=[str(whole)]))))
    for sort, steps in STEPS.items():
        course = [f"training.steps={steps}", f"training.validate_every={min(steps, 250)}"]
        learnt("masked", place / sort.replace(" ", "-"), f"data.train={{text: {plain}}}", *course)
    every = sentences(whole)
    found: dict[str, dict[int, list[float]]] = {sort: defaultdict(list) for sort in STEPS}
    for size in sizes:
        for seed in seeds:
            few = place / f"{size}-{seed}.conllu"
            few.write_text(sample(every, size, seed))
            for sort in STEPS:
                start = place / sort.replace(" ", "-")
                outcome = learnt(
                    "tagging", place / f"{start.name}-{size}-{seed}", f"data.train={{conllu: {few}}}",
                    f"data.validation={{conllu: {few}}}",
                    f"data.test={{conllu: {dev}}}", WORDS, f"model.start_from={start}", "model.width=128",
                    "training.steps=200", "training.batch_tokens=512", "training.validate_every=50",
                    f"training.seed={seed}",
                )  # fmt: skip
                found[sort][size].append(outcome.test["accuracy"])
                print(sort, size, seed, f"{outcome.test['accuracy']:.1f}", flush=True)
        write(found)
    return found


def write(found: dict[str, dict[int, list[float]]]) -> None:
    """The table, for people and for programs, and the picture."""
    from regard.inspection.drawing import COLOURS, INK, LINE, new_figure

    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "pretraining.json").write_text(json.dumps(found, indent=1) + "\n")
    sizes = list(next(iter(found.values())))
    count = min(len(scores) for by_size in found.values() for scores in by_size.values())
    lines = [
        "# What pretraining is worth",
        "",
        "`python benchmarks/pretraining.py`: word accuracy on EWT dev (2,001 sentences) of taggers that learnt from so "
        f"many sentences; mean of {count} seeds, lowest and highest in brackets. Pretrained: masked words of the "
        "12,544 training sentences without tags; from scratch: the same tokenizer and model, untrained weights.",
        "",
        f"| labelled sentences | {' | '.join(found)} | gain |",
        f"|--:|{'--:|' * (len(found) + 1)}",
    ]
    for size in sizes:
        means = {sort: statistics.fmean(by_size[size]) for sort, by_size in found.items()}
        told = [f"{means[sort]:.1f} ({min(by[size]):.1f}–{max(by[size]):.1f})" for sort, by in found.items()]
        lines.append(f"| {size:,} | {' | '.join(told)} | {means[PRETRAINED] - means[SCRATCH]:+.1f} |")
    (RESULTS / "pretraining.md").write_text("\n".join(lines) + "\n")

    figure = new_figure(6.4, 3.6, "Tagging with few labelled sentences", dpi=144)
    axes = figure.add_axes((0.09, 0.14, 0.88, 0.72))
    for (sort, by_size), colour in zip(found.items(), COLOURS, strict=False):
        means = [statistics.fmean(by_size[size]) for size in sizes]
        axes.plot(sizes, means, color=colour, linewidth=2, marker="o", markersize=4, label=sort)
        axes.fill_between(
            sizes, [min(by_size[s]) for s in sizes], [max(by_size[s]) for s in sizes], color=colour, alpha=0.15, lw=0
        )
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_xlabel("labelled sentences", fontsize=8, color=INK)
    axes.set_title("% of words tagged rightly, EWT dev", loc="left", fontsize=9, color=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(LINE)
    axes.grid(axis="y", color=LINE, linewidth=0.8)
    axes.tick_params(colors=INK, labelsize=8, length=0)
    axes.legend(frameon=False, fontsize=8, labelcolor=INK, loc="lower right")
    figure.savefig(PICTURE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--directory", type=Path, default=Path("runs/pretraining"))
    arguments = parser.parse_args()
    measure(arguments.directory, arguments.sizes, arguments.seeds)
    print((RESULTS / "pretraining.md").read_text())


if __name__ == "__main__":
    main()
