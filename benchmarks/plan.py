"""What `regard plan` promises against what a run then takes: time within a quarter, memory within 15 %."""

import json
import subprocess
import sys
from typing import Any

from benchmarks import machine, report
from benchmarks.corpus import Corpus, at_hand
from benchmarks.environments import Unavailable
from benchmarks.options import Options
from benchmarks.places import ROOT, say
from benchmarks.processes import describe_processes, measure_processes
from benchmarks.training import ARCHITECTURES, QUICK, TOKENS, WARMUP, Architecture
from benchmarks.worker import Worker, pinned, surroundings

TIME, MEMORY = 0.25, 0.15
SECONDS = 12.0
"""Of training that is compared: about as many batches as show every length."""


def measure(options: Options) -> str:
    """Plan and train each model in turn, and write the table."""
    corpus = at_hand(options.quick)
    facts: dict[str, Any] = {"machine": machine.facts(), "corpus": corpus.name, "models": {}, "failed": {}}
    for name, architecture in (QUICK if options.quick else ARCHITECTURES).items():
        if options.models and name not in options.models:
            continue
        say(f"Plan, {architecture.title}")
        try:
            facts["models"][architecture.title] = _compare(options, corpus, name, architecture)
        except Unavailable as error:
            facts["failed"][architecture.title] = str(error)
        _write(facts, options)  # after each: what is done is not lost
    try:
        facts["processes"] = measure_processes(options)
    except Unavailable as error:
        facts["failed"]["processes on this machine"] = str(error)
    return _write(facts, options)


def _compare(options: Options, corpus: Corpus, name: str, architecture: Architecture) -> dict[str, Any]:
    """Seconds of an update and peak memory, promised and measured."""
    run = corpus.run(f"plan-{name}", architecture.settings(512 if options.quick else TOKENS))
    command = pinned([sys.executable, "-m", "regard", "plan", str(run / "config.yaml"), "--json"])
    done = subprocess.run(
        command, env=surroundings(options.threads), cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(done.stderr.strip()[-200:])
    plan = json.loads(done.stdout)
    if plan["here"] is None:
        raise Unavailable(plan["why_not_here"])
    settings = {"run": str(run), "warmup": WARMUP}
    with Worker(f"plan {name}", "regard", "train_regard", settings, options.threads) as worker:
        worker.ready()
        answer = worker.ask(seconds=1.0 if options.quick else SECONDS, updates=10)
        peak = worker.peak()
    return {
        "planned_seconds": plan["here"]["seconds"],
        "seconds": answer["seconds"] / answer["updates"],
        "planned_bytes": sum(plan["memory"].values()),
        "bytes": peak,
        "parts": plan["memory"],
    }


def _write(facts: dict[str, Any], options: Options) -> str:
    rows = []
    for title, one in facts["models"].items():
        off = one["planned_seconds"] / one["seconds"] - 1, one["planned_bytes"] / one["bytes"] - 1
        rows.append(
            [
                title,
                f"{one['planned_seconds']:.2f} s",
                f"{one['seconds']:.2f} s",
                f"{off[0]:+.0%}" if abs(off[0]) <= TIME else f"**{off[0]:+.0%}**",
                f"{one['planned_bytes'] / 1e9:.2f} GB",
                f"{one['bytes'] / 1e9:.2f} GB",
                f"{off[1]:+.0%}" if abs(off[1]) <= MEMORY else f"**{off[1]:+.0%}**",
            ]
        )
    why = [f"- {name}: not measured, {reason}." for name, reason in facts["failed"].items()]
    text = "\n".join(
        [
            "# Plan",
            "",
            f"What `regard plan` promises (ten seconds on random text) and what training on {facts['corpus']} takes, "
            f"an update of at most {TOKENS:,} padded tokens. The limits are {TIME:.0%} for time and {MEMORY:.0%} for "
            f"memory; what is beyond them is in bold. {machine.in_words(facts['machine'])}",
            "",
            report.markdown(
                ["", "an update, planned", "measured", "off", "peak memory, planned", "measured", "off"], rows
            ),
            *(["", describe_processes(facts["processes"])] if facts.get("processes") else []),
            *(["", "Left out:", *why] if why else []),
        ]
    )
    return report.write("plan", text, facts, quick=options.quick)
