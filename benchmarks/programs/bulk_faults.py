"""Disturb `regard bulk` and compare its outputs with those of an undisturbed job; measure its throughput.

`python benchmarks/programs/bulk_faults.py faults RUN FILE WORK --on processes ray --lines 200000 --kill-every 4`
`python benchmarks/programs/bulk_faults.py pace RUN FILE WORK --lines 20000 --rounds 3`

`faults` makes a corpus of the first words of the sentences of FILE in WORK: half of the lines in one text file, the
rest in five compressed files of JSON lines. It translates them without a disturbance by local processes, and again with
a worker killed every few seconds (SIGKILL; on Ray in turn an actor and the worker of one). When 40 % of the lines are
translated, the driver is killed too, and the same command is started again. All outputs are then compared byte by byte,
and the undisturbed text file with the output of `regard translate`.

`pace` translates one text file by `regard translate` and by `regard bulk` on processes and on Ray, in turns. It prints
lines per second from the start of the command to its end, as bulk itself reports them (`steady`: without the time to
start), and per second of processor time of all processes, which depends less on what else the machine does. Both print
JSON.
"""

import argparse
import gzip
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from regard.data.lines import read_lines

RESTART_AFTER = 0.4
"""Share of the lines after which the driver is killed."""
LONGEST = 3600
"""Seconds after which a job is given up."""


def sentences(path: Path, count: int, words: int) -> list[str]:
    """Return so many lines of a file, the first words of each, in a new order in each pass over it."""
    lines = [" ".join(line.split()[:words]) for line in read_lines(path)]
    chance = random.Random(1)
    found: list[str] = []
    while len(found) < count:
        found += chance.sample(lines, len(lines))
    return found[:count]


def make_corpus(directory: Path, lines: list[str]) -> None:
    """Write half of the lines to a text file, and the rest to five compressed files of JSON lines."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    half = len(lines) // 2
    (directory / "whole.txt").write_text("".join(f"{line}\n" for line in lines[:half]), encoding="utf-8")
    rest = lines[half:]
    for number in range(5):
        part = rest[number * len(rest) // 5 : (number + 1) * len(rest) // 5]
        rows = [json.dumps({"id": index, "source": line}) + "\n" for index, line in enumerate(part)]
        (directory / f"part-{number}.jsonl.gz").write_bytes(gzip.compress("".join(rows).encode(), mtime=0))


def command(options: argparse.Namespace, source: Path, output: Path, on: str) -> list[str]:
    words = [sys.executable, "-m", "regard", "bulk", options.run, source, "-o", output, "--on", on, "--json"]
    return [*map(str, words), "--engine", options.engine, "--beam", str(options.beam)]


def translate_command(options: argparse.Namespace, source: Path, output: Path) -> list[str]:
    words = [sys.executable, "-m", "regard", "translate", options.run, source, "-o", output]
    return [*map(str, words), "--engine", options.engine, "--beam", str(options.beam)]


def descendants(pid: int) -> Iterator[tuple[int, str]]:
    """Yield the processes below a process, with their command lines."""
    children: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(status.parent.name))
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            waiting.append(child)
            try:
                yield child, Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue


def processor_seconds(process: subprocess.Popen[str]) -> float:
    """Wait for a process; return the processor time of it and of all processes below it, read twice a second."""
    tick = os.sysconf("SC_CLK_TCK")
    seconds: dict[int, float] = {}
    while process.poll() is None:
        for pid, _ in [(process.pid, ""), *descendants(process.pid)]:
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            seconds[pid] = (int(fields[11]) + int(fields[12])) / tick
        time.sleep(0.5)
    return sum(seconds.values())


def kill_worker(driver: int, mark: str, chance: random.Random) -> bool:
    """Kill one process of a driver whose command line has a mark; return whether there was one."""
    victims = [pid for pid, words in descendants(driver) if mark in words]
    if not victims:
        return False
    try:
        os.kill(chance.choice(victims), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def translated_lines(output: Path) -> int:
    """Return the lines of finished files and of journals."""
    count = 0
    for record in (output / ".bulk" / "finished").glob("*.json"):
        count += json.loads(record.read_text())["lines"]
    for journal in (output / ".bulk" / "journals").glob("*.jsonl"):
        for line in journal.read_bytes().split(b"\n")[1:-1]:
            count += len(json.loads(line)["outputs"])
    return count


def disturb(options: argparse.Namespace, corpus: Path, output: Path, on: str) -> dict[str, object]:
    """Run a job, kill its workers and once its driver; return what was killed."""
    chance = random.Random(2)
    marks = ["translation_worker"] if on == "processes" else ["ray::MapWorker", "translation_worker"]
    killed = dict.fromkeys(marks, 0)
    drivers, turn, at = 0, 0, 0
    start = time.monotonic()
    while True:
        driver = subprocess.Popen(command(options, corpus, output, on), stdout=subprocess.PIPE, text=True)
        last = time.monotonic()
        while driver.poll() is None:
            time.sleep(0.2)
            if time.monotonic() - start > LONGEST:
                driver.kill()
                raise SystemExit("The job does not end.")
            if time.monotonic() - last > options.kill_every:
                mark = marks[turn % len(marks)]
                if kill_worker(driver.pid, mark, chance):
                    killed[mark] += 1
                    turn += 1
                last = time.monotonic()
                at = 0 if drivers else translated_lines(output)
                if not drivers and at >= RESTART_AFTER * options.lines:
                    driver.kill()
                    drivers += 1
        printed, _ = driver.communicate()
        if driver.returncode != -signal.SIGKILL:
            break
        killed_at = at
    if driver.returncode:
        raise SystemExit(f"The job failed: {printed}")
    try:
        summary = json.loads(printed)
    except ValueError:
        raise SystemExit(f"Standard output has more than the summary: {printed!r}") from None
    return {
        "seconds": round(time.monotonic() - start, 1),
        "killed": killed,
        "killed drivers": drivers,
        "lines when the driver was killed": killed_at if drivers else None,
        "summary of the last driver": summary,
    }


def outputs(directory: Path) -> dict[str, bytes]:
    """Return the content of all outputs by name."""
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir()) if path.is_file()}


def faults(options: argparse.Namespace) -> dict[str, object]:
    corpus = options.work / "corpus"
    lines = sentences(options.file, options.lines, options.words)
    make_corpus(corpus, lines)
    expected = options.work / "expected"
    if not expected.exists():
        subprocess.run(command(options, corpus, expected, "processes"), check=True, stdout=subprocess.DEVNULL)
    reference = options.work / "reference.txt"
    if not reference.exists():
        subprocess.run(translate_command(options, corpus / "whole.txt", reference), check=True)
    wanted = outputs(expected)
    found: dict[str, object] = {
        "lines": options.lines,
        "files": len(wanted),
        "undisturbed text file equal to regard translate": wanted["whole.txt"] == reference.read_bytes(),
    }
    for on in options.on:
        output = options.work / f"disturbed-{on}"
        shutil.rmtree(output, ignore_errors=True)
        disturbed = disturb(options, corpus, output, on)
        found[on] = {**disturbed, "equal to the undisturbed job": outputs(output) == wanted}
        print(json.dumps(found[on]), file=sys.stderr, flush=True)
    return found


def pace(options: argparse.Namespace) -> dict[str, object]:
    source = options.work / "pace.txt"
    options.work.mkdir(parents=True, exist_ok=True)
    source.write_text(
        "".join(f"{line}\n" for line in sentences(options.file, options.lines, options.words)), encoding="utf-8"
    )
    seconds: dict[str, list[float]] = {"translate": [], "processes": [], "ray": []}
    processor: dict[str, list[float]] = {name: [] for name in seconds}
    steady: dict[str, list[float]] = {"processes": [], "ray": []}
    for _ in range(options.rounds):
        for name, taken in seconds.items():
            output = options.work / f"pace-{name}"
            shutil.rmtree(output, ignore_errors=True)
            output.unlink(missing_ok=True)
            words = (
                translate_command(options, source, output)
                if name == "translate"
                else command(options, source, output, name)
            )
            start = time.monotonic()
            process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
            processor[name].append(processor_seconds(process))
            taken.append(time.monotonic() - start)
            printed, _ = process.communicate()
            if process.returncode:
                raise SystemExit(f"{name} failed")
            if name in steady:
                steady[name].append(json.loads(printed)["lines_per_second"])
    rates = {name: [round(options.lines / one, 1) for one in taken] for name, taken in seconds.items()}
    base = statistics.median(rates["translate"])
    return {
        "lines": options.lines,
        "lines per second": rates,
        "steady": steady,
        "lines per second of processor time": {
            name: [round(options.lines / one, 1) for one in taken] for name, taken in processor.items()
        },
        "relative to translate": {name: round(statistics.median(found) / base, 3) for name, found in rates.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("faults", "pace"))
    parser.add_argument("run", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--on", choices=("processes", "ray"), nargs="+", default=["processes", "ray"])
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--words", type=int, default=6)
    parser.add_argument("--kill-every", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engine", default="ctranslate2")
    parser.add_argument("--beam", type=int, default=1)
    options = parser.parse_args()
    print(json.dumps((faults if options.part == "faults" else pace)(options), indent=1))


if __name__ == "__main__":
    main()
