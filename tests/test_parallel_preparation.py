"""Preparing on several cores: the same files as with one, the same errors, and memory that does not grow."""

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import regard.data.lines as lines
import regard.data.survey as survey_module
import regard.tasks.preparation as preparing
import regard.tasks.training_corpus as training_corpus
from regard.config.data import Cleaning
from regard.config.loading import from_mapping
from regard.config.text_corpora import PairedFiles
from regard.data.cleaning import Fate
from regard.data.line_corpora import line_chunks
from regard.data.lines import paired_blocks, read_blocks, read_lines
from regard.data.pair import Pair
from regard.data.survey import Survey, SurveyRules, survey_chunk
from regard.foundation.errors import RegardError
from regard.tasks.chunk_workers import ChunkWorkers
from regard.tasks.preparation import prepare
from regard.text import learning


class SharedWorkers(ChunkWorkers):
    """Workers for several preparations: starting a process takes seconds."""

    def __exit__(self, *_: object) -> None:
        return

    def stop(self) -> None:
        super().__exit__()


@pytest.fixture(scope="module")
def pools() -> Iterator[dict[int, SharedWorkers]]:
    found = {count: SharedWorkers(count) for count in (1, 2, 3)}
    yield found
    for pool in found.values():
        pool.stop()


def sentence(number: int, side: str) -> str:
    return " ".join(f"{side}{number * step % 97}" for step in range(2, 3 + number % 9))


def tsv(place: Path) -> dict[str, Any]:
    rows = [f"{sentence(n, 's')}\t{sentence(n, 't')}" for n in range(400)]
    rows += [rows[7], "", "one side\t", "x" * 300 + "\ty", f"{'long ' * 40}\t{'lang ' * 40}"]
    (place / "x.tsv").write_text("\n".join(rows * 2) + "\n")
    return {"train": {"tsv": str(place / "x.tsv")}, "held_out": 20, "held_out_test": 10, "cleaning": {"max_length": 30}}


def paired(place: Path) -> dict[str, Any]:
    for side in "st":
        text = "".join(f"{sentence(n, side)}\r\n" for n in range(500))
        (place / f"x.{side}.gz").write_bytes(gzip.compress(("\ufeff" + text).encode()))
    return {"train": {"source": str(place / "x.s.gz"), "target": str(place / "x.t.gz")}}


def json_lines(place: Path) -> dict[str, Any]:
    rows = [
        {"source": f"{sentence(n, 's')} \ud800", "target": [sentence(n, "t"), sentence(n + 1, "ü")]} for n in range(300)
    ]
    (place / "x.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    return {"train": {"jsonl": str(place / "x.jsonl")}}


def table(place: Path) -> dict[str, Any]:
    rows = [f'"{sentence(n, "s")}, ""quoted""","{sentence(n, "t")}"' for n in range(300)]
    (place / "x.csv").write_text("\n".join(["en,de", *rows]))
    return {"train": {"table": str(place / "x.csv"), "source": "en", "target": "de"}}


def labelled(place: Path) -> dict[str, Any]:
    rows = [f"{('good', 'bad', 'odd')[n % 3]} {sentence(n, 's')}" for n in range(300)]
    (place / "x.txt").write_text("\n".join(rows))
    return {"train": {"labelled": str(place / "x.txt")}}


def tagged(place: Path) -> dict[str, Any]:
    rows = ["".join(f"{word}\tT{len(word)}\n" for word in sentence(n, "s").split()) for n in range(300)]
    (place / "x.txt").write_text("\n".join(rows))
    return {"train": {"columns": str(place / "x.txt")}}


def text(place: Path) -> dict[str, Any]:
    (place / "x.txt").write_text("\n".join(f"{sentence(n, 's')} {sentence(n * 3, 'u')}" for n in range(300)))
    return {"train": {"text": str(place / "x.txt")}, "cleaning": {"max_length": 6}}


def summaries(place: Path) -> dict[str, Any]:
    rows = [{"source": sentence(n, "s") * (1 + n % 7), "target": sentence(n, "t")} for n in range(300)]
    (place / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return {"train": {"jsonl": str(place / "x.jsonl")}, "cleaning": {"max_length": 12, "max_ratio": 50}}


Made = Callable[[Path], dict[str, Any]]
CASES: dict[str, tuple[Made, dict[str, Any]]] = {
    "columns, duplicates, too long, held out": (tsv, {}),
    "paired gzip files, separate vocabularies": (paired, {"text": {"joint": False}}),
    "JSON lines with several references": (json_lines, {}),
    "a table": (table, {}),
    "every third pair": (tsv, {"data": {"every": 3}}),
    "joined pairs": (tsv, {"data": {"joined": 0.7}}),
    "a sample for the tokenizer": (tsv, {"most_lines": 90}),
    "unigram": (tsv, {"text": {"tokenizer": {"kind": "unigram"}}}),
    "classes": (labelled, {"task": {"kind": "classification"}}),
    "tags": (tagged, {"task": {"kind": "tagging"}}),
    "a language model": (text, {"task": {"kind": "language-model"}}),
    "summaries": (summaries, {"task": {"kind": "summarising"}}),
}


def files_of(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("case", CASES)
def test_any_number_of_workers_writes_the_same_files(
    case: str, pools: dict[int, SharedWorkers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokenizers, stores, held-out pairs and report; blocks of 1,000 bytes give every worker several."""
    make, changes = CASES[case]
    data = make(tmp_path) | changes.get("data", {})
    sections = {name: section for name, section in changes.items() if name in ("text", "task")}
    config = from_mapping({**sections, "data": data, "model": {"width": 16}})
    monkeypatch.setattr(learning, "MOST_LINES", changes.get("most_lines", learning.MOST_LINES))
    whole = files_of_preparation(config, tmp_path / "whole")
    monkeypatch.setattr(lines, "BLOCK", 1000)
    monkeypatch.setattr(training_corpus, "CHUNK", 37)
    for count, pool in pools.items():
        monkeypatch.setattr(preparing, "workers_for", lambda *_, pool=pool: pool)
        assert files_of_preparation(config, tmp_path / f"run{count}") == whole, count
    assert {"data/train/source.tokens", "data/validation.jsonl", "data/finished.json"} <= set(whole)


def files_of_preparation(config: Any, directory: Path) -> dict[str, str]:
    prepare(config, directory)
    return files_of(directory)


BROKEN: dict[str, str] = {
    "columns": "\tonly two\tnow three\n",
    "encoding": "caf\udce9\tx\n",
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_the_first_error_of_a_corpus_is_reported_whatever_the_number_of_workers(
    broken: str, pools: dict[int, SharedWorkers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = "".join(f"{sentence(n, 's')}\t{sentence(n, 't')}\n" for n in range(300))
    path = tmp_path / "x.tsv"
    path.write_bytes(f"{good}{broken}{good}{BROKEN['columns']}{good}".encode("utf-8", "surrogateescape"))
    config = from_mapping({"data": {"train": {"tsv": str(path)}}})
    monkeypatch.setattr(lines, "BLOCK", 1000)
    for count, pool in pools.items():
        monkeypatch.setattr(preparing, "workers_for", lambda *_, pool=pool: pool)
        with pytest.raises(RegardError, match=r"x\.tsv:301 "):
            prepare(config, tmp_path / f"run{count}")


def test_an_error_before_the_end_of_a_file_comes_before_that_of_its_length(
    pools: dict[int, SharedWorkers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading goes ahead of the workers, and finds first that the files are not aligned."""
    (tmp_path / "a").write_bytes(b"one\n" * 300 + b"caf\xe9\n")
    (tmp_path / "b").write_bytes(b"two\n" * 400)
    config = from_mapping({"data": {"train": {"source": str(tmp_path / "a"), "target": str(tmp_path / "b")}}})
    monkeypatch.setattr(preparing, "workers_for", lambda *_: pools[2])
    with pytest.raises(RegardError, match=r"a:301 is not valid UTF-8"):
        prepare(config, tmp_path / "run")
    (tmp_path / "a").write_bytes(b"one\n" * 300)
    with pytest.raises(RegardError, match=r"300 lines, but .* 400, so they are not aligned"):
        prepare(config, tmp_path / "run")


@given(
    content=st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\r", b"\xc3\xa9", b"bc\n", b"\t"]), max_size=60),
    size=st.integers(1, 12),
    packed=st.booleans(),
)
@settings(deadline=None, max_examples=150)
def test_blocks_have_the_lines_of_the_file(
    content: list[bytes], size: int, packed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "x"
    data = b"".join(content)
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", size)
        blocks = list(read_blocks(path))
    expected = list(read_lines(path))
    assert [line for block in blocks for line in block.lines()] == expected
    assert [(block.first, block.count) for block in blocks] == [
        (1 + sum(earlier.count for earlier in blocks[:index]), len(list(block.lines())))
        for index, block in enumerate(blocks)
    ]


def test_lines_that_are_too_long_are_cut_alike_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 20)
    monkeypatch.setattr(lines, "BLOCK", 7)
    (tmp_path / "x").write_bytes(b"short\n" + b"a" * 50 + b"\nnext\n" + "é".encode() * 30 + b"\nlast")
    assert [line for block in read_blocks(tmp_path / "x") for line in block.lines()] == list(read_lines(tmp_path / "x"))


def test_a_cut_gzip_file_is_reported_after_its_last_line(tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(f"{n} {os.urandom(8).hex()}\n".encode() for n in range(20_000)))
    (tmp_path / "x.gz").write_bytes(packed[: len(packed) // 2])
    told = []
    for reading in (read_lines, read_blocks):
        with pytest.raises(RegardError, match="damaged or cut short after line") as error:
            list(reading(tmp_path / "x.gz"))
        told.append(str(error.value))
    assert told[0] == told[1]


@given(left=st.integers(0, 40), right=st.integers(0, 40), sizes=st.tuples(st.integers(1, 9), st.integers(1, 9)))
@settings(deadline=None, max_examples=60)
def test_paired_blocks_have_as_many_lines(
    left: int, right: int, sizes: tuple[int, int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("paired")
    (place / "a").write_text("".join(f"{'x' * (n % sizes[0])}\n" for n in range(left)))
    (place / "b").write_text("".join(f"{'y' * (n % sizes[1])}\n" for n in range(right)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", 10)
        pairs = list(paired_blocks(str(place / "a"), str(place / "b")))
        assert all(a.count == b.count for a, b in pairs if a and b)
        assert sum(a.count for a, _ in pairs if a) == left and sum(b.count for _, b in pairs if b) == right
        if left == right > 0:
            corpus = PairedFiles(source=[str(place / "a")], target=[str(place / "b")])
            found = [numbered for chunk in line_chunks(corpus) for numbered in chunk.numbered()]
            assert [number for number, _ in found] == list(range(1, left + 1))
            assert found[-1][1] == Pair("x" * ((left - 1) % sizes[0]), "y" * ((left - 1) % sizes[1]))


def test_duplicates_are_found_in_parts_as_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [Pair(f"a{n * n % 101}", f"b{n % 3}") for n in range(3000)]
    fates = []
    for at_once in (survey_module.SORTED_AT_ONCE, 100):
        monkeypatch.setattr(survey_module, "SORTED_AT_ONCE", at_once)
        for directory in (None, tmp_path):
            survey = Survey(Cleaning(), directory)
            for start in range(0, len(pairs), 700):
                survey.add(survey_chunk(pairs[start : start + 700], SurveyRules(Cleaning())))
            fates.append(survey.finish(held_out=0)[0].tolist())
    seen: set[Pair] = set()
    expected = [Fate.DUPLICATE if pair in seen or seen.add(pair) else Fate.TRAIN for pair in pairs]  # type: ignore[func-returns-value]
    assert all(found == expected for found in fates)
    assert not list(tmp_path.iterdir())


GROWTH = """
import resource, sys
from pathlib import Path
from regard.config.loading import from_mapping
from regard.data import survey
from regard.tasks.preparation import prepare
from regard.text import learning
survey.SORTED_AT_ONCE = survey._PART = 1 << 15
place, count = Path(sys.argv[1]), int(sys.argv[2])
with (place / f"{count}.tsv").open("w") as file:
    for n in range(count):
        file.write(f"a{n % 997} b{n // 997} and more words\\tc{n % 997} d{n // 997} und mehr davon\\n")
config = from_mapping({"data": {"train": {"tsv": str(place / f"{count}.tsv")}}})
prepare(config, place / f"run{count}", workers=1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def test_memory_grows_by_a_few_bytes_per_pair(tmp_path: Path) -> None:
    """The fate of a pair takes one byte, and comparing fates a few more; texts, ids and hashes take none.

    Both corpora have more pairs than are held or sorted at once, and the same words but for a few hundred. The
    allocator needs some room. A set of hashes would take 60 bytes per pair, and the texts 150.
    """
    peaks = []
    for count in (100_000, 400_000):
        done = subprocess.run(
            [sys.executable, "-c", GROWTH, str(tmp_path), str(count)], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout))
    assert (peaks[1] - peaks[0]) / 300_000 < 30


def test_a_killed_worker_is_reported(tmp_path: Path) -> None:
    with ChunkWorkers(2) as workers:
        assert list(workers.map(len, ["a", "bc"])) == [1, 2]
        for process in workers._processes:
            os.kill(process._process.pid, signal.SIGKILL)
        with pytest.raises(RegardError, match=r"ended unexpectedly \(SIGKILL\)"):
            list(workers.map(len, ["a", "bc"]))


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    program = (
        "import os\nfrom regard.tasks.chunk_workers import ChunkWorkers\nworkers = ChunkWorkers(2)\n"
        "list(workers.map(len, ['a', 'b']))\nprint(*[w._process.pid for w in workers._processes], flush=True)\n"
        "os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=100)
    for pid in map(int, done.stdout.split()):
        for _ in range(100):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                break
            if f"{pid} (" in Path(f"/proc/{pid}/stat").read_text() and ") Z " in Path(f"/proc/{pid}/stat").read_text():
                break
            time.sleep(0.1)
        else:
            pytest.fail(f"worker {pid} is still running")
