"""Mutates run directories and uses them: nothing but a clear refusal or the same result may come of it.

`python -m tests.run_fuzzer 5000 SEED` is the long run, which writes its result to `benchmarks/results/test-long.md`;
the suite does 200 mutations of the same kind.
"""

import contextlib
import hashlib
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from regard.cli import main
from tests.run_damage import MUTATIONS, files_of, lay_a_trap, point_elsewhere
from tests.stored_runs import configurations, question

TASKS = ("translation-transformer", "translation-rnn", "classes", "tags", "language", "captions", "number")
LONG = 5000
"""Mutations from which on a result is recorded."""
RESULT = Path(__file__).parent.parent / "benchmarks" / "results" / "test-long.md"
PATIENCE = 60
"""Seconds that a command may take."""


@dataclass(frozen=True)
class Outcome:
    """What a command came to."""

    code: int
    printed: str
    complaint: str
    weights: str
    """Hash of the run's weights afterwards."""

    @property
    def result(self) -> tuple[str, str]:
        """What must stay the same."""
        return self.printed, self.weights


def make_runs(directory: Path) -> list[Path]:
    """Train a small run of several tasks."""
    from regard.config.loading import from_mapping
    from regard.training.loop import train
    from regard.training.view import View

    made = []
    directory.mkdir(parents=True, exist_ok=True)
    for name, settings in configurations(directory).items():
        if name in TASKS:
            train(from_mapping(settings), directory / name, view=View())
            made.append(directory / name)
    return made


def ask(run: Path) -> Outcome:
    """Ask a run what its task asks for, as a user would."""
    arguments, text = question(run.name)
    return _command(run, [str(run) if word == "RUN" else word for word in arguments], text)


def resume(run: Path) -> Outcome:
    """Train a run one step further."""
    found = _command(run, ["train", "--resume", str(run), "training.steps=13"], "")
    return Outcome(found.code, "", found.complaint, found.weights)


def verify(run: Path) -> Outcome:
    """Check a run in full."""
    found = _command(run, ["runs", str(run), "--verify"], "")
    return Outcome(found.code, "" if found.code else found.printed, found.complaint + found.printed, found.weights)


def _command(run: Path, arguments: list[str], text: str) -> Outcome:
    streams = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    sys.stdout, sys.stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    try:
        with _deadline(), _native_errors() as native:
            code = main(arguments)
        sys.stdout.flush(), sys.stderr.flush()
        printed, complaint = (one.buffer.getvalue().decode() for one in (sys.stdout, sys.stderr))
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
    complaint += "".join(native)
    weights = run / "model.safetensors"
    digest = hashlib.sha256(weights.read_bytes()).hexdigest() if weights.is_file() and not weights.is_symlink() else ""
    return Outcome(code, printed, complaint, digest)


@contextlib.contextmanager
def _deadline() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"took more than {PATIENCE} seconds")

    old = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)


@contextlib.contextmanager
def _native_errors() -> Iterator[list[str]]:
    """Collect what libraries write to the standard error of the process, past Python's."""
    found: list[str] = []
    before = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield found
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            found.append(file.read().decode(errors="replace"))


USES = (ask, ask, resume, verify)


class Fuzzer:
    """Mutates copies of some runs and compares what comes of them with what comes of the originals."""

    def __init__(self, runs: list[Path], place: Path) -> None:
        self.runs, self.place = runs, place
        self.tally: Counter[str] = Counter()
        self.known: dict[tuple[str, str], Outcome] = {}
        for run in runs:
            for use in dict.fromkeys(USES):
                copy, _ = self._copy(run)
                self.known[run.name, use.__name__] = use(copy)
                assert self.known[run.name, use.__name__].code == 0, self.known[run.name, use.__name__]

    def _copy(self, run: Path) -> tuple[Path, Path]:
        shutil.rmtree(self.place, ignore_errors=True)
        copy, outside = self.place / "inside" / run.name, self.place / "outside"
        shutil.copytree(run, copy)
        outside.mkdir()
        (outside / "secret").write_text("nobody may read or write this")
        return copy, outside

    def try_one(self, seed: int) -> None:
        """Do one mutation; raises `AssertionError` where something other than a refusal or the same result comes."""
        chance = random.Random(seed)
        run, mutation, use = chance.choice(self.runs), chance.choice(MUTATIONS), chance.choice(USES)
        copy, outside = self._copy(run)
        sealed_again = mutation(copy, chance, outside)
        before = _listing(outside)
        found = use(copy)
        what = f"seed {seed}: {mutation.__name__} of {run.name}, {use.__name__}: {found.complaint[-600:]}"
        assert _listing(outside) == before, f"wrote outside; {what}"
        for trace in ("bug in Regard", "Traceback", "panicked at"):
            assert trace not in found.complaint, what
        if found.code:
            assert len(found.complaint.split()) > 5, f"no reason given; {what}"
            self.tally["refused"] += 1
        else:
            known = self.known[run.name, use.__name__]
            same = found.result[1] == known.result[1] if use is not ask else found.printed == known.printed
            if use is verify:
                same = mutation in (lay_a_trap, point_elsewhere) or _for_people_only(run, copy)
            assert same or sealed_again, f"another result without a word; {what}"
            self.tally["same" if same else "sealed again"] += 1


def _for_people_only(run: Path, copy: Path) -> bool:
    """Whether two directories differ only in files that are for people, and may be edited."""
    names = {path.relative_to(one) for one in (run, copy) for path in files_of(one)}
    return all(
        name.name in ("README.md", "metrics.jsonl", "curves.png", "latest", "run.json")
        or ((copy / name).is_file() and (copy / name).read_bytes() == (run / name).read_bytes())
        for name in names
    )


def _listing(directory: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def run_fuzzer(count: int, seed: int = 0) -> None:
    """Do many mutations and report every failure with its seed."""
    with tempfile.TemporaryDirectory() as place:
        fuzzer = Fuzzer(make_runs(Path(place) / "made"), Path(place) / "tried")
        start, failures = time.monotonic(), 0
        for number in range(seed, seed + count):
            try:
                fuzzer.try_one(number)
            except AssertionError as error:
                failures += 1
                print(f"FAILED {error}", flush=True)
            if number % 250 == 249:
                print(f"{number + 1 - seed:,} of {count:,} in {time.monotonic() - start:.0f} s", flush=True)
        seconds = time.monotonic() - start
        print(f"{count:,} mutations: {dict(fuzzer.tally)}, {failures} failures, {seconds:.0f} s")
        if count >= LONG:
            _record(count, seed, fuzzer.tally, failures, seconds)


def _record(count: int, seed: int, tally: Counter[str], failures: int, seconds: float) -> None:
    """Add a long run to the committed results."""
    command = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(command, cwd=RESULT.parent, capture_output=True, text=True, check=False).stdout.strip()
    day = datetime.now(UTC).date().isoformat()
    row = f"| {day} | {commit} | {count:,} from {seed} | {tally['refused']:,} | {tally['same']:,} "
    row += f"| {tally['sealed again']:,} | {failures} | {seconds:.0f} |"
    lines = RESULT.read_text(encoding="utf-8").splitlines()
    last = max(number for number, line in enumerate(lines) if line.startswith("|"))  # other sections follow the table
    RESULT.write_text("\n".join([*lines[: last + 1], row, *lines[last + 1 :]]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_fuzzer(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
