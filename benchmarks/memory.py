"""Peak memory of training and decoding, everybody on the same batches."""

import json
from typing import Any

from benchmarks import machine, picture, report
from benchmarks.corpus import at_hand
from benchmarks.decoding import programs, trained
from benchmarks.options import Options
from benchmarks.places import CACHE, RESULTS, say
from benchmarks.rounds import Crowd
from benchmarks.training import ARCHITECTURES, OURS, PEERS, QUICK, workers
from benchmarks.worker import Worker

UPDATES = 12
"""After so many batches the largest shapes have been seen."""


def measure(options: Options) -> str:
    """Train and decode a little, and write the tables; models that were trained within the hour are not run again."""
    corpus = at_hand(options.quick)
    facts: dict[str, Any] = {"machine": machine.facts(), "corpus": corpus.name, "training": {}, "failed": {}}
    for name, architecture in (QUICK if options.quick else ARCHITECTURES).items():
        if options.models and name not in options.models:
            continue
        known = _known(name, options)
        if known is None:
            say(f"Memory of training, {architecture.title}:")
            with Crowd(workers(options, corpus, name, architecture), options.threads) as crowd:
                crowd.each("some updates", lambda worker: worker.ask(seconds=0, updates=UPDATES))
                known = crowd.peaks()
            facts["failed"] |= {f"{title}, {name}": why for title, why in crowd.failed.items()}
        facts["training"][architecture.title] = known
    run, facts["weights"] = trained(options, corpus)
    say("Memory of decoding:")
    found = {
        name: Worker(f"decode {name}", one.peer, one.file, one.settings, options.threads)
        for name, one in programs(options, corpus, run).items()
    }
    order = {"do": "decode", "beam": 5, "batch": 32, "every": 4, "output": str(CACHE / "memory.txt")}
    with Crowd(found, options.threads) as crowd:
        crowd.each("beam 5", lambda worker: worker.ask(**(order | _batch(worker))))
        facts["decoding"] = crowd.peaks()
    facts["failed"] |= crowd.failed
    return _write(facts, options)


def _batch(worker: Worker) -> dict[str, int]:
    """Regard counts tokens where the others count sentences."""
    return {"batch": worker.settings["usual"]} if worker.peer == "regard" else {}


def _known(name: str, options: Options) -> dict[str, float] | None:
    """What the training of this model took when it was measured last, if that is not long ago."""
    import time

    path = (RESULTS / "quick" if options.quick else RESULTS) / "train.json"
    if options.peers or not path.exists() or time.time() - path.stat().st_mtime > 3600:
        return None
    found: dict[str, Any] = json.loads(path.read_text())["models"].get(name, {})
    peaks: dict[str, float] | None = found.get("peak_bytes")
    return peaks


def _write(facts: dict[str, Any], options: Options) -> str:
    models: dict[str, dict[str, float]] = facts["training"]
    rows = []
    for title in (OURS, *PEERS):
        shown = [peaks.get(title) for peaks in models.values()]
        cells = [f"{one / 1e9:.2f} GB" if one else "–" for one in shown]
        rows.append([f"**{title}**" if title == OURS else title, *cells])
    compare = ["**Regard / leanest peer**"]
    for peaks in models.values():
        theirs = [peak for title, peak in peaks.items() if title != OURS]
        compare.append(report.ratio(peaks.get(OURS), min(theirs) if theirs else None))
    decoding = [
        [f"**{name}**" if name.startswith("Regard") else name, f"{peak / 1e9:.2f} GB"]
        for name, peak in facts["decoding"].items()
    ]
    why = [f"- {name}: not measured, {reason}." for name, reason in facts["failed"].items()]
    text = "\n".join(
        [
            "# Memory",
            "",
            f"{facts['corpus']}; the most that each process (with its children) held in RAM. "
            f"{machine.in_words(facts['machine'])}",
            "",
            report.markdown(["training, peak", *models], [*rows, compare]),
            "",
            report.markdown(["decoding, beam 5, peak", ""], decoding),
            *(["", "Left out:", *why] if why else []),
        ]
    )
    shown_bars = {title: {name: peak / 1e9 for name, peak in peaks.items()} for title, peaks in models.items()}
    picture.bars(shown_bars, "training: peak memory in GB", "memory", quick=options.quick)
    return report.write("memory", text, facts, quick=options.quick)
