"""Reading corpora: every sort of file gives the same pairs, and what is wrong is told by name and line."""

import gzip
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config.text_corpora import JsonLines, PairedFiles, TsvFiles
from regard.data.alignment import first_misaligned
from regard.data.corpus import Pair, even_sample, read
from regard.data.lines import LONGEST_LINE, read_lines
from regard.foundation.errors import RegardError

MULTI30K = Path("/work/shared/data/multi30k")
needs_multi30k = pytest.mark.skipif(not MULTI30K.exists(), reason=f"needs Multi30k in {MULTI30K}")

LINE = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\ufeff"))


def write(path: Path, content: str | bytes, packed: bool = False) -> str:
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(gzip.compress(data) if packed else data)
    return str(path)


def paired(directory: Path, source: str | bytes, target: str | bytes) -> PairedFiles:
    return PairedFiles(source=[write(directory / "a.src", source)], target=[write(directory / "a.tgt", target)])


@given(lines=st.lists(LINE, max_size=8), end=st.sampled_from(["\n", "\r\n"]), packed=st.booleans(), mark=st.booleans())
@settings(deadline=None, max_examples=100)
def test_lines_come_back_whatever_the_packing(
    lines: list[str], end: str, packed: bool, mark: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "lines"
    write(path, "\ufeff" * mark + "".join(line + end for line in lines), packed)
    assert list(read_lines(path)) == (lines or ([""] if mark else []))


def test_only_newlines_break_lines(tmp_path: Path) -> None:
    text = "a\u2028b\x85c\x0bd\x0ce\rf"
    assert list(read_lines(write(tmp_path / "x", text + "\nlast, without end"))) == [text, "last, without end"]


def test_every_sort_of_file_gives_the_same_pairs(tmp_path: Path) -> None:
    pairs = [Pair("one", "eins"), Pair("two words", "zwei Wörter"), Pair('"quoted"\\', "„so“")]
    lines = ["".join(f"{pair[side]}\n" for pair in pairs) for side in (0, 1)]
    tsv = "".join(f"id\t{pair.target}\t{pair.source}\n" for pair in pairs)
    records = "".join(json.dumps({"de": pair.target, "en": pair.source, "n": 1}) + "\n" for pair in pairs)
    assert list(read(paired(tmp_path, *lines))) == pairs
    for packed in (False, True):
        path = write(tmp_path / "x.tsv", tsv, packed)
        assert list(read(TsvFiles(tsv=[path], source_column=3, target_column=2))) == pairs
        path = write(tmp_path / "x.jsonl", records, packed)
        assert list(read(JsonLines(jsonl=[path, path], source_field="en", target_field="de"))) == pairs * 2


BROKEN: dict[str, tuple[Any, str]] = {
    "missing": (lambda d: TsvFiles(tsv=[str(d / "nowhere")]), "nowhere does not exist"),
    "directory": (lambda d: TsvFiles(tsv=[str(d)]), "is a directory"),
    "invalid UTF-8": (lambda d: paired(d, b"good\nb\xe4d\n", "a\nb\n"), r"a\.src:2 is not valid UTF-8"),
    "UTF-16": (lambda d: paired(d, "hello\n".encode("utf-16"), "a\n"), r"a\.src:1 .*UTF-16"),
    "cut gzip": (
        lambda d: TsvFiles(tsv=[write(d / "x", gzip.compress(os.urandom(9000).hex().encode())[:-20])]),
        "cut short",
    ),
    "broken gzip": (lambda d: TsvFiles(tsv=[write(d / "x", b"\x1f\x8bnonsense")]), "damaged"),
    "few columns": (lambda d: TsvFiles(tsv=[write(d / "x", "a\tb\nalone\n")]), r"x:2 has 1 tab"),
    "bad JSON": (
        lambda d: JsonLines(jsonl=[write(d / "x", '{"source": "a", "target": "b"}\n{"so')]),
        "x:2 is not valid",
    ),
    "deep JSON": (lambda d: JsonLines(jsonl=[write(d / "x", "[" * 100_000)]), "x:1 is not valid"),
    "no object": (
        lambda d: JsonLines(jsonl=[write(d / "x", "[1]\n")]),
        "x:1 is a list, but every line must be a JSON object",
    ),
    "missing field": (lambda d: JsonLines(jsonl=[write(d / "x", '{"source": "a", "b": 1}\n')]), "no field `target`"),
    "no string": (lambda d: JsonLines(jsonl=[write(d / "x", '{"source": 7, "target": "a"}\n')]), "is a number"),
    "no label": (lambda d: JsonLines(jsonl=[write(d / "x", '{"source": "a", "target": null}\n')]), "x:1: .* is null"),
    "empty": (lambda d: TsvFiles(tsv=[write(d / "x", "\n\n")]), "corpus is empty"),
    "empty pair": (lambda d: paired(d, "", ""), "corpus is empty"),
    "line counts": (lambda d: paired(d, "a\nb\nc\n", "a\nb\n"), r"has 3 lines, but .* has 2"),
}


@pytest.mark.parametrize(("corpus", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_corpus_says_what_is_wrong(corpus: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=message):
        list(read(corpus(tmp_path)))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "x", "a\tb\n")
    Path(path).chmod(0)
    with pytest.raises(RegardError, match="cannot read"):
        list(read(TsvFiles(tsv=[path])))


def test_a_line_of_many_megabytes_takes_bounded_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "x", b"\xc3\xa9" * (20 * LONGEST_LINE) + b"\nnext\n", packed=True)
    tracemalloc.start()
    lengths = [len(line) for line in read_lines(path)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lengths == [LONGEST_LINE // 2, 4]
    assert peak < 12 * LONGEST_LINE


@needs_multi30k
@pytest.mark.parametrize("lost", [1, 20, 100, 500, 900, 1000])
def test_the_first_misaligned_line_is_near_the_lost_one(lost: int) -> None:
    source, target = (list(read_lines(MULTI30K / f"val.{language}")) for language in ("en", "de"))
    shorter = target[: lost - 1] + target[lost:]
    longer = [*target[: lost - 1], "Eine Zeile zu viel.", *target[lost - 1 :]]
    assert abs(first_misaligned(source, shorter) - lost) <= 10
    assert abs(first_misaligned(source, longer) - lost) <= 10


@given(st.lists(st.integers(0, 30), min_size=1, max_size=200), st.integers(1, 100))
def test_a_sample_is_spread_over_all_examples(sources: list[int], most: int) -> None:
    """It begins with the first, keeps the references of a source together, and is as dense everywhere."""
    pairs = [Pair(str(source), str(number)) for number, source in enumerate(sorted(sources))]
    sample = even_sample(pairs, most)
    assert sample == even_sample(pairs, most) and sample[0] == pairs[0]
    chosen = {pair.source for pair in sample}
    assert list(sample) == [pair for pair in pairs if pair.source in chosen]
    distinct = [Pair(str(number), "") for number in range(len(sources))]
    places = [int(pair.source) for pair in even_sample(distinct, most)]
    assert len(places) == min(most, len(distinct))
    gaps = {after - before for before, after in zip(places, [*places[1:], len(distinct)], strict=True)}
    assert max(gaps) - min(gaps) <= 1
