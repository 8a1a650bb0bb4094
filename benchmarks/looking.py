"""Questions about scenes that a run has never seen: how many it answers, and whether it looks at what they are about.

    python benchmarks/looking.py                                          runs/visual-questions
    python benchmarks/looking.py runs/mine --scenes 100 --seed 2          fewer scenes, made from another seed

For each kind of question: how many answers are right, and how many would be by always giving the kind's commonest one;
and for those that are right and about things that are there, how much of each look's attention (mean of its heads)
falls inside the boxes of these things, against chance, the boxes' share of the picture, and how often the place that
was looked at most, over all looks, touches one of them.
"""

import argparse
import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch

from regard.data.scenes import SIDE, Asked, Scene, questions, scenes
from regard.foundation.display import bar, columns
from regard.inspection.analyses.attention.looks import Look, overlap
from regard.tasks.loaded import LoadedRun, load_run

EACH = 4
"""Questions about each scene."""
KINDS = ("what colour", "how many", "is there", "what is", "all")
"""By their first words."""


@dataclass(frozen=True)
class Looked:
    """Where a model looked while it answered."""

    looks: list[float]
    """Share of each look's attention inside the boxes."""
    chance: float
    """The boxes' share of the picture."""
    found: bool
    """Whether the place looked at most touches one."""


def looked(predictor: LoadedRun, scene: Scene, one: Asked) -> Looked:
    """Where a model looks for the answer to a question about things that are there."""
    look = Look.of(predictor.trace(f"{scene.name}\t{one.question}"))
    maps = look.maps()
    assert maps is not None
    boxes = [overlap(look.grid, tuple(edge / SIDE for edge in thing.box)) for thing in one.about]  # type: ignore[arg-type]
    wanted = torch.stack(boxes).sum(0)  # rows × columns
    shares = (maps * wanted).sum((1, 2)).tolist()  # of the looks, and of their mean
    return Looked(shares[:-1], float(wanted.mean()), bool(wanted.flatten()[maps[-1].argmax()] > 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, default=Path("runs/visual-questions"))
    parser.add_argument("--scenes", type=int, default=300, help="new scenes")
    parser.add_argument("--seed", type=int, default=7, help="of the new scenes")
    arguments = parser.parse_args()
    if not arguments.run.exists():
        print(f"{arguments.run} is not there: regard train recipes/visual-questions.yaml --run {arguments.run}")
        return
    predictor, generator = load_run(arguments.run), random.Random(f"looking {arguments.seed}")
    made = scenes(arguments.scenes, arguments.seed)
    asked = [(scene, one) for scene in made for one in questions(scene, generator, EACH)]
    said = predictor.predict([f"{scene.name}\t{one.question}" for scene, one in asked])
    right: dict[str, list[bool]] = defaultdict(list)
    answers: dict[str, Counter[str]] = defaultdict(Counter)
    seen: dict[str, list[Looked]] = defaultdict(list)
    with bar() as progress:
        for number, ((scene, one), answer) in enumerate(zip(asked, said, strict=True), start=1):
            kind, hit = " ".join(one.question.split()[:2]), answer.facts["label"] == one.answer
            right[kind].append(hit)
            answers[kind][one.answer] += 1
            if one.about and hit:
                seen[kind].append(looked(predictor, scene, one))
            if progress:
                progress("looking", number, len(asked))
    guessed = {kind: counts.most_common(1)[0][1] for kind, counts in answers.items()}
    guessed["all"] = sum(guessed.values())
    right["all"] = [hit for hits in list(right.values()) for hit in hits]
    seen["all"] = [one for found in list(seen.values()) for one in found]
    looks = max((len(one.looks) for one in seen["all"]), default=0)
    names = [f"look {number}" for number in range(1, looks + 1)]
    rows = [["question", "asked", "right", "by guess", "seen", *names, "chance", "most"]]
    for kind in KINDS:
        hits, found = right[kind], seen[kind]
        if hits and found:
            shares = zip(*((*one.looks, one.chance, one.found) for one in found), strict=True)
            told = [fmean(hits), guessed[kind] / len(hits), None, *map(fmean, shares)]
            cells = [f"{len(found):,}" if share is None else f"{100 * share:.1f} %" for share in told]
            rows.append([kind, f"{len(hits):,}", *cells])
    print(columns(rows, right=range(1, len(rows[0]))))


if __name__ == "__main__":
    main()
