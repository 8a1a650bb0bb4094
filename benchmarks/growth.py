"""How cost grows: time and memory against corpus, sentence length, batch and vocabulary, with the exponent fitted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import machine, picture, report
from benchmarks.environments import Unavailable
from benchmarks.options import Options
from benchmarks.places import say
from benchmarks.training import ARCHITECTURES, QUICK
from benchmarks.worker import Worker

TOLERANCE = 0.15
"""By how much a fitted exponent may be above the law's: timing is noisy."""
USUAL: dict[str, Any] = {"pairs": 5_000, "length": 16, "tokens": 4096, "vocabulary": 8_000, "rows": 64, "beam": 1}


@dataclass(frozen=True)
class Law:
    """One quantity that is varied while the others stay."""

    do: str
    axis: str
    name: str
    sizes: tuple[int, ...]
    time: float
    """The largest exponent that the mathematics allows to the time for a token (learn) or a sentence (say)."""
    memory: float
    why: str
    changes: tuple[tuple[str, int], ...] = ()
    """What else is not as usual."""


LAWS = (
    Law("learn", "pairs", "pairs of the corpus", (1_000, 10_000, 100_000, 400_000), 0, 0, "each token costs the same"),
    Law("learn", "length", "tokens of a sentence", (8, 16, 32, 64, 128, 256), 1, 1, "attention looks at all others"),
    Law("learn", "tokens", "tokens of a batch", (512, 1024, 2048, 4096, 8192), 0, 1, "activations of one batch"),
    Law("learn", "vocabulary", "vocabulary", (1_000, 4_000, 16_000, 64_000), 1, 1, "the output layer grows with it"),
    Law("say", "length", "tokens of a sentence", (8, 16, 32, 64, 128), 2, 1, "steps, each of which looks back"),
    Law("say", "rows", "sentences of a batch", (1, 4, 16, 64, 256), 0, 1, "no sentence costs more for its company"),
    Law("say", "vocabulary", "vocabulary", (1_000, 4_000, 16_000, 64_000), 1, 1, "every step scores all of it"),
    Law("say", "beam", "width of the beam", (2, 4, 8, 16), 1, 1, "each hypothesis is a row", (("rows", 16),)),
)
QUICK_LAWS = (
    Law("learn", "length", "tokens of a sentence", (8, 16, 32), 1, 1, "attention looks at all others"),
    Law("say", "rows", "sentences of a batch", (1, 4, 16), 0, 1, "no sentence costs more for its company"),
)


def measure(options: Options) -> str:
    """Measure every law, and write table and picture."""
    facts: dict[str, Any] = {"machine": machine.facts(), "model": "", "laws": []}
    architecture = (QUICK if options.quick else ARCHITECTURES)["tiny"]
    usual = {**USUAL, **({"tokens": 256, "vocabulary": 500, "pairs": 500} if options.quick else {})}
    facts["model"], facts["usual"] = architecture.title, dict(usual)
    usual |= {"model": architecture.model, "seconds": 0.2 if options.quick else 1.0}
    say("Growth:")
    for law in QUICK_LAWS if options.quick else LAWS:
        found, failed = {}, {}
        for size in law.sizes:
            say(f"  {law.do}, {law.name} {size:,}")
            settings = {**usual, **dict(law.changes), "do": law.do, law.axis: size}
            try:
                with Worker(f"grow {law.do} {law.axis} {size}", "regard", "grow", settings, options.threads) as worker:
                    found[size] = worker.first_answer()
            except Unavailable as error:
                failed[size] = str(error)
        facts["laws"].append(_law(law, found, failed))
        _write(facts, options)
    return _write(facts, options)


def fit(sizes: Sequence[float], values: Sequence[float]) -> tuple[float, float]:
    """Exponent and factor of the power law nearest to some points, by least squares of the logarithms."""
    x, y = [math.log(size) for size in sizes], [math.log(value) for value in values]
    middle = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - middle[0]) * (b - middle[1]) for a, b in zip(x, y, strict=True)) / sum(
        (a - middle[0]) ** 2 for a in x
    )
    return slope, math.exp(middle[1] - slope * middle[0])


def _law(law: Law, found: dict[int, dict[str, float]], failed: dict[int, str]) -> dict[str, Any]:
    """The exponents of time and memory."""
    sizes = list(found)
    unit = "token learnt" if law.do == "learn" else "sentence"
    told: dict[str, Any] = {"do": law.do, "over": law.name, "why": law.why, "failed": failed, "quantities": []}
    costs = ("seconds", f"µs a {unit}", law.time, 1e6), ("peak", "peak memory, MB", law.memory, 1e-6)
    for key, name, allowed, scale in costs:
        values = [found[size][key] * scale for size in sizes]
        exponent, factor = fit(sizes, values) if len(sizes) > 1 else (None, None)
        told["quantities"].append(
            {
                "name": name,
                "x": sizes,
                "y": values,
                "exponent": exponent,
                "factor": factor,
                "allowed": allowed,
                "kept": exponent is not None and exponent <= allowed + TOLERANCE,
            }
        )
    return told


def _write(facts: dict[str, Any], options: Options) -> str:
    rows, panels, failed, usual = [], [], [], facts["usual"]
    for law in facts["laws"]:
        doing = "training" if law["do"] == "learn" else "decoding"
        failed += [f"- {doing}, {law['over']} {size}: not measured, {why}." for size, why in law["failed"].items()]
        for one in law["quantities"]:
            rows.append(
                [
                    f"{doing}, {one['name']}, over {law['over']}",
                    f"{one['x'][0]:,} … {one['x'][-1]:,}" if one["x"] else "–",
                    f"{one['y'][0]:,.4g} … {one['y'][-1]:,.4g}" if one["y"] else "–",
                    f"{one['exponent']:.2f}" if one["exponent"] is not None else "–",
                    f"≤ {one['allowed']:g} ({law['why']})",
                    "not measured" if one["exponent"] is None else "kept" if one["kept"] else "**broken**",
                ]
            )
            if one["exponent"] is not None:
                panels.append(
                    {
                        **one,
                        "title": f"{doing}: {one['name']}",
                        "law": f"≤ {one['allowed']:g}",
                        "x_name": law["over"],
                        "y_name": one["name"],
                    }
                )
    text = "\n".join(
        [
            "# Growth",
            "",
            f"Regard, {facts['model']}: one quantity varies, the others stay at {usual['length']} tokens a sentence, "
            f"{usual['tokens']:,} a batch (decoding: {usual['rows']} sentences, greedy, native engine), a vocabulary "
            f"of {usual['vocabulary']:,}, {usual['pairs']:,} pairs; random text. Each point is a process of its own, "
            f"the exponent that of the nearest power law. {machine.in_words(facts['machine'])}",
            "",
            report.markdown(["cost", "from … to", "measured", "exponent", "the mathematics", ""], rows),
            "",
            f"A law counts as kept up to {TOLERANCE:g} above its exponent. Memory has a floor: torch itself.",
            *(["", "Left out:", *failed] if failed else []),
        ]
    )
    picture.lines(panels, "growth", quick=options.quick)
    return report.write("growth", text, facts, quick=options.quick)
