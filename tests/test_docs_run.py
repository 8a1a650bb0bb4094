"""The examples of the documentation, executed: commands on small stored runs, Python blocks, and a whole tutorial.

A command that is not executed is excluded by a rule with a reason (`reason_against`); `test_docs.py` checks that it
parses.
`python -m tests.test_docs_run` prints how many there are of each.
"""

import io
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.cli import main
from tests.documentation import Block, Command, all_blocks, commands
from tests.stored_runs import FIXTURES

RUNS = {
    **dict.fromkeys(
        ("mine", "my", "en-de", "a", "b", "c", "one", "attention", "dates", "tiny"), "translation-transformer"
    ),
    **dict.fromkeys(("other", "fixed"), "translation-fixed"),
    "sentiment": "classes",
    "tagging": "tags",
    "language-model": "language",
    "masked": "masked",
    "answering": "answering",
    "captions": "captions",
    "visual-questions": "questions",
    "entailment": "pairs-attended",
}
"""The stored run that plays the part of each run that the pages name."""

NOT_EXECUTED = {
    "train": "takes minutes, or needs a corpus",
    "sweep": "takes minutes",
    "demo": "takes minutes",
    "bench": "takes minutes, and installs other toolkits",
    "plan": "measures the machine for ten seconds",
    "import": "needs a model from Hugging Face",
    "judge": "needs answers from people",
    "transcribe": "there is no stored run of that task",
    "inspect heads": "takes long; tests/test_inspect_heads.py executes it",
    "inspect prune": "trains; tests/test_inspect_prune.py executes it",
    "inspect probe": "trains; tests/test_inspect_probe.py executes it",
    "inspect identify": "takes long; tests/test_inspect_identify.py executes it",
    "inspect align": "needs several runs; tests/test_inspect_align.py executes it",
    "inspect all": "takes long; tests/test_inspect_shapes.py executes it",
    "inspect patch": "needs sources of as many tokens; tests/test_inspect_patch.py executes it",
    "data get": "needs the network",
    "data path": "needs a downloaded corpus",
    "help": "prints help",
}
PYTHON_PAGES = ("README.md", "guide.md", "python.md", "configuration.md", "decoding.md")
"""Pages whose Python blocks are executed in order; those of extending.md are executed by tests/test_extensions.py."""


def reason_against(command: Command) -> str:
    """Return why a command is not executed, or an empty string."""
    words = command.words
    if words[0] != "regard":
        return "is not a command of Regard"
    for verb in (" ".join(words[1:3]), words[1]):
        if verb in NOT_EXECUTED:
            return NOT_EXECUTED[verb]
    if words[1].startswith("-"):
        return "needs an extension" if words[1] == "--plugin" else "changes the shell"
    if command.piped or any("*" in word for word in words):
        return "needs a shell"
    named = [word for word in words if word.startswith("runs/")]
    if any(word.removeprefix("runs/") not in RUNS for word in named):
        return "needs a run that the page trains or imports"
    if "--engine" in words or "custom" in words:
        return "needs another engine or an extension"
    if {"--layer", "--instead"} & set(words):
        return "needs more layers or words than the stored runs have"
    if command.block.page.name == "tutorial-csv.md":
        return "executed with the whole tutorial"
    return ""


def shell_commands() -> list[Command]:
    return [command for block in all_blocks("bash") if not block.reason for command in commands(block)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the runs and files that the pages name."""
    place = tmp_path_factory.mktemp("docs")
    for name, stored in RUNS.items():
        shutil.copytree(FIXTURES / "format-1" / stored, place / "runs" / name)
    texts = "a b c\nd e f a b\nh g f e d\nb b c d\n"
    for name in ("in.txt", "test.txt", "words.txt", "allowed.txt"):
        (place / name).write_text(texts)
    for name in ("train", "val", "valid", "test", "other", "a", "b", "out", "old", "new"):
        for side in ("en", "de"):
            (place / f"{name}.{side}").write_text(texts * (30 if name == "train" else 1))
    (place / "codes.csv").write_text("raw,clean\n" + "".join(f"x{n},X-{n}\n" for n in range(120)))
    (place / "reviews.csv").write_text("text,stars\n" + "".join(f"film {n},{n % 5 + 1}\n" for n in range(120)))
    (place / "suite.tsv").write_text("a b c\ta b c\tc b a\nd e\td e\te\n")
    (place / "en-de.text.txt").write_text("He sat on the bank .\n")
    (place / "en-de.key.txt").write_text("1\tbooks\tbank\tUfer\tBank\n")
    (place / "test.tsv").write_text("w0 w1\tyes\nw3 w4\tno\n")
    (place / "my.yaml").write_text("data: {train: {source: train.en, target: train.de}}\n")
    from PIL import Image

    Image.new("RGB", (32, 32), "red").save(place / "picture.png")
    return place


@pytest.fixture
def here(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(directory)
    return directory


@pytest.mark.parametrize("command", [one for one in shell_commands() if not reason_against(one)], ids=str)
@pytest.mark.xdist_group("docs")
def test_a_command_runs(command: Command, here: Path, monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    content = (here / command.stdin).read_bytes() if command.stdin else b""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
    for written in ("codes.yaml", "reviews.yaml", "en-de.yaml"):
        (here / written).unlink(missing_ok=True)
    try:
        code = main(list(command.words[1:]))
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 0, capfd.readouterr().err


def python_blocks(page: str) -> list[Block]:
    return [block for block in all_blocks("python") if block.page.name == page and not block.title and not block.reason]


@pytest.mark.parametrize("page", PYTHON_PAGES)
@pytest.mark.xdist_group("docs")
def test_the_python_blocks_of_a_page_run(page: str, here: Path) -> None:
    names: dict[str, object] = {"paths": ["a b c", "d e f"]}
    for block in python_blocks(page):
        exec(compile(block.text, str(block), "exec"), names)
    assert python_blocks(page)


def tutorial_steps() -> Iterator[Block]:
    yield from (block for block in all_blocks("bash", "python") if block.page.name == "tutorial-csv.md")


def test_the_tutorial_runs_from_its_first_line_to_its_last(tmp_path: Path) -> None:
    """In an empty directory, in a shell, with few steps of training: what is learnt is not judged here."""
    short = "training.steps=6 training.validate_every=6 training.validation_sample=5 decoding.max_length=9"
    program = f'#!/bin/sh\n[ "$1" = train ] && set -- "$@" {short}\nexec {sys.executable} -m regard "$@"\n'
    (tmp_path / "bin").mkdir()
    for name, text in (("regard", program), ("python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    work = tmp_path / "empty"
    work.mkdir()
    environment = {key: value for key, value in os.environ.items() if key != "REGARD_DATA"}
    root = str(Path(__file__).parent.parent)
    environment |= {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": root}
    printed = ""
    for block in tutorial_steps():
        if block.language == "python":
            (work / block.title).write_text(block.text)
            script = f"python {block.title}" if block.title == "use_codes.py" else "true"
        else:
            script = f"set -e\n{block.text}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"{block}: {done.stderr}"
        printed += done.stdout
    assert "4,000 examples, columns raw, clean." in printed
    assert "360 sentences" in printed
    assert (work / "attention.html").is_file()


def counts() -> Counter[str]:
    """Return how many examples are executed here, and how many are not, by reason."""
    found = Counter(reason_against(command) or "executed" for command in shell_commands())
    for block in all_blocks("python"):
        executed = block.title or block.page.name in PYTHON_PAGES
        found[
            "executed" if executed else "Python that is compiled only: it needs names that the page does not define"
        ] += 1
    return found


def test_most_of_what_can_be_executed_is() -> None:
    assert counts()["executed"] >= 60


def test_every_rule_is_needed() -> None:
    used = {reason_against(command) for command in shell_commands()}
    assert {reason for verb, reason in NOT_EXECUTED.items() if verb not in ("help", "demo", "inspect all")} <= used


if __name__ == "__main__":
    for reason, count in counts().most_common():
        print(f"{count:4} {'examples executed' if reason == 'executed' else 'not executed: ' + reason}")
