"""`regard new`: a file of examples is looked at, its task recognised, and a configuration written that trains."""

import json
from pathlib import Path

import pytest

from regard.cli import main
from regard.config.loading import load
from regard.data.corpus import read

CODES = ["raw,clean", *(f"ab-{number:04},AB{number}" for number in range(300))]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(path: str, *rows: str) -> str:
    Path(path).write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_codes_become_a_translation_letter_by_letter(capsys) -> None:
    assert main(["new", lines("codes.csv", *CODES)]) == 0
    said = capsys.readouterr().out
    assert "300 examples, columns raw, clean" in said and "names the columns" in said
    assert "regard train codes.yaml" in said and "regard translate runs/codes ab-0000" in said
    config = load("codes.yaml")
    assert (config.task.kind, config.text.tokenizer.kind) == ("translation", "characters")
    assert next(read(config.data.train)) == ("ab-0000", "AB0")
    assert len(list(read(config.data.train))) == 300


def test_what_it_writes_trains_and_answers_inline(capfd) -> None:
    assert main(["new", lines("codes.csv", *CODES)]) == 0
    small = ["training.steps=3", "training.validate_every=3", "model.width=16"]
    assert main(["train", "codes.yaml", *small]) == 0
    capfd.readouterr()
    assert main(["translate", "runs/codes", "ab-0042"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 1
    assert main(["evaluate", "runs/codes"]) == 0


TASKS = {
    "classification": ["text,label", *(f"it is {number},{'good' if number % 3 else 'bad'}" for number in range(60))],
    "regression": ["text,score", *(f"it is {number},{number / 7:.2f}" for number in range(60))],
    "tagging": [
        "words,tags",
        *(f"the dog{number} runs,DET NOUN VERB" if number % 2 else f"a{number} b,X Y" for number in range(60)),
    ],
    "translation": ["en,de", *(f"the dog number {number} runs home,der Hund {number} läuft" for number in range(60))],
}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("ending", ["csv", "jsonl", "tsv"])
def test_the_task_is_recognised(task: str, ending: str, capsys) -> None:
    rows = [row.split(",") for row in TASKS[task]]
    if task == "tagging" and ending == "jsonl":
        pytest.skip("taggers read no JSON lines")
    if ending == "jsonl":
        records = [json.dumps(dict(zip(rows[0], row, strict=True))) for row in rows[1:]]
        lines("a.jsonl", *records)
    else:
        lines(f"a.{ending}", *((("," if ending == "csv" else "\t").join(row)) for row in rows))
    assert main(["new", f"a.{ending}"]) == 0
    config = load("a.yaml")
    assert config.task.kind == task
    assert len(list(read(config.data.train))) == 60


def test_two_parallel_files_and_conllu(capsys) -> None:
    lines("a.en", *(f"the dog number {number}" for number in range(50)))
    lines("a.de", *(f"der Hund {number}" for number in range(50)))
    assert main(["new", "a.en", "a.de", "-o", "both.yaml"]) == 0
    assert load("both.yaml").data.train.target == ["a.de"]
    lines("w.conllu", "1\tDogs\tdog\tNOUN\t_\t_\t0\troot\t_\t_", "")
    assert main(["new", "w.conllu"]) == 0
    assert load("w.yaml").task.kind == "tagging"


def test_options_win(capsys) -> None:
    lines("a.csv", "id,a,b,c", *(f"{n},x {n},y {n % 2},{n % 2}" for n in range(50)))
    assert main(["new", "a.csv"]) == 2
    assert "Add --source COLUMN --target COLUMN" in capsys.readouterr().err
    assert main(["new", "a.csv", "--source", "a", "--target", "c", "--task", "translation"]) == 0
    config = load("a.yaml")
    assert (config.task.kind, config.data.train.source, config.data.train.target) == ("translation", "a", "c")


def test_without_a_header_columns_have_numbers(capsys) -> None:
    lines("a.csv", *(f"ab-{number},AB{number}" for number in range(50)))
    assert main(["new", "a.csv"]) == 0
    assert "is an example, not a header" in capsys.readouterr().out
    assert len(list(read(load("a.yaml").data.train))) == 50
    lines("b.csv", "dog,Hund", "cat,Katze")
    assert main(["new", "b.csv", "--no-header"]) == 0
    assert len(list(read(load("b.yaml").data.train))) == 2


def test_strange_names_are_quoted() -> None:
    lines("my codes.csv", '"a: {b}","true"', *(f"x{number},Y{number}" for number in range(50)))
    assert main(["new", "my codes.csv", "--header", "--source", "a: {b}", "--target", "true"]) == 0
    assert next(read(load("my codes.yaml").data.train)) == ("x0", "Y0")


def test_few_examples_are_told(capsys) -> None:
    assert main(["new", lines("a.csv", "raw,clean", "x1,y1", "x2,y2")]) == 0
    assert "2 examples are few" in capsys.readouterr().err


def test_nothing_is_written_over(capsys) -> None:
    lines("a.csv", *CODES)
    lines("a.yaml", "mine")
    assert main(["new", "a.csv"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("a.yaml").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("content", "arguments", "code"),
    [
        ("", ["a.csv"], 1),
        ("raw,clean\n", ["a.csv"], 1),
        ("raw,clean\na,b,c\n", ["a.csv"], 1),
        ("only\nx\ny\n", ["a.csv"], 2),
        ("raw,clean\na,b\n", ["a.csv", "--task", "poetry"], 2),
        ("raw,clean\na,b\n", ["a.csv", "--source", "nope"], 2),
        ("raw,clean\na,b\n", ["a.csv", "--source", "raw", "--target", "raw"], 2),
        ("x", ["gone.csv"], 2),
        ("x", ["a.csv", "b.csv", "c.csv"], 2),
        ("raw,clean\na,b\n", ["a.csv", "-o", "no/such/dir.yaml"], 2),
    ],
)
def test_what_cannot_be_used_is_refused(content: str, arguments: list[str], code: int, capsys) -> None:
    Path("a.csv").write_text(content)
    assert main(["new", *arguments]) == code
    said = capsys.readouterr().err
    assert "error: " in said and "bug in Regard" not in said
    assert not list(Path().glob("*.yaml"))


def test_looking_at_a_file_needs_no_torch() -> None:
    import subprocess
    import sys

    lines("codes.csv", *CODES)
    code = "import sys; from regard.cli import main; main(['new', 'codes.csv']); print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()[-1] == "False"


class TestOddColumns:
    """What a new user's files had: one column, an empty column, one target for all."""

    def run(self, tmp_path, monkeypatch, capsys, text: str, name: str = "odd.csv") -> tuple[int, str]:
        monkeypatch.chdir(tmp_path)
        (tmp_path / name).write_text(text)
        code = main(["new", name])
        return code, capsys.readouterr().err

    def test_one_column(self, tmp_path, monkeypatch, capsys):
        code, error = self.run(tmp_path, monkeypatch, capsys, "a\n" + "x\n" * 200)
        assert code == 2 and "has only 1 column, but examples need a source and a target" in error

    def test_empty_targets(self, tmp_path, monkeypatch, capsys):
        code, error = self.run(tmp_path, monkeypatch, capsys, "source,target\n" + "x,\n" * 200)
        assert code == 2 and "The column target of odd.csv is empty" in error

    def test_equal_targets(self, tmp_path, monkeypatch, capsys):
        rows = "".join(f"x{number},same\n" for number in range(200))
        code, error = self.run(tmp_path, monkeypatch, capsys, f"source,target\n{rows}")
        assert code == 0 and "all targets are equal ('same')" in error

    def test_a_configuration_is_not_data(self, tmp_path, monkeypatch, capsys):
        code, error = self.run(tmp_path, monkeypatch, capsys, "a: 1\n", "x.yaml")
        assert code == 2 and "x.yaml has an unknown ending" in error
