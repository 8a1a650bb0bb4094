"""Bulk translation: what an output is, and that no failure changes or loses anything."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from regard.bulk import supervised_worker
from regard.bulk.decoding_options import Assignment, DecodingOptions
from regard.bulk.events import from_json, to_json
from regard.bulk.input_files import find_shards
from regard.bulk.job import BulkJob
from regard.bulk.local_runner import LocalRunner
from regard.cli import line_input, main
from regard.data.lines import CHUNK
from regard.foundation.errors import UsageError
from tests import bulk_worker

STORED = Path(__file__).parent / "fixtures" / "format-1" / "translation-transformer"
LINES = 2 * CHUNK * 4 + 700
"""Two whole blocks, and one that is not."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Transformer with weights of little training: its outputs are long and different."""
    return Path(shutil.copytree(STORED, tmp_path_factory.mktemp("runs") / "run"))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers without a model."""
    monkeypatch.setattr(supervised_worker, "COMMAND", bulk_worker.COMMAND)


def sentences(count: int, seed: int = 1) -> list[str]:
    """Rows of letters, some of them empty."""
    chance = random.Random(seed)
    return [" ".join(chance.choice("abcdefgh") for _ in range(chance.randrange(0, 7))) for _ in range(count)]


def write(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def read(path: Path) -> list[str]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode().split("\n")[:-1]


def quick_outputs(path: Path) -> list[str]:
    """What workers without a model make of the lines of a file, in the chunks of `regard translate`."""
    return [
        output
        for chunk in line_input.chunks([path], 0)
        for output in bulk_worker.outputs_of([line for _, line in chunk])
    ]


def files(directory: Path) -> dict[str, bytes]:
    """All outputs by name, without the state of the job."""
    found = {str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(".bulk")}


def bulk(*arguments: object) -> int:
    return main(["bulk", *map(str, arguments)])


def summary(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code = bulk(*arguments, "--json")
    return {"code": code, **json.loads(capsys.readouterr().out)}


# What an output is.


@pytest.mark.parametrize("engine", ["native", "ctranslate2", "ctranslate2-int8"])
def test_outputs_are_those_of_translate_line_by_line(run: Path, tmp_path: Path, engine: str) -> None:
    """With two workers and small blocks, and a line so long that it is split, which takes the ordinary path."""
    lines = [*sentences(3 * CHUNK // 2), " ".join("abcdefgh" * 30), *sentences(40, seed=2)]
    source = write(tmp_path / "in.txt", lines)
    options = ["--engine", engine, "--beam", "2", "--length-penalty", "0.5"]
    assert main(["translate", str(run), str(source), "-o", str(tmp_path / "expected.txt"), *options]) == 0
    assignment = Assignment(str(run), engine, (), DecodingOptions(beam=2, length_penalty=0.5))
    shards = find_shards([str(source)], tmp_path / "out")
    job = BulkJob(shards=shards, output=tmp_path / "out", assignment=assignment, block_chunks=1)
    done = job.run(lambda: LocalRunner(assignment, 2))
    assert done.facts()["finished"] == 1 and done.tokens > 0
    assert (tmp_path / "out" / "in.txt").read_bytes() == (tmp_path / "expected.txt").read_bytes()


def test_options_of_search_are_those_of_translate(run: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "in.txt", sentences(30))
    forbidden = write(tmp_path / "forbidden.txt", ["a", "b c"])
    for number, options in enumerate(
        (
            ["--sample", "--temperature", "0.8", "--seed", "3"],
            ["--mbr", "rouge", "--beam", "3"],
            ["--forbid", str(forbidden), "--prefix", "c", "decoding.max_ratio=0.5"],
        )
    ):
        expected = tmp_path / f"expected-{number}.txt"
        assert main(["translate", str(run), str(source), "-o", str(expected), *options]) == 0
        assert bulk(run, source, "-o", tmp_path / f"out-{number}", "--workers", 1, *options) == 0
        assert read(tmp_path / f"out-{number}" / "in.txt") == read(expected)


@pytest.mark.parametrize("block_chunks", [1, 3])
@pytest.mark.parametrize("workers", [1, 3])
def test_lines_are_translated_together_as_translate_does(
    run: Path, tmp_path: Path, quick: None, workers: int, block_chunks: int
) -> None:
    """Whatever the number of workers and the size of blocks; long lines end a chunk early."""
    lines = sentences(LINES)
    lines[100:130] = ["x " * 10_000] * 30
    source = write(tmp_path / "in.txt", lines)
    assignment = Assignment(str(run), "native")
    shards = find_shards([str(source)], tmp_path / "out")
    job = BulkJob(shards=shards, output=tmp_path / "out", assignment=assignment, block_chunks=block_chunks)
    job.run(lambda: LocalRunner(assignment, workers))
    assert read(tmp_path / "out" / "in.txt") == quick_outputs(source)


def test_every_format_keeps_its_layout_and_its_other_fields(run: Path, tmp_path: Path, quick: None) -> None:
    texts = ["a b", "", "cé", 'd "e"']
    outputs = bulk_worker.outputs_of(texts)
    corpus = tmp_path / "corpus"
    write(corpus / "a.txt.gz", texts)
    header = "id\tsource\ttranslation\tlast"
    write(corpus / "b" / "head.tsv", [header, *(f"{number}\t{text}\told\tz" for number, text in enumerate(texts))])
    write(corpus / "b" / "plain.tsv.gz", [f"{text}\tx" for text in texts])
    objects = [f'{{"id": {number}.50, "source": {json.dumps(text)}}}' for number, text in enumerate(texts)]
    write(corpus / "c.jsonl.gz", [*objects, "", '{"source": "f", "translation": "old"}'])
    table = pyarrow.table({"n": [1, 2, 3, 4], "source": ["a b", None, "cé", 'd "e"']})
    parquet.write_table(table, corpus / "d.parquet", row_group_size=3)
    write(corpus / "empty.txt", [])
    write(corpus / "empty.jsonl.gz", [])
    assert bulk(run, corpus, "-o", tmp_path / "out") == 0
    out = tmp_path / "out"
    assert read(out / "a.txt.gz") == outputs
    cells = [f"{number}\t{text}\t{output}\tz" for number, (text, output) in enumerate(zip(texts, outputs, strict=True))]
    assert read(out / "b" / "head.tsv") == [header, *cells]
    assert read(out / "b" / "plain.tsv.gz") == [f"{t}\tx\t{o}" for t, o in zip(texts, outputs, strict=True)]
    together = bulk_worker.outputs_of([*texts, "", "f"])
    found = read(out / "c.jsonl.gz")
    for line, given, output in zip(found[:4], objects, together, strict=False):
        assert line == f'{given[:-1]}, "translation": {json.dumps(output, ensure_ascii=False)}}}'
    assert found[4:] == ["", json.dumps({"source": "f", "translation": together[5]})]
    written = parquet.ParquetFile(out / "d.parquet")
    assert written.num_row_groups == 2
    assert written.read().to_pydict() == {**table.to_pydict(), "translation": outputs}
    assert read(out / "empty.txt") == read(out / "empty.jsonl.gz") == []


def test_fields_have_the_names_that_the_user_gives(run: Path, tmp_path: Path, quick: None) -> None:
    write(tmp_path / "in" / "a.tsv", ["1\tx", "2\ty"])
    write(tmp_path / "in2" / "a.jsonl", ['{"en": "x"}'])
    assert bulk(run, tmp_path / "in", "-o", tmp_path / "out", "--field", "2") == 0
    expected = bulk_worker.outputs_of(["x", "y"])
    assert read(tmp_path / "out" / "a.tsv") == [f"1\tx\t{expected[0]}", f"2\ty\t{expected[1]}"]
    assert bulk(run, tmp_path / "in2", "-o", tmp_path / "out2", "--field", "en", "--into", "de") == 0
    assert json.loads(read(tmp_path / "out2" / "a.jsonl")[0]) == {"en": "x", "de": bulk_worker.outputs_of(["x"])[0]}


def test_arguments_are_files_directories_and_patterns(tmp_path: Path) -> None:
    for name in ("c/1/a.txt", "c/2/a.txt", "c/.hidden/a.txt", "c/2/a.txt.quarantine.jsonl"):
        write(tmp_path / name, ["x"])
    out = tmp_path / "c" / "out"

    def names(*arguments: str) -> list[str]:
        return [shard.name for shard in find_shards([f"{tmp_path}/{argument}" for argument in arguments], out)]

    write(out / "1" / "a.txt", ["an earlier output"])
    assert names("c") == names("c/*/*.txt") == names("c/**/a.txt") == names("c/1/a.txt", "c/2/a.txt")
    assert names("c") == ["1/a.txt", "2/a.txt"]
    assert names("c/1/a.txt") == names("c/1") == ["a.txt"]
    for arguments, message in (
        (("c/1", "c/2"), "would both be translated"),
        (("c/*.nothing",), "No file matches"),
        (("c/missing.txt",), "does not exist"),
        (("c/out/1/a.txt",), "is in the output directory"),
        (("c/out",), "contains the inputs"),
    ):
        with pytest.raises(UsageError, match=message):
            names(*arguments)
    write(tmp_path / "c" / "table.csv", ["x"])
    with pytest.raises(UsageError, match=r"ends in \.csv"):
        names("c")


# What fails.


def test_lines_that_fail_are_quarantined_and_the_others_are_translated(
    run: Path, tmp_path: Path, quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others are translated as if these lines were empty; a line may also kill its worker."""
    lines = sentences(CHUNK + 100)
    wrong = {3: "a FAIL", 40: "b FAIL", 77: "c KILL", CHUNK + 5: "d KILL"}
    emptied = [*lines]
    for index, text in wrong.items():
        lines[index], emptied[index] = text, ""
    source = write(tmp_path / "in.txt", lines)
    data = source.read_bytes().split(b"\n")
    data[9], emptied[9] = b"\xe9t\xe9", ""
    source.write_bytes(b"\n".join(data))
    found = summary(capsys, run, source, "-o", tmp_path / "out", "--workers", 2)
    assert found["code"] == 0 and found["quarantined"] == 5 and found["worker_restarts"] >= 4
    assert read(tmp_path / "out" / "in.txt") == quick_outputs(write(tmp_path / "emptied.txt", emptied))
    quarantine = [json.loads(line) for line in read(tmp_path / "out" / "in.txt.quarantine.jsonl")]
    assert [fields["line"] for fields in quarantine] == [4, 10, 41, 78, CHUNK + 6]
    assert [fields["source"] for fields in quarantine] == ["a FAIL", r"\xe9t\xe9", "b FAIL", "c KILL", "d KILL"]
    reasons = [fields["reason"] for fields in quarantine]
    assert reasons[0] == "ValueError: this line fails" and "not valid UTF-8" in reasons[1] and "SIGSEGV" in reasons[3]


def test_a_line_that_makes_its_worker_hang_is_quarantined(
    run: Path, tmp_path: Path, quick: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised_worker, "LEAST_LIMIT", 1.0)
    monkeypatch.setattr(supervised_worker, "LIMIT_FACTOR", 0.0)
    lines = ["a", "b", "c HANG", "d"]
    found = summary(capsys, run, write(tmp_path / "in.txt", lines), "-o", tmp_path / "out", "--workers", 1)
    assert found["code"] == 0 and found["quarantined"] == 1 and found["worker_restarts"] >= 4
    emptied = write(tmp_path / "emptied.txt", ["a", "b", "", "d"])
    assert read(tmp_path / "out" / "in.txt") == quick_outputs(emptied)
    (quarantined,) = map(json.loads, read(tmp_path / "out" / "in.txt.quarantine.jsonl"))
    assert quarantined["line"] == 3 and "no reply within 1 seconds" in quarantined["reason"]


def test_a_worker_has_time_in_proportion_to_the_replies_before() -> None:
    worker = supervised_worker.SupervisedWorker(
        Assignment(run="", engine="native", overrides=(), decoding=DecodingOptions())
    )
    assert worker.time_limit == supervised_worker.FIRST_LIMIT
    worker._slowest = 0.1
    assert worker.time_limit == supervised_worker.LEAST_LIMIT
    worker._slowest = 100.0
    assert worker.time_limit == 3000.0


def test_wrong_rows_of_json_and_tsv_are_quarantined(run: Path, tmp_path: Path, quick: None) -> None:
    good = [f'{{"source": "a {number}"}}' for number in range(9)]
    bad = ["{broken", "[1]", '{"other": 1}', '{"source": 5}', r'{"source": "\ud800"}']
    write(tmp_path / "in" / "a.jsonl", [*good, *bad])
    write(tmp_path / "in" / "b.tsv", ["id\tsource", "1\ta", "2\tb", "3"])
    assert bulk(run, tmp_path / "in", "-o", tmp_path / "out") == 0
    rows = [json.loads(line) for line in read(tmp_path / "out" / "a.jsonl")]
    assert len(rows) == 14 and [row["translation"] for row in rows[9:]] == [""] * 5
    assert rows[9:13] == [{"translation": ""}, {"translation": ""}, {"other": 1, "translation": ""}, rows[12]]
    quarantine = [json.loads(line) for line in read(tmp_path / "out" / "a.jsonl.quarantine.jsonl")]
    assert [fields["source"] for fields in quarantine] == bad
    assert len(read(tmp_path / "out" / "b.tsv")) == 4


def damaged_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in sentences(LINES)).encode())[:-3000])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "b.txt.gz": damaged_gzip,
    "b.txt": lambda path: path.write_bytes("a b\n".encode("utf-16")),
    "b.parquet": lambda path: path.write_bytes(b"not Parquet"),
    "b.jsonl": lambda path: path.write_text('{"text": "a"}\n' * 10),
    "b.tsv": lambda path: path.write_text("id\ttext\n1\ta\n"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_an_unreadable_file_is_reported_and_the_others_go_on(
    run: Path, tmp_path: Path, quick: None, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    corpus, out = tmp_path / "in", tmp_path / "out"
    first, last = write(corpus / "a.txt", sentences(10)), write(corpus / "z.txt", sentences(20))
    DAMAGES[name](corpus / name)
    found = summary(capsys, run, corpus, "-o", out)
    assert found["code"] == 1 and found["finished"] == 2 and [fail["input"] for fail in found["failed"]] == [name]
    assert not (out / name).exists()
    assert read(out / "a.txt") == quick_outputs(first) and read(out / "z.txt") == quick_outputs(last)
    (corpus / name).unlink()
    good = ["source", "a"] if name.endswith(".tsv") else ['{"source": "a"}'] if name.endswith(".jsonl") else ["a"]
    if name.endswith(".parquet"):
        parquet.write_table(pyarrow.table({"source": ["a"]}), corpus / name)
    else:
        write(corpus / name, good)
    found = summary(capsys, run, corpus, "-o", out)  # the same command, when the file is correct
    assert found["code"] == 0 and found["finished"] == 3 and found["lines"] == 1


def test_killed_workers_change_nothing(
    run: Path, tmp_path: Path, quick: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed after every fifth chunk that it begins, so that some blocks are tried several times."""
    source = write(tmp_path / "in.jsonl.gz", [json.dumps({"source": line}) for line in sentences(LINES)])
    assert bulk(run, source, "-o", tmp_path / "expected") == 0
    spawn = supervised_worker.SupervisedWorker._exchange
    calls = 0

    def exchange(worker: Any, line: str) -> Any:
        nonlocal calls
        calls += 1
        if calls % 5 == 0 and line.startswith("[") and worker._process is not None:
            os.kill(worker._process.pid, signal.SIGKILL)
        return spawn(worker, line)

    monkeypatch.setattr(supervised_worker.SupervisedWorker, "_exchange", exchange)
    found = summary(capsys, run, source, "-o", tmp_path / "out", "--workers", 2)
    assert found["worker_restarts"] >= 3 and found["quarantined"] == 0
    assert files(tmp_path / "out") == files(tmp_path / "expected")


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a process of `regard bulk` with workers without a model, which log what they begin."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: object, pause: float = 0.1) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.bulk_worker", "drive", *map(str, arguments)]
        environment = os.environ | {bulk_worker.LOG: str(tmp_path / "log"), bulk_worker.PAUSE: str(pause)}
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def wait_for(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def journal_lines(out: Path) -> int:
    """The number of blocks in all journals."""
    journals = (out / ".bulk" / "journals").glob("*.jsonl")
    return sum(max(path.read_bytes().count(b"\n") - 1, 0) for path in journals)


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_job_that_is_stopped_resumes_and_gives_the_same(
    run: Path, tmp_path: Path, quick: None, driver: Any, capsys: pytest.CaptureFixture[str], stop: signal.Signals
) -> None:
    """What was translated is not translated again; also within a file."""
    corpus = tmp_path / "in"
    write(corpus / "a.txt.gz", sentences(300))
    write(corpus / "b.txt.gz", sentences(8 * CHUNK * 4))
    process = driver(run, corpus, "-o", tmp_path / "out", "--workers", 2)
    wait_for(lambda: journal_lines(tmp_path / "out") >= 2)
    process.send_signal(stop)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == (-signal.SIGKILL if stop == signal.SIGKILL else 130)
    assert stop == signal.SIGKILL or "the same command resumes" in messages
    assert (tmp_path / "out" / "a.txt.gz").exists() and not (tmp_path / "out" / "b.txt.gz").exists()
    kept = journal_lines(tmp_path / "out")
    write(tmp_path / "out" / ".b.txt.gz.0123456789abcdef.aside", ["left by a job that was killed while it wrote"])
    found = summary(capsys, run, corpus, "-o", tmp_path / "out")
    assert found["code"] == 0 and found["finished"] == 2
    assert found["earlier_lines"] == 300 + kept * CHUNK * 4 and found["lines"] == (8 - kept) * CHUNK * 4
    assert bulk(run, corpus, "-o", tmp_path / "expected") == 0
    assert files(tmp_path / "out") == files(tmp_path / "expected")
    assert not list((tmp_path / "out" / ".bulk" / "journals").iterdir())
    found = summary(capsys, run, corpus, "-o", tmp_path / "out")
    assert found["code"] == 0 and found["lines"] == 0 and found["finished"] == 2


def test_workers_end_when_their_driver_is_killed(run: Path, tmp_path: Path, driver: Any) -> None:
    source = write(tmp_path / "in.txt", sentences(LINES))
    process = driver(run, source, "-o", tmp_path / "out", "--workers", 2)
    wait_for(lambda: (tmp_path / "log").exists() and len((tmp_path / "log").read_text().splitlines()) > 2)
    process.kill()
    process.communicate()
    workers = {int(line.split()[0]) for line in (tmp_path / "log").read_text().splitlines()}
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def interrupted(run: Path, directory: Path) -> tuple[Path, BulkJob]:
    """A file and a job over it that was stopped after three blocks of one chunk."""
    source = write(directory / "in.txt", sentences(LINES))
    assignment = Assignment(str(run), "native")

    class Stop(Exception):
        pass

    def stop(progress: Any) -> None:
        if progress.lines >= 3 * CHUNK:
            raise Stop

    shards = find_shards([str(source)], directory / "out")
    job = BulkJob(shards=shards, output=directory / "out", assignment=assignment, block_chunks=1)
    with pytest.raises(Stop):
        job.run(lambda: LocalRunner(assignment, 1), stop)
    return source, job


def test_an_input_that_has_changed_is_translated_from_the_start(run: Path, tmp_path: Path, quick: None) -> None:
    source, job = interrupted(run, tmp_path)
    write(source, sentences(LINES, seed=2))
    done = job.run(lambda: LocalRunner(job.assignment, 2))
    assert done.earlier == 0 and not done.failed
    assert read(tmp_path / "out" / "in.txt") == quick_outputs(source)


@pytest.mark.parametrize("share", [0.1, 0.8, 1.0])
def test_a_journal_cut_at_any_byte_keeps_the_blocks_before(
    run: Path, tmp_path: Path, quick: None, share: float
) -> None:
    """The last cut is before the last end of line, where the rest of the line is complete."""
    source, job = interrupted(run, tmp_path)
    (journal,) = (tmp_path / "out" / ".bulk" / "journals").iterdir()
    data = journal.read_bytes()
    cut = int(share * (len(data) - 1))
    journal.write_bytes(data[:cut])
    done = job.run(lambda: LocalRunner(job.assignment, 2))
    ends = [0, *(place + 1 for place, byte in enumerate(data) if byte == ord("\n"))]
    kept = sum(end <= cut for _, end in pairwise(ends)) - 1  # the first line is the head
    assert done.earlier == max(kept, 0) * CHUNK
    assert read(tmp_path / "out" / "in.txt") == quick_outputs(source)


# Directories of other jobs.


def refused(capsys: pytest.CaptureFixture[str], message: str, *arguments: object) -> None:
    assert bulk(*arguments) in (1, 2)
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_directory_of_another_run_or_other_options_or_inputs_is_refused(
    run: Path, tmp_path: Path, quick: None, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "in" / "a.txt", sentences(5))
    out = tmp_path / "out"
    assert bulk(run, tmp_path / "in", "-o", out) == 0
    before = files(out)
    refused(capsys, "beam was None, now 3", run, tmp_path / "in", "-o", out, "--beam", 3)
    refused(capsys, "into was None, now 'de'", run, tmp_path / "in", "-o", out, "--into", "de")
    other = Path(shutil.copytree(STORED.with_name("translation-unigram"), tmp_path / "other"))
    refused(capsys, "translations by another run", other, tmp_path / "in", "-o", out)
    moved = shutil.copytree(run, tmp_path / "moved")
    write(tmp_path / "in" / "b.txt", sentences(3))
    assert bulk(moved, tmp_path / "in", "-o", out) == 0  # the same run elsewhere, and one more file
    assert files(out).items() > before.items()
    write(source, sentences(6))
    refused(capsys, "is not the file that was translated", run, tmp_path / "in", "-o", out)
    write(tmp_path / "out2" / "a.txt", ["precious"])
    refused(capsys, "this job did not write it", run, tmp_path / "in", "-o", tmp_path / "out2")
    assert read(tmp_path / "out2" / "a.txt") == ["precious"]


def test_two_jobs_in_one_directory_are_refused_unless_they_divide_the_files(
    run: Path, tmp_path: Path, quick: None, driver: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, out = tmp_path / "in", tmp_path / "out"
    for number in range(5):
        write(corpus / f"{number}.txt", sentences(CHUNK * 5, seed=number))
    process = driver(run, corpus, "-o", out, "--shard", "1/2", pause=0.3)
    wait_for((tmp_path / "log").exists)
    refused(capsys, "Another job is writing", run, corpus, "-o", out, "--shard", "1/2")
    refused(capsys, "Another job is writing", run, corpus, "-o", out)
    assert bulk(run, corpus, "-o", out, "--shard", "2/2") == 0
    assert process.poll() is None and not (out / "4.txt").exists()
    assert process.wait(timeout=120) == 0
    assert bulk(run, corpus, "-o", tmp_path / "whole") == 0
    assert files(out) == files(tmp_path / "whole")


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0"])
def test_a_wrong_part_is_refused(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    refused(capsys, "--shard is I/N", run, write(tmp_path / "a.txt", ["a"]), "-o", tmp_path / "out", "--shard", text)


def test_mistakes_are_reported_before_anything_begins(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = write(tmp_path / "a.txt", ["a"]), tmp_path / "out"
    refused(capsys, "is not a run", tmp_path, source, "-o", out)
    refused(capsys, "--on is processes or ray", run, source, "-o", out, "--on", "moon")
    refused(capsys, "--engine must be one of", run, source, "-o", tmp_path / "1", "--engine", "steam")
    refused(capsys, "--samples is for --mbr", run, source, "-o", out, "--samples", "3")
    refused(capsys, "is a file", run, source, "-o", write(tmp_path / "file", ["x"]))
    refused(capsys, "--format is", run, source, "-o", out, "--format", "csv")
    classes = shutil.copytree(STORED.with_name("classes"), tmp_path / "classes")
    refused(capsys, "regard predict", classes, source, "-o", tmp_path / "2")


# Ray.


def test_events_survive_json() -> None:
    from regard.bulk.blocks import Block, Rejection, ShardEnd, TranslatedBlock, UnreadableShard

    for event in (
        Block(1, 2, [["a\n", "é"], ["\u2028"]], 3, 4, [Rejection(1, "why")]),
        TranslatedBlock(1, 2, ["x"], [Rejection(0, "why")], 3, 4, 5),
        ShardEnd(1, 2),
        UnreadableShard(1, "why"),
    ):
        assert from_json(to_json(event)) == event


@pytest.fixture(scope="module")
def ray_installed() -> None:
    pytest.importorskip("ray", reason="Ray is not installed")


def start_ray(run: Path, corpus: Path, out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "regard", "bulk", run, corpus, "-o", out, "--on", "ray", "--engine", "ctranslate2"]
    pipe = subprocess.PIPE
    words = [*map(str, command), "--workers", "2", "--json"]
    return subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True)


def test_ray_gives_the_same_as_processes(run: Path, tmp_path: Path, ray_installed: None) -> None:
    """Also if an actor is killed, and with a file that cannot be read; standard output has the summary alone."""
    corpus = tmp_path / "in"
    write(corpus / "a.jsonl", [json.dumps({"source": line}) for line in sentences(7 * CHUNK)])
    write(corpus / "b.txt.gz", sentences(100, seed=2))
    (corpus / "c.parquet").write_bytes(b"not Parquet")
    process = start_ray(run, corpus, tmp_path / "ray")
    kill_one(process, "ray::MapWorker")
    printed, messages = process.communicate(timeout=300)
    assert process.returncode == 1, messages
    found = json.loads(printed)
    assert found["finished"] == 2 and [fail["input"] for fail in found["failed"]] == ["c.parquet"]
    assert bulk(run, corpus, "-o", tmp_path / "processes", "--engine", "ctranslate2") == 1
    assert files(tmp_path / "ray") == files(tmp_path / "processes")


def descendants(pid: int) -> dict[int, str]:
    """The command lines of all processes below a process."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            command = status.with_name("cmdline").read_bytes().replace(b"\0", b" ").decode()
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        commands[int(status.parent.name)], parents[int(status.parent.name)] = command, parent
    found: dict[int, str] = {}
    level = {pid}
    while level:
        level = {child for child, parent in parents.items() if parent in level}
        found |= {child: commands[child] for child in level}
    return found


def kill_one(process: subprocess.Popen[str], mark: str) -> None:
    """Wait until a process below another has a mark in its command line, and kill it."""
    victims: list[int] = []
    while not victims:
        assert process.poll() is None
        victims = [pid for pid, command in descendants(process.pid).items() if mark in command]
    os.kill(victims[0], signal.SIGKILL)


@pytest.mark.long
def test_killed_actors_and_a_killed_driver_change_nothing(run: Path, tmp_path: Path, ray_installed: None) -> None:
    corpus = tmp_path / "in"
    write(corpus / "a.txt", sentences(40 * CHUNK))
    process = start_ray(run, corpus, tmp_path / "ray")
    wait_for(lambda: journal_lines(tmp_path / "ray") >= 1, 300)
    kill_one(process, "ray::MapWorker")
    kill_one(process, "translation_worker")
    wait_for(lambda: journal_lines(tmp_path / "ray") >= 4, 300)
    process.kill()
    process.communicate()
    printed, messages = start_ray(run, corpus, tmp_path / "ray").communicate(timeout=600)
    assert json.loads(printed)["earlier_lines"] >= 4 * 4 * CHUNK, messages
    assert bulk(run, corpus, "-o", tmp_path / "processes", "--engine", "ctranslate2") == 0
    assert files(tmp_path / "ray") == files(tmp_path / "processes")


def test_without_ray_the_command_says_how_to_install_it(
    run: Path, tmp_path: Path, quick: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    source = write(tmp_path / "a.txt", ["a"])
    refused(capsys, "--on ray needs Ray. Install it", run, source, "-o", tmp_path / "out", "--on", "ray")


def test_progress_is_one_line_with_pace_and_time_left() -> None:
    from regard.bulk.job import Progress
    from regard.cli.bulk import describe

    progress = Progress(files=3, finished=1, lines=2000, tokens=30_000, seconds=10, bytes=100, bytes_left=7290)
    progress.quarantined, progress.failed = 2, {"a": "why"}
    expected = "2,000 lines · 200 lines/s · 3,000 tokens/s · 1 of 3 files · 2 quarantined · 1 failed · 0:12:09 left"
    assert describe(progress) == expected


def test_nothing_is_shown_while_it_is_piped(run: Path, tmp_path: Path, quick: None, capsys: Any) -> None:
    source = write(tmp_path / "a.txt", sentences(5))
    assert bulk(run, source, "-o", tmp_path / "out", "--quiet") == 0
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""
