"""Break the code on purpose, one place at a time, and see whether the tests notice.

`python -m tests.run_mutations` tries every mutation of `tests/mutations.py`; `issue`, `fresh` or `earlier` names a
group, `untried` and `survivors` those of which the record says so, and other words are parts of a name. Each is
applied to a copy of the tree, never in place. First the tests named for it run, then all others that mention its
package, each time until the first failure and within a time limit. A test that fails without the mutation as well
does not count and ends the run. Results are kept in `benchmarks/results/mutations.json` and `mutations.md`, together
with those of the first time that each mutation was tried.
"""

import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

import pytest

from tests.mutations import GROUPS, ROOT, Mutation

RECORD = ROOT / "benchmarks" / "results" / "mutations.json"
NEAR_SECONDS, WIDE_SECONDS = 400, 200
SURVIVES, OUT_OF_TIME = UNNOTICED = "survives", "out of time"
LATE = -1000
"""Stands for the exit code of a process that took too long."""
LEFT_OUT = (".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "__pycache__")
LEFT_OUT_TESTS = re.compile("browser|bench|tutorial")
"""Tests that need a browser, or the environment of the tree."""
FAILURE = re.compile(r"^(?:FAILED|ERROR) (tests/[^\s\[]+(?:\[.*\])?)(?: - .*)?$", re.MULTILINE)

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["torch", "numpy", "hypothesis.strategies", "pytest", "pydantic", "tokenizers"])


class Copy:
    """A copy of the tree in which one mutation at a time is tried."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "copy"
        shutil.copytree(ROOT, self.directory, ignore=shutil.ignore_patterns(*LEFT_OUT))
        shutil.rmtree(self.directory / "runs", ignore_errors=True)

    def try_mutation(self, mutation: Mutation) -> str:
        """Return the test that notices a mutation, `SURVIVES`, or `OUT_OF_TIME` where not all tests could be run."""
        target = self.directory / mutation.place().relative_to(ROOT)
        original = target.read_text(encoding="utf-8")
        target.write_text(original.replace(mutation.old, mutation.new), encoding="utf-8")
        try:
            near = near_tests(mutation, self.directory)
            noticed = self._failure(near, NEAR_SECONDS)
            if noticed in UNNOTICED:
                wide = [path for path in wide_tests(mutation, self.directory) if path not in near]
                later = self._failure(wide, WIDE_SECONDS)
                noticed = noticed if later == SURVIVES else later
        finally:
            target.write_text(original, encoding="utf-8")
        if noticed not in UNNOTICED:
            self._check_that_it_passes(noticed)
        return noticed

    def _failure(self, tests: Sequence[str], seconds: float) -> str:
        """Return the first test that fails; `SURVIVES` if there is none, `OUT_OF_TIME` if not all were tried."""
        code, printed = self._pytest(["-x", "--tb=no", "-rfE", *tests], seconds)
        if code in (0, LATE):
            return SURVIVES if code == 0 else OUT_OF_TIME
        found = FAILURE.search(printed)
        if found is None:
            raise RuntimeError(f"pytest ended with {code}, but no test failed:\n{printed}")
        return found[1]

    @cache  # noqa: B019 - a copy lives as long as the process
    def _check_that_it_passes(self, test: str) -> None:
        code, printed = self._pytest([test], NEAR_SECONDS)
        if code:
            raise RuntimeError(f"{test} fails without any mutation, so that it shows nothing:\n{printed[-2000:]}")

    def _pytest(self, arguments: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """Return the exit code of pytest in the copy, or `LATE`, and what it printed."""
        log = self.directory.parent / "log"
        process = PROCESSES.Process(target=_run_pytest, args=(self.directory, list(arguments), log))
        process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            return LATE, ""
        return process.exitcode, log.read_text(encoding="utf-8", errors="replace")


def _run_pytest(directory: Path, arguments: list[str], log: Path) -> None:
    """Run pytest in a copy; in a process that has imported the large libraries, but nothing of ours."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tests", "regard")]:
        del sys.modules[name]
    os.chdir(directory)
    os.environ |= {"PYTHONPATH": str(directory), "OMP_NUM_THREADS": "1"}
    sys.path[:] = [str(directory), *(path for path in sys.path if path not in ("", str(ROOT)))]
    with log.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    code = pytest.main(["-q", "-o", "addopts=", "-m", "not long", "-p", "no:cacheprovider", *arguments])
    sys.stdout.flush()
    os._exit(int(code))


def near_tests(mutation: Mutation, root: Path = ROOT) -> list[str]:
    """Return the test files named for a mutation; raises `ValueError` for one that does not exist."""
    names = [f"tests/test_{name}.py" for name in mutation.tests.split()]
    for name in names:
        if not (root / name).is_file():
            raise ValueError(
                f"Mutation “{mutation.what}” names {name}, which does not exist: adapt tests/mutations.py."
            )
    return names


def wide_tests(mutation: Mutation, root: Path = ROOT) -> list[str]:
    """Return all test files that mention the mutated file's package, without those that a copy cannot run."""
    package = mutation.place().relative_to(ROOT).parts[1]
    return sorted(
        f"tests/{path.name}"
        for path in (root / "tests").glob("test_*.py")
        if f"regard.{package}" in path.read_text(encoding="utf-8") and not LEFT_OUT_TESTS.search(path.name)
    )


def choose(words: Iterable[str], record: dict[str, Any]) -> list[tuple[str, Mutation]]:
    """Return the mutations that the arguments select, each with its group."""
    words = list(words)

    def is_chosen(group: str, mutation: Mutation) -> bool:
        known = record.get(mutation.what)
        named = {group, *(["untried"] if known is None else [])}
        named |= {"survivors"} if known and known["last"]["noticed_by"] in UNNOTICED else set()
        return not words or any(word in named or word in mutation.what for word in words)

    return [(group, one) for group, several in GROUPS.items() for one in several if is_chosen(group, one)]


def table(record: dict[str, Any]) -> str:
    """Return the record as a page of Markdown."""
    known = [
        (group, one, record[one.what]) for group, several in GROUPS.items() for one in several if one.what in record
    ]

    def count(group: str, when: str) -> str:
        results = [entry[when]["noticed_by"] not in UNNOTICED for name, _, entry in known if name == group]
        return f"{sum(results)} of {len(results)} ({sum(results) / len(results):.0%})" if results else "not tried"

    lines = [
        "# The code broken on purpose",
        "",
        "`python -m tests.run_mutations` changes one place of the code at a time and runs the tests that should notice",
        "(`tests/mutations.py` lists the changes). Of 46 such changes before this list, 34 (74 %) were noticed.",
        "*First* is the first time that a mutation was tried, before any test was written for it; *last* is",
        "the state of the last run.",
        "",
        "| mutations | first | last |",
        "|---|---|---|",
        "| the twelve survivors of the 46 | 0 of 12 (0%) | " + count("issue", "last") + " |",
        f"| chosen afresh, in every package | {count('fresh', 'first')} | {count('fresh', 'last')} |",
        f"| those of an earlier session | {count('earlier', 'first')} | {count('earlier', 'last')} |",
        "",
        "| what is broken | file | first | last noticed by | date, commit |",
        "|---|---|---|---|---|",
    ]
    for group, one, entry in known:
        by = SURVIVES if group == "issue" else entry["first"]["noticed_by"]
        first = by if by in UNNOTICED else "noticed"
        last = entry["last"]
        by = last["noticed_by"].removeprefix("tests/").replace("|", "\\|")
        by = f"**{by}**" if by in UNNOTICED else f"`{by}`"
        lines.append(f"| {one.what} | `{last['file']}` | {first} | {by} | {last['date']}, {last['commit']} |")
    return "\n".join([*lines, ""])


def run(words: Sequence[str], jobs: int) -> None:
    """Try the mutations that the arguments select, several at a time, and keep the record."""
    command = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    chosen, start = choose(words, _record()), time.monotonic()
    copies: SimpleQueue[Copy] = SimpleQueue()
    writing = Lock()

    def try_one(group: str, mutation: Mutation) -> bool:
        copy, began = copies.get(), time.monotonic()
        try:
            by = copy.try_mutation(mutation)
        finally:
            copies.put(copy)
        with writing:
            _keep(group, mutation, by, commit)
        told = by.upper() if by in UNNOTICED else by
        print(f"{time.monotonic() - began:4.0f} s  {mutation.what}: {told}", flush=True)
        return by not in UNNOTICED

    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(jobs) as threads:
        for number in range(jobs):
            copies.put(Copy(Path(directory) / str(number)))
        noticed = sum(threads.map(lambda one: try_one(*one), chosen))
    print(f"{noticed} of {len(chosen)} mutations noticed, {time.monotonic() - start:.0f} s")


def _keep(group: str, mutation: Mutation, by: str, commit: str) -> None:
    """Write what came of a mutation into the record."""
    entry = {
        "noticed_by": by,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit,
        "file": mutation.place().relative_to(ROOT).as_posix(),
    }
    record = _record()
    first = record.get(mutation.what, {}).get("first", entry)
    record[mutation.what] = {"group": group, "first": first, "last": entry}
    RECORD.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    RECORD.with_suffix(".md").write_text(table(record), encoding="utf-8")


def _record() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.is_file() else {}
    return known


if __name__ == "__main__":
    arguments = ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("words", nargs="*", help="groups, parts of names, `untried` or `survivors`; by default all")
    arguments.add_argument("--jobs", type=int, default=1, help="how many mutations to try at a time")
    given = arguments.parse_args()
    run(given.words, given.jobs)
