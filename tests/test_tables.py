"""Tables with named columns: CSV, TSV, XLSX and Parquet; headers are never trained on silently."""

import builtins
import gzip
import json
from itertools import islice
from pathlib import Path

import pytest

from regard.cli import main
from regard.config.loading import from_mapping
from regard.data.corpus import Pair, read
from regard.data.tables import _read_separated
from regard.foundation.errors import RegardError

ROWS = [("raw", "clean", "note"), ("ab-1", "AB1", ""), ("cd, 2", "CD2", 'says "x"'), ("ef\n3", "EF3", "z")]
PAIRS = [Pair("ab-1", "AB1"), Pair("cd, 2", "CD2"), Pair("ef 3", "EF3")]


def write(path: Path) -> Path:
    """The rows as a table of the sort that the name of the file says."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".xlsx"):
        openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl")
        book = openpyxl.Workbook()
        for row in ROWS:
            book.active.append(row)
        book.save(path)
    elif name.endswith(".parquet"):
        arrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
        import pyarrow.parquet

        columns = dict(zip(ROWS[0], map(list, zip(*ROWS[1:], strict=True)), strict=True))
        pyarrow.parquet.write_table(arrow.table(columns), path)
    else:
        separator = "\t" if ".tsv" in name else ";" if "german" in name else ","
        quoted = [separator.join('"' + cell.replace('"', '""') + '"' for cell in row) for row in ROWS]
        content = "\ufeff" * ("excel" in name) + "\r\n".join(quoted) + "\r\n"
        path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


def pairs(path: Path, **settings: object) -> list[Pair]:
    """The pairs of a table, by way of a configuration."""
    config = from_mapping({"data": {"train": {"table": str(path), **settings}}})
    return list(read(config.data.train))


NAMED = {"source": "raw", "target": "clean"}


@pytest.mark.parametrize(
    "name", ["a.csv", "german.csv", "excel.csv", "a.csv.gz", "a.tsv", "a.tsv.gz", "a.xlsx", "a.parquet"]
)
def test_columns_are_found_by_name(name: str, tmp_path: Path) -> None:
    assert pairs(write(tmp_path / name), **NAMED) == PAIRS
    other = pairs(write(tmp_path / name), source="clean", second="note", target="raw")
    assert other[1] == Pair('CD2\tsays "x"', "cd, 2")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_separator_is_the_commonest_outside_of_quotes(separator: str, tmp_path: Path) -> None:
    name = "raw" + "".join(other * 3 for other in ",;\t" if other != separator)
    (tmp_path / "a.csv").write_text(f'"{name}"{separator}clean\n"x"{separator}y\n', encoding="utf-8")
    shown = name.replace("\t", " ")  # a cell is one line without tabs
    assert pairs(tmp_path / "a.csv", source=shown, target="clean") == [Pair("x", "y")]


def test_numbers_and_dates_of_spreadsheets_become_text(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="needs openpyxl")
    import datetime

    book = openpyxl.Workbook()
    for row in [("source", "target"), (5, 2.5), (datetime.date(2018, 5, 9), True), (None, None), ("x", None)]:
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert pairs(tmp_path / "a.xlsx") == [("5", "2.5"), ("2018-05-09", "true"), ("x", "")]


def test_a_name_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"no column called `source`: its first row is `raw, clean, note`"):
        pairs(write(tmp_path / "a.csv"))
    (tmp_path / "twice.csv").write_text("a,a,b\n1,2,3\n")
    with pytest.raises(RegardError, match="more than one column called `a`"):
        pairs(tmp_path / "twice.csv", source="a", target="b")


def test_columns_by_number_need_a_word_about_the_header(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv")
    with pytest.raises(RegardError, match="header: true if that row names the columns, or header: false"):
        pairs(file, source=1, target=2)
    assert pairs(file, source=1, target=2, header=True) == PAIRS
    assert pairs(file, source=1, target=2, header=False) == [Pair("raw", "clean"), *PAIRS]
    with pytest.raises(RegardError, match="names none of them"):
        pairs(file, source="raw", target=2, header=False)
    with pytest.raises(RegardError, match="has 3 columns, so there is no column 4"):
        pairs(file, source=1, target=4)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("raw,clean\na,b,c\n", r"a\.csv:2 has 3 columns, but the first row has 2"),
        ("raw,clean\na,b\nc\n", r"a\.csv:3 has 1 columns"),
        ('raw,clean\na,b\n"c,d\n', r"a\.csv:3 is not a row"),
        ('raw,clean\n"a"b,c\n', r"a\.csv:2 is not a row"),
        ("", "is empty"),
        ("raw,clean\n", "is empty"),
        ("\n\n", "is empty"),
    ],
)
def test_damaged_tables_are_refused_with_the_line(content: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(RegardError, match=complaint):
        pairs(tmp_path / "a.csv", **NAMED)


@pytest.mark.parametrize("name", ["a.xlsx", "a.parquet", "a.csv", "a.dat"])
def test_what_is_no_such_table_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match=r"does not exist|is not a known table format"):
        pairs(tmp_path / name, **NAMED)
    (tmp_path / name).write_bytes(b"PK\x03\x04 not really \xff\xfe")
    with pytest.raises(RegardError, match=r"cannot be read|not a known table format|UTF-8"):
        pairs(tmp_path / name, **NAMED)


@pytest.mark.parametrize(("name", "package"), [("a.xlsx", "openpyxl"), ("a.parquet", "pyarrow")])
def test_a_missing_package_is_named(name: str, package: str, tmp_path: Path, monkeypatch) -> None:
    write(tmp_path / name)
    whole = builtins.__import__

    def without(module: str, *rest: object, **more: object) -> object:
        if module.split(".", maxsplit=1)[0] == package:
            raise ImportError(module)
        return whole(module, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RegardError, match=f"pip install {package}"):
        pairs(tmp_path / name, **NAMED)


def test_a_tab_separated_file_without_quoting_keeps_its_quotes(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('raw\tclean\n5" pipe\t"x\n')
    assert pairs(tmp_path / "a.tsv", **NAMED) == [Pair('5" pipe', '"x')]


# Headers of plain TSV files


def tsv(path: Path, **settings: object) -> list[Pair]:
    return list(read(from_mapping({"data": {"train": {"tsv": str(path), **settings}}}).data.train))


def test_a_header_of_a_tsv_file_is_never_trained_on_silently(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("Source\tTarget\nx\ty\n")
    with pytest.raises(RegardError, match=r"a\.tsv:1 looks like a header \(Source, Target\)"):
        tsv(file)
    assert tsv(file, header=True) == [Pair("x", "y")]
    assert tsv(file, header=False) == [Pair("Source", "Target"), Pair("x", "y")]


def test_sentences_are_no_header(tmp_path: Path) -> None:
    file = tmp_path / "a.tsv"
    file.write_text("The source is here\tDie Quelle ist hier\nText\tText\n")
    assert len(tsv(file)) == 2


# Training


def test_training_reports_columns_and_too_few_examples(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["raw,clean", *(f"a{number},A{number}" for number in range(12))]
    (tmp_path / "codes.csv").write_text("\n".join(lines))
    (tmp_path / "my.yaml").write_text(
        "data: {train: {table: codes.csv, source: raw, target: clean}}\ntext: {tokenizer: {kind: characters}}\n"
        "model: {width: 16, encoder: {kind: rnn}, decoder: {kind: rnn}}\ntraining: {steps: 2}\n"
    )
    assert main(["train", "my.yaml", "--run", "runs/few"]) == 0
    said = " ".join("".join(capsys.readouterr()).split())
    assert "There are only 11 training pairs." in said
    assert "raw → clean (the first row is a header, and no example)" in said
    (tmp_path / "dev.csv").write_text("clean,raw\nA1,a1\nA2,a2\n")
    assert main(["evaluate", "runs/few", "--data", "dev.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_line_numbers_count_the_line_breaks_inside_of_cells(tmp_path: Path) -> None:
    path = tmp_path / "lines.csv"
    path.write_text('source,target\n"a\nb\nc",x\nd,y\n"e,z\n', encoding="utf-8")
    assert [number for number, _ in islice(_read_separated(str(path), ","), 3)] == [1, 2, 5]
    with pytest.raises(RegardError, match=r"lines\.csv:6 "):
        list(_read_separated(str(path), ","))
