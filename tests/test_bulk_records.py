"""Bulk processing of records: the outputs of `regard translate`, with the records kept."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.bulk.json_sources import RecordSources, TextSources
from regard.bulk.layouts import JsonLayout, Row
from regard.cli import main
from regard.config.loading import from_mapping
from regard.foundation.errors import RegardError
from regard.text.records import RecordForm
from regard.training.loop import train
from tests.test_records import examples, settings, written


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that writes values by placeholders, so that an output needs its record to be finished."""
    directory = tmp_path_factory.mktemp("records")
    config = settings(
        directory, task={"kind": "data-to-text", "delexicalise": True}, training={"steps": 30, "validate_every": 30}
    )
    train(from_mapping(config), directory / "run")
    return directory / "run"


RECORDS: list[Any] = [
    {"name": "Zoë", "homeTown": "Oslo", "age": 33},
    {"name": "Bob", "homeTown": "São Paulo"},
    {"record": {"name": "Cleo", "age": 21}, "texts": ["a reference, which is not part of the record"]},
    [["Ann", "home_town", "Rome"], ["Ann", "age", 20]],
]
"""Objects, a line of the corpus, and triples."""


def translated(run: Path, source: Path, out: Path, *options: str) -> list[str]:
    assert main(["translate", str(run), str(source), "-o", str(out), *options]) == 0
    return out.read_text(encoding="utf-8").split("\n")[:-1]


def read_json(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_records_are_described_as_translate_describes_them(run: Path, tmp_path: Path) -> None:
    lines = [json.dumps(record, ensure_ascii=bool(number % 2)) for number, record in enumerate(RECORDS)]
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join([*lines, "", *lines]) + "\n", encoding="utf-8")
    wanted = translated(run, source, tmp_path / "wanted.txt", "--beam", "2")
    assert "Zoë" in wanted[0] and wanted[4] == "" and wanted[0] != wanted[1]
    assert main(["bulk", str(run), str(source), "-o", str(tmp_path / "out"), "--workers", "1", "--beam", "2"]) == 0
    found = (tmp_path / "out" / "in.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    assert [json.loads(line)["translation"] if line else "" for line in found] == wanted
    assert found[0].startswith(lines[0][:-1] + ', "translation": ') and found[4] == ""
    assert json.loads(found[3])["source"] == RECORDS[3]
    assert not (tmp_path / "out" / "in.jsonl.quarantine.jsonl").exists()


def test_records_may_be_in_a_field_as_objects_or_as_json_text(run: Path, tmp_path: Path) -> None:
    record = {"name": "Zoë", "homeTown": "Oslo"}
    source = tmp_path / "in.jsonl"
    source.write_text(
        json.dumps({"id": 1, "data": record}) + "\n" + json.dumps({"id": 2, "data": json.dumps(record)}) + "\n"
    )
    (tmp_path / "alone.jsonl").write_text(json.dumps(record) + "\n")
    wanted = translated(run, tmp_path / "alone.jsonl", tmp_path / "wanted.txt")
    options = ["--workers", "1", "--field", "data", "--into", "text"]
    assert main(["bulk", str(run), str(source), "-o", str(tmp_path / "out"), *options]) == 0
    assert [line["text"] for line in read_json(tmp_path / "out" / "in.jsonl")] == wanted * 2


def test_lines_that_are_no_records_are_put_in_quarantine_with_the_reason(run: Path, tmp_path: Path) -> None:
    good = [json.dumps(example["record"]) for example in examples(8)]
    bad = ['{"a": {"b": 1}}', '{"a": 1, "a": 2}', "{}", "[[1, 2]]", "12", '{"a": ']
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join([*good, *bad]) + "\n")
    assert main(["bulk", str(run), str(source), "-o", str(tmp_path / "out"), "--workers", "1"]) == 0
    found = read_json(tmp_path / "out" / "in.jsonl")
    assert len(found) == 14 and all(line["translation"] for line in found[:8])
    assert not any(line["translation"] for line in found[8:]) and set(found[11]) == {"translation"}
    reasons = [line["reason"] for line in read_json(tmp_path / "out" / "in.jsonl.quarantine.jsonl")]
    for reason, word in zip(
        reasons, ["nested field", "`a` twice", "no field", "not a triple", "neither", "not valid JSON"], strict=True
    ):
        assert reason.startswith("It ") and word in reason


def test_a_file_without_records_fails(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = Path(written(tmp_path / "in.jsonl", [{"a": {"b": number}} for number in range(9)]))
    assert main(["bulk", str(run), str(source), "-o", str(tmp_path / "out"), "--workers", "1"]) == 1
    assert "nested field" in capsys.readouterr().err


def test_the_line_of_a_record_is_kept_whatever_its_fields_are() -> None:
    """A record that has the field of the translation keeps the others; that field is replaced."""
    layout = JsonLayout(sources=RecordSources(RecordForm()))
    for line, wanted in (
        ('{"a": 1 }', '{"a": 1, "translation": "T"}'),
        ('{"translation": "x", "a": 1}', '{"translation": "T", "a": 1}'),
        ('[["a", "b", "c"]]', '{"source": [["a", "b", "c"]], "translation": "T"}'),
    ):
        row = layout.parse(line, 0)
        assert row.source == line and layout.format(row, "T") == wanted
    into = JsonLayout(into="source", sources=RecordSources(RecordForm()))
    assert into.format(into.parse('[["a", "b", "c"]]', 0), "T") == '{"source": "T"}'
    assert JsonLayout().parse('{"a": 1}', 0) == Row(
        "", "It has no field `source` (its fields: a). Name one with --field.", ('{"a": 1}', {"a": 1}), 0
    )
    with pytest.raises(RegardError, match="The field `source` is not a text"):
        TextSources().source_of("", {"source": {"a": 1}}, None)
