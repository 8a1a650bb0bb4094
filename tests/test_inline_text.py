"""Text on the command line: `regard translate RUN "9. Mai 2018"`, and file names that were mistyped."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli import main
from regard.cli.words import file_or_text, split_arguments
from regard.foundation.errors import RegardError


def said(capfd, *arguments: object) -> tuple[int, str, str]:
    code = main([str(one) for one in arguments])
    out, err = capfd.readouterr()
    return code, out, err


def test_text_is_translated_like_a_line_of_a_file(copy_run: Path, tmp_path: Path, capfd) -> None:
    (tmp_path / "in.txt").write_text("a b c\nd e\n")
    code, expected, _ = said(capfd, "translate", copy_run, tmp_path / "in.txt")
    assert code == 0
    assert said(capfd, "translate", copy_run, "a b c", "d e") == (0, expected, "")
    assert said(capfd, "translate", copy_run, "a b c\nd e") == (0, expected, "")
    code, both, _ = said(capfd, "translate", copy_run, "d e", tmp_path / "in.txt", "--beam", "1")
    assert both.splitlines() == ["d e", "a b c", "d e"]


def test_text_and_settings_and_options_go_together(copy_run: Path, tmp_path: Path, capfd) -> None:
    out = tmp_path / "out.txt"
    assert main(["translate", str(copy_run), "a b", "-o", str(out), "decoding.beam=2"]) == 0
    assert out.read_text() == "a b\n"


@pytest.mark.parametrize("engine", ["ctranslate2", "auto"])
def test_the_quick_path_reads_text_too(engine: str, transformer_run: Path, capfd) -> None:
    pytest.importorskip("ctranslate2", reason="needs ctranslate2")
    expected = said(capfd, "translate", transformer_run, "a b c")[1]
    assert said(capfd, "translate", transformer_run, "a b c", "--engine", engine)[:2] == (0, expected)


@pytest.mark.parametrize(
    "name", ["in.txt", "texts/in", "./x", "/x", "~/x", "data.tsv.gz", "..\\in.txt", "corpus.en", "A.TXT", "ä/ö.de"]
)
def test_a_mistyped_file_name_is_no_text(name: str, copy_run: Path, tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    code, out, err = said(capfd, "translate", copy_run, name)
    assert (code, out) == (1, "")
    assert f"{name} does not exist" in err and "standard input" in err


@pytest.mark.parametrize(
    "text",
    [
        "9. Mai 2018",
        "Hallo",
        "Ende.",
        "3.14",
        "see in.txt now",
        "and/or this",
        "",
        "x" * 10_000,
        "10 km/h",
        "日本",
        "ab/42",
        "AB.X12",
        "und/oder",
    ],
)
def test_what_does_not_look_like_a_file_name_is_text(text: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert file_or_text(text) == text
    assert split_arguments(["run", text]) == ([Path("run")], [text], [])


def test_an_existing_file_is_a_file_whatever_its_name(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "9. Mai 2018").write_text("x")
    (tmp_path / "a=b").write_text("x")
    assert file_or_text("9. Mai 2018") == Path("9. Mai 2018")
    assert split_arguments(["run", "a=b", "-", "c.d=1"]) == ([Path("run")], [Path("a=b"), Path("-")], ["c.d=1"])


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(RegardError, match="not valid UTF-8"):
        file_or_text(os.fsdecode(b"\xff abc"))


def test_importing_the_rule_imports_nothing_heavy() -> None:
    code = (
        "import sys, regard.cli.words, regard.cli.fast_path; "
        "print([m for m in sys.modules if m.split('.')[0] in ('torch', 'typer', 'pydantic', 'rich', 'tomllib')])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_predict_answers_text_on_the_command_line(tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{word} {number},{label}" for number in range(20) for word, label in (("good", "yes"), ("bad", "no"))]
    Path("a.csv").write_text("\n".join(["text,label", *rows]))
    Path("my.yaml").write_text(
        "task: {kind: classification}\ndata: {train: {table: a.csv, source: text, target: label}}\n"
        "text: {tokenizer: {kind: words}}\nmodel: {width: 16, encoder: {kind: rnn}}\ntraining: {steps: 3}\n"
    )
    assert main(["train", "my.yaml", "--run", "r"]) == 0
    Path("in").write_text("good 3\nbad 4\n")
    capfd.readouterr()
    code, expected, _ = said(capfd, "predict", "r", "in")
    assert code == 0 and len(expected.splitlines()) == 2
    assert said(capfd, "predict", "r", "good 3", "bad 4") == (0, expected, "")
    code, out, err = said(capfd, "predict", "r", "gone.txt")
    assert (code, out) == (1, "") and "gone.txt does not exist" in err
