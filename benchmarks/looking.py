"""Questions about scenes that a run has never seen: how many it answers, and whether it looks at what they are about.

    python benchmarks/looking.py runs/visual-questions

Attention is that of the answer (the question's first token), look by look, the mean of all heads: the share of it that
falls into the boxes of the things that a question is about, beside the share of the picture that those boxes cover.
"""

import random
import sys
from collections import defaultdict
from statistics import fmean

import torch

from regard.data.scenes import SIDE, Asked, Scene, questions, scenes
from regard.inspection.looks import overlap
from regard.predictor import Predictor

SCENES, EACH, SEED = 300, 4, 1
"""Scenes of another seed than the recipe's, and questions about each."""


def inside(predictor: Predictor, scene: Scene, one: Asked) -> tuple[list[float], float]:
    """The share of each look's attention (mean of its heads) within the boxes of what is asked about, and chance."""
    trace = predictor.trace(f"{scene.name}\t{one.question}")
    assert trace.picture is not None
    grid = trace.picture.grid
    boxes = [overlap(grid, tuple(edge / SIDE for edge in thing.box)) for thing in one.about]  # type: ignore[arg-type]
    wanted = torch.stack(boxes).sum(0).flatten()  # P
    looks = [weights[:, 0] for name, weights in trace.activations.items() if name.endswith("picture_attention.weights")]
    return [float((look.mean(0) * wanted).sum()) for look in looks], float(wanted.mean())


def main(run: str) -> None:
    """Tell both, for each kind of question."""
    predictor, generator = Predictor.load(run), random.Random("looking")
    asked = [(scene, one) for scene in scenes(SCENES, SEED) for one in questions(scene, generator, EACH)]
    said = predictor.predict([f"{scene.name}\t{one.question}" for scene, one in asked])
    right: dict[str, list[bool]] = defaultdict(list)
    seen: dict[str, list[list[float]]] = defaultdict(list)
    chance: dict[str, list[float]] = defaultdict(list)
    for (scene, one), answer in zip(asked, said, strict=True):
        for kind in (" ".join(one.question.split()[:2]), "all"):
            right[kind].append(answer.facts["label"] == one.answer)
        if one.about and answer.facts["label"] == one.answer:
            looks, by_chance = inside(predictor, scene, one)
            for kind in (" ".join(one.question.split()[:2]), "all"):
                seen[kind].append(looks)
                chance[kind].append(by_chance)
    for kind, hits in right.items():
        told = ""
        if seen[kind]:
            shares = ", ".join(f"{fmean(look):.2f}" for look in zip(*seen[kind], strict=True))
            told = f"; of each look {shares} on what is asked about, chance {fmean(chance[kind]):.2f}"
        print(f"{kind}: {100 * fmean(hits):.1f} % of {len(hits):,} right{told}")


if __name__ == "__main__":
    main(*sys.argv[1:])
