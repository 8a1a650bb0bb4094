"""Servers under load: throughput, latency and memory with the same model, side by side."""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks import machine, picture, report
from benchmarks.corpus import at_hand
from benchmarks.decoding import trained
from benchmarks.environments import Unavailable
from benchmarks.options import Options
from benchmarks.places import CACHE, PROGRAMS, RESULTS, say
from benchmarks.report import Figure
from benchmarks.servers import BEAM, REGARD, Server, regard_server, servers
from benchmarks.worker import surroundings

CONNECTIONS = (1, 8, 32, 128)
HALF = "half load"
SECONDS, HALF_SECONDS = 4.0, 8.0
"""Length of a measurement with a number of connections, and at half load."""
TOGETHER = 500
"""Concurrent requests that must give the texts of sequential ones."""
KINDS = {
    "float32, beam 5": ("ctranslate2", BEAM),
    "int8, beam 5": ("ctranslate2-int8", BEAM),
    "float32, greedy": ("ctranslate2", 1),
}

Table = dict[str, dict[str, Figure]]


def measure(options: Options) -> str:
    """Put every server under every load, round by round, and write the tables."""
    corpus = at_hand(options.quick)
    run, told = trained(options, corpus)
    texts = CACHE / "served.txt"
    texts.write_text("\n".join(corpus.sources) + "\n", encoding="utf-8")
    known, failed = servers(options, run)
    facts: dict[str, Any] = {"machine": machine.facts(), "rounds": options.rounds, "weights": told}
    with ExitStack() as stack:
        running: dict[str, Server] = {}
        for name, server in known.items():
            try:
                running[name] = stack.enter_context(server)
                server.pause()
            except Unavailable as error:
                failed[name] = str(error)
        loads = [str(count) for count in (CONNECTIONS[:2] if options.quick else CONNECTIONS)] + [HALF]
        for metric in ("per_second", "p50", "p99"):
            facts[metric] = {name: {load: Figure() for load in loads} for name in running}
        facts["statuses"] = {name: {} for name in running}
        for number in range(options.rounds):
            for load in loads:
                for name, server in running.items():
                    say(f"  round {number + 1}, {load}: {name}")
                    server.resume()
                    _add(facts, name, load, _put_under(server, load, texts, facts["per_second"][name], options.quick))
                    server.pause()
        facts["peak_bytes"] = {name: server.peak() for name, server in running.items()}
    facts["failed"] = failed
    facts["together"] = {}
    _write(facts, loads, options)  # what is known so far
    for kind, (engine, beam) in KINDS.items():
        facts["together"][kind] = _together(run, texts, kind, engine, beam, options)
    return _write(facts, loads, options)


def _add(facts: dict[str, Any], name: str, load: str, found: dict[str, Any]) -> None:
    for metric in ("per_second", "p50", "p99"):
        if found[metric] is not None:
            facts[metric][name][load].rounds.append(found[metric])
    counts = facts["statuses"][name]
    for status, count in found["statuses"].items():
        counts[status] = counts.get(status, 0) + count


def _put_under(server: Server, load: str, texts: Path, rates: dict[str, Figure], quick: bool) -> dict[str, Any]:
    """Return what was measured at a load: a number of connections, or half of this server's own maximum."""
    seconds = 1.0 if quick else HALF_SECONDS if load == HALF else SECONDS
    options = ["--seconds", str(seconds), "--requests", "20000"]
    if load == HALF:
        best = report.best(rates, [each for each in rates if each != HALF]) or 2.0
        options += ["--connections", "1000", "--rate", str(best / 2)]
    else:
        options += ["--connections", load]
    return send(server, texts, *options)


def send(server: Server, texts: Path, *options: str) -> dict[str, Any]:
    """Run the load generator in a process of its own."""
    command = [sys.executable, str(PROGRAMS / "load.py"), server.url, str(texts), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=surroundings(1))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _together(run: Path, texts: Path, kind: str, engine: str, beam: int, options: Options) -> dict[str, Any]:
    """Return whether concurrent requests give the texts of sequential ones, and how fast both are."""
    count = str(20 if options.quick else TOGETHER)
    say(f"  {count} requests one by one and together: {kind}")
    with regard_server(run, engine) as server:
        given = ["--requests", count, *(["--beam", str(beam)] if beam != BEAM else [])]
        send(server, texts, "--requests", "64", "--connections", "32")  # both workers have loaded the model
        alone = send(server, texts, *given, "--connections", "1")
        together = send(server, texts, *given, "--connections", count)
    return {
        "alone": alone["per_second"],
        "together": together["per_second"],
        "statuses": together["statuses"],
        "different": sum(a != b for a, b in zip(alone["texts"], together["texts"], strict=True)),
    }


def _write(facts: dict[str, Any], loads: list[str], options: Options) -> str:
    rates: Table = facts["per_second"]
    names = list(rates)
    head = [f"{load} connections" if load.isdigit() else load for load in loads]
    head[0] = "1 connection"

    def table(title: str, metric: str, form: str, unit: str, factor: float = 1.0) -> list[str]:
        rows = []
        for name in names:
            figures = [
                Figure([value * factor for value in facts[metric][name][load].rounds]).shown(form, unit)
                for load in loads
            ]
            rows.append([f"**{name}**" if name == REGARD else name, *figures])
        for name in names[1:]:
            pairs = [(facts[metric][REGARD][load].median, facts[metric][name][load].median) for load in loads]
            rows.append([f"Regard / {name}", *(report.ratio(mine, theirs) for mine, theirs in pairs)])
        return [report.markdown([title, *head], rows), ""]

    highest = {name: report.best(rates[name], loads[:-1]) for name in names}
    best = [[name, f"{highest[name] or 0:,.0f}", report.ratio(highest[REGARD], highest[name])] for name in names]
    for row, name in zip(best, names, strict=True):
        row.append(f"{facts['peak_bytes'][name] / 1e6:,.0f} MB")
        row.append(", ".join(f"{status}: {count}" for status, count in sorted(facts["statuses"][name].items())))
    together = [
        [
            name,
            f"{found['alone']:,.1f}",
            f"{found['together']:,.1f}",
            report.ratio(found["together"], found["alone"]),
            str(found["different"]),
        ]
        for name, found in facts["together"].items()
    ]
    text = "\n".join(
        [
            "# Serving",
            "",
            f"Requests of one sentence, {facts['weights']}; CTranslate2 float32, beam {BEAM}, two cores, no cache, "
            f"medians of {facts['rounds']} interleaved rounds ± half the spread. The load generator runs on the same "
            f"cores. At half load, requests arrive at random at half of the server's own highest rate. "
            f"{machine.in_words(facts['machine'])}",
            "",
            report.markdown(["server", "most requests/s", "Regard / it", "peak memory", "answers by status"], best),
            "",
            *table("requests/s", "per_second", ",.1f", ""),
            *table("median latency, ms", "p50", ",.0f", "", 1000),
            *table("p99 latency, ms", "p99", ",.0f", "", 1000),
            f"{TOGETHER} requests at once, compared with the same requests one by one:",
            "",
            report.markdown(["Regard", "one by one, /s", "at once, /s", "ratio", "different texts"], together),
            *[f"\n{name} was not measured: {why}." for name, why in facts["failed"].items()],
            *_soaks(),
        ]
    )
    shown = {
        "requests/s, most": highest,
        "p99 at half load, ms": {name: 1000 * (facts["p99"][name][HALF].median or 0) for name in names},
        "peak memory, MB": {name: facts["peak_bytes"][name] / 1e6 for name in names},
    }
    picture.bars(shown, "one sentence per request, CTranslate2 float32, beam 5", "serve", quick=options.quick)
    return report.write("serve", text, facts, quick=options.quick)


def _soaks() -> list[str]:
    """Return the section on what `programs/soak.py` has measured, which `results/soak.json` has by title."""
    path = RESULTS / "soak.json"
    if not path.exists():
        return []
    lines = ["", "# Overload", ""]
    for title, found in json.loads(path.read_text()).items():
        memory, wrong = found["memory"], len(found["wrong"])
        settled = [sample for sample in memory if sample[0] >= 60] or memory
        lines += [
            f"**{title}**: {found['minutes']:g} minutes, requests at {found['rate']:.0f}/s, "
            f"{found['rate'] / found['capacity']:.1f} times the {found['capacity']:.0f}/s measured before. "
            f"{found['requests']:,} requests, by status: "
            + ", ".join(f"{count:,} × {status}" for status, count in sorted(found["statuses"].items()))
            + f". Without an answer: {found['unanswered']}. Accepted, but not the sequential answer: {wrong}. "
            f"Accepted requests took {found['accepted_p50']:.1f} s (median), {found['accepted_p99']:.1f} s (p99), "
            f"{found['accepted_max']:.1f} s at most; "
            + (f"refused ones {found['refused_p99']:.1f} s (p99). " if found["refused_p99"] else "none was refused. ")
            + f"Memory of the front process {settled[0][1] / 1e6:.0f} MB after a minute, "
            f"{settled[-1][1] / 1e6:.0f} MB at the end, "
            f"at most {max(sample[1] for sample in memory) / 1e6:.0f} MB; of both workers "
            f"{settled[0][2] / 1e6:.0f} MB, {settled[-1][2] / 1e6:.0f} MB, "
            f"{max(sample[2] for sample in memory) / 1e6:.0f} MB. "
            + (f"Workers killed: {found['kills']}. " if found["kills"] else "")
            + (
                f"SIGTERM with {found['pending_at_sigterm']:,} requests pending: answered "
                + ", ".join(f"{count:,} × {status}" for status, count in sorted(found["pending_answered"].items()))
                + f" within {found['drain_seconds']:.1f} s. "
                if found["pending_at_sigterm"]
                else ""
            )
            + f"Exit code {found['exit_code']}. Tracebacks in the log: {found['tracebacks']}.",
            "",
        ]
    return lines
