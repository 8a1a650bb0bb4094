"""From the start of a process to its first translated sentence."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks import machine, picture, report
from benchmarks.corpus import at_hand
from benchmarks.decoding import programs, trained
from benchmarks.environments import Unavailable, interpreter
from benchmarks.options import Options
from benchmarks.places import PROGRAMS, ROOT, say
from benchmarks.report import Figure
from benchmarks.worker import pinned, surroundings

HELP = "regard --help"
NATIVE, FAST = "regard translate", "regard translate --engine ctranslate2"


def measure(options: Options) -> str:
    """Start everything again and again, and write the table."""
    corpus = at_hand(options.quick)
    run, told = trained(options, corpus)
    sentence = corpus.sources[0] + "\n"
    regard = str(Path(sys.executable).with_name("regard"))
    commands = {
        HELP: [regard, "--help"],
        NATIVE: [regard, "translate", str(run)],
        FAST: [regard, "translate", str(run), "--engine", "ctranslate2"],
    }
    failed = {}
    for name, one in programs(options, corpus, run).items():
        if one.peer == "regard" or "processes" in name or "int8" in name:
            continue
        try:
            python = str(interpreter(one.peer))
        except Unavailable as error:
            failed[name] = str(error)
            continue
        script = [python, str(PROGRAMS / f"{one.file}.py"), json.dumps(one.settings)]
        commands[name.split(",")[0] + ", a script"] = script
    figures = {name: Figure() for name in commands} | {name: Figure(why_not=why) for name, why in failed.items()}
    say("Starting:")
    for number in range(options.rounds + 1):  # the first warms the disk's cache, and is not counted
        for name, command in commands.items():
            if figures[name].why_not:
                continue
            say(f"  round {number}: {name}")
            try:
                seconds = _seconds(command, sentence, options.threads, whole=name == HELP)
            except Unavailable as error:
                figures[name] = Figure(why_not=str(error))
                continue
            if number:
                figures[name].rounds.append(seconds)
    facts: dict[str, Any] = {"machine": machine.facts(), "rounds": options.rounds, "weights": told, "seconds": figures}
    return _write(facts, options)


def _seconds(command: list[str], sentence: str, threads: int, *, whole: bool) -> float:
    """Seconds from the start of a process to the end of its first line, or of the whole."""
    environment = {**surroundings(threads), "BENCH_START": "1", "BENCH_ANSWERS": "1"}
    start = time.perf_counter()
    with subprocess.Popen(
        pinned(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=ROOT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(sentence)
        process.stdin.close()
        said = process.stdout.read() if whole else process.stdout.readline()
        seconds = time.perf_counter() - start
        if not said:
            raise Unavailable(f"it ended with: {(process.stderr.read().strip().splitlines() or ['nothing'])[-1][:200]}")
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return seconds


def _write(facts: dict[str, Any], options: Options) -> str:
    figures: dict[str, Figure] = facts["seconds"]
    rows = [
        [f"**{name}**" if name.startswith("regard") else name, figure.shown(".2f", " s")]
        for name, figure in figures.items()
    ]
    pairs = {
        "engine / CTranslate2's own script": (FAST, "CTranslate2"),
        "native / Hugging Face": (NATIVE, "Hugging"),
        "native / JoeyNMT": (NATIVE, "Joey"),
    }
    for title, (mine, begins) in pairs.items():
        theirs = report.best(figures, [name for name in figures if name.startswith(begins)], lowest=True)
        rows.append([title, report.ratio(figures[mine].median, theirs)])
    why = report.reasons(figures)
    text = "\n".join(
        [
            "# Start",
            "",
            f"From the start of the process to its first translated sentence (beam 5), {facts['weights']}; medians of "
            f"{facts['rounds']} interleaved rounds, ± half the spread. {machine.in_words(facts['machine'])}",
            "",
            report.markdown(["process start to first sentence", "seconds"], rows),
            *(["", "Left out:", *why] if why else []),
        ]
    )
    shown = {"": {name: one.median for name, one in figures.items()}}
    picture.bars(shown, "seconds to the first sentence", "startup", quick=options.quick)
    return report.write("startup", text, facts, quick=options.quick)
