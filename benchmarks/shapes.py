"""Is what a captioner says of scenes true, and does it look at a shape while it writes the shape's name?

    python benchmarks/shapes.py                                           runs/captions, on its held-out pictures
    python benchmarks/shapes.py runs/mine --pictures 300 --seed 7         on new scenes, made from another seed
    python benchmarks/shapes.py --sample                                  captions drawn at random: all kinds of them

How many captions are true of their pictures, by the run's own search, which likes to say what is surely true, or drawn
at random; and, for every shape's name that a true caption gives to a thing, how much of the attention (mean over layers
and heads) falls inside that thing's box while the name is written, against chance, the box's share of the picture; and
how often the place looked at most touches the box.
"""

import argparse
import json
import statistics
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from regard.data.scenes import SHAPES, SIDE, Scene, Thing, is_true, parse, scenes
from regard.foundation.display import bar, columns
from regard.inspection.analyses.attention.looks import Look, overlap
from regard.search import Search
from regard.tasks.loaded import load_run


@dataclass(frozen=True)
class Naming:
    """Where a model looked while it wrote the name of a shape."""

    attended: float
    """Share of the attention inside the box."""
    chance: float
    """The box's share of the picture."""
    found: bool
    """Whether the place looked at most touches the box."""


def namings(look: Look, scene: Scene) -> list[Naming]:
    """Every shape's name in a caption that stands behind a colour, and so means one thing; none without attention."""
    found: list[Naming] = []
    maps = look.maps()
    if maps is None:
        return found
    for place, word in enumerate(look.words):
        if place and word in SHAPES and (things := scene.those(word, look.words[place - 1])):
            shares = overlap(look.grid, box_of(things[0]))
            attended = float((maps[place] * shares).sum())
            best = bool(shares.flatten()[maps[place].flatten().argmax()] > 0)
            left, top, right, bottom = box_of(things[0])
            found.append(Naming(attended, (right - left) * (bottom - top), best))
    return found


def box_of(thing: Thing) -> tuple[float, float, float, float]:
    """The box of a thing as shares of the picture."""
    left, top, right, bottom = (edge / SIDE for edge in thing.box)
    return left, top, right, bottom


def kind_of(caption: str) -> str:
    """What a caption is about."""
    if " and " in caption:
        return "there is … and …"
    if caption.startswith("there are"):
        return "there are …"
    return "there is …" if caption.startswith("there is") else "… is left of …"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, default=Path("runs/captions"))
    parser.add_argument("--pictures", type=int, default=None, help="new scenes, instead of those held out")
    parser.add_argument("--seed", type=int, default=7, help="of the new scenes")
    parser.add_argument("--sample", action="store_true", help="draw captions, instead of looking for the likeliest")
    arguments = parser.parse_args()
    if not arguments.run.exists():
        print(f"{arguments.run} is not there: regard train recipes/captions.yaml --run {arguments.run}")
        return
    captioner = load_run(arguments.run)
    if arguments.pictures:
        names = [scene.name for scene in scenes(arguments.pictures, arguments.seed)]
    else:
        lines = (arguments.run / "data" / "validation.jsonl").read_text(encoding="utf-8").splitlines()
        names = list(dict.fromkeys(json.loads(line)["source"] for line in lines))
    true: Counter[str] = Counter()
    said: Counter[str] = Counter()
    named: list[Naming] = []
    search = Search(samples=1, seed=arguments.seed) if arguments.sample else None
    with bar() as progress:
        for number, (name, best) in enumerate(zip(names, captioner.hypotheses(names, search), strict=True), start=1):
            kind, right = kind_of(best[0].text), is_true(best[0].text, parse(name))
            said[kind] += 1
            true[kind] += right
            if right:
                named += namings(Look.of(captioner.watched(name, best[0])), parse(name))
            if progress:
                progress("looking", number, len(names))
    rows = [["captions", "", "true"]]
    rows += [[kind, f"{said[kind]:,}", f"{100 * true[kind] / said[kind]:.1f} %"] for kind in sorted(said)]
    rows.append(["all", f"{len(names):,}", f"{100 * sum(true.values()) / len(names):.1f} %"])
    print(columns(rows, right=(1, 2)))
    if named:
        shares = [
            statistics.fmean(values) for values in zip(*((x.attended, x.chance, x.found) for x in named), strict=True)
        ]
        told = [f"{100 * share:.1f} %" for share in shares]
        print()
        print(columns([["names of shapes", "in its box", "chance", "most in its box"], [f"{len(named):,}", *told]]))


if __name__ == "__main__":
    main()
