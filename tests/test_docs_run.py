"""The examples of the documentation, executed: commands on small stored runs, and Python blocks.

A command that is not executed is excluded by a rule with a reason (`reason_against`); `test_docs.py` checks that it
parses.
`python -m tests.test_docs_run` prints how many there are of each.
"""

import io
import shutil
import sys
import wave
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.cli import main
from tests.conftest import pytest_terminal_summary
from tests.documentation import EXAMPLES, Block, Command, all_blocks, commands
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
    "inspect nearest": "needs an index; tests/test_inspect_nearest.py executes it",
    "inspect patch": "needs sources of as many tokens; tests/test_inspect_patch.py executes it",
    "data get": "needs the network",
    "data path": "needs a downloaded corpus",
    "help": "prints help",
    "serve": "runs until it is stopped; executed by tests/test_serving.py",
    "studio": "runs until it is stopped; executed by tests/test_browser_studio.py",
    "client": "needs a server; executed by tests/test_serving_faults.py",
    "calibrate": "needs more examples than the stored data has; executed by tests/test_confidence.py",
}
PYTHON_PAGES = ("README.md", "guide.md", "python.md", "configuration.md", "decoding.md", "errors.md")
"""Pages whose Python blocks are executed in order; those of extending.md are executed by tests/test_extensions.py."""


def is_tutorial(block: Block) -> bool:
    """Return whether a block is executed with its whole page, by tests/test_tutorial.py or test_docs_tutorials.py."""
    return block.page.name == "tutorial-csv.md" or block.page.parent.name == "tutorials"


def reason_against(command: Command) -> str:
    """Return why a command is not executed, or an empty string."""
    words = command.words
    if is_tutorial(command.block):
        return "executed with the whole tutorial"
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
    if "confidence" in words:
        return "needs a calibrated run; executed by tests/test_confidence.py"
    if {"--layer", "--instead"} & set(words):
        return "needs more layers or words than the stored runs have"
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
    for name in ("train", "dev", "val", "valid", "test", "other", "a", "b", "out", "old", "new"):
        for side in ("en", "de"):
            (place / f"{name}.{side}").write_text(texts * (30 if name == "train" else 1))
    (place / "codes.csv").write_text("raw,clean\n" + "".join(f"x{n},X-{n}\n" for n in range(120)))
    (place / "reviews.csv").write_text("text,stars\n" + "".join(f"film {n},{n % 5 + 1}\n" for n in range(120)))
    (place / "suite.tsv").write_text("a b c\ta b c\tc b a\nd e\td e\te\n")
    (place / "en-de.text.txt").write_text("He sat on the bank .\n")
    (place / "en-de.key.txt").write_text("1\tbooks\tbank\tUfer\tBank\n")
    (place / "test.tsv").write_text("w0 w1\tyes\nw3 w4\tno\n")
    for block in all_blocks("bash"):
        if block.title:
            (place / block.title).write_text(block.text)
    rows = [
        "".join(f"{n}\t{word}\t{word}\tNOUN\t_\t_\t{n - 1}\tdep\t_\t_\n" for n, word in enumerate(line.split(), 1))
        for line in texts.splitlines()
    ]
    (place / "dev.conllu").write_text("".join(f"{row}\n" for row in rows))
    (place / "film.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\na <i>b</i> c\n")
    (place / "my.yaml").write_text("data: {train: {source: train.en, target: train.de}}\n")
    (place / "clips").mkdir()
    with wave.open(str(place / "clips" / "a.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 800, "NONE", "not compressed"))
        sound.writeframes(bytes(1600))
    (place / "clips" / "clips.tsv").write_text("a.wav\tone two\n")
    from PIL import Image

    Image.new("RGB", (32, 32), "red").save(place / "picture.png")
    return place


@pytest.fixture
def here(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(directory)
    return directory


@pytest.mark.parametrize("command", [one for one in shell_commands() if not reason_against(one)], ids=str)
def test_a_command_runs(command: Command, here: Path, monkeypatch: pytest.MonkeyPatch, capfd, record_property) -> None:
    record_property(EXAMPLES, 1)
    content = (here / command.stdin).read_bytes() if command.stdin else b""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
    for written in ("codes.yaml", "reviews.yaml", "en-de.yaml", "clips.yaml", "converted.yaml"):
        (here / written).unlink(missing_ok=True)
    try:
        code = main(list(command.words[1:]))
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 0, capfd.readouterr().err


def python_blocks(page: str) -> list[Block]:
    return [block for block in all_blocks("python") if block.page.name == page and not block.title and not block.reason]


@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_the_python_blocks_of_a_page_run(page: str, here: Path, record_property) -> None:
    record_property(EXAMPLES, len(python_blocks(page)))
    names: dict[str, object] = {"paths": ["a b c", "d e f"]}
    for block in python_blocks(page):
        exec(compile(block.text, str(block), "exec"), names)
    assert python_blocks(page)


def counts() -> Counter[str]:
    """Return how many examples are executed, here or by another test, and how many are not, by reason."""
    found: Counter[str] = Counter()
    for block in all_blocks("bash", "python"):
        if block.page.name == "api.md":
            continue  # signatures
        if block.reason:
            found[block.reason] += 1
        elif block.language == "python":
            executed = block.title or block.page.name in PYTHON_PAGES or block.page.parent.name == "understand"
            found["" if executed else "Python that is compiled only: it needs names that the page does not define"] += 1
        elif is_tutorial(block):
            found[""] += len(list(commands(block)))
        else:
            for command in commands(block):
                reason = reason_against(command)
                found["" if "whole tutorial" in reason else reason] += 1
    executed_examples = found.pop("", 0)
    return Counter({"executed": executed_examples}) + found


def test_most_of_what_can_be_executed_is() -> None:
    assert counts()["executed"] >= 60


def test_the_summary_counts_what_was_executed_and_what_has_a_reason(capsys) -> None:
    """A test that failed, or that was not selected, executed nothing."""
    reports = {
        "passed": [SimpleNamespace(user_properties=[(EXAMPLES, 3), ("other", 9)]), SimpleNamespace(user_properties=[])],
        "failed": [SimpleNamespace(user_properties=[(EXAMPLES, 40)])],
    }
    pytest_terminal_summary(SimpleNamespace(stats=reports, write_line=print))
    marked = counts().total() - counts()["executed"]
    assert capsys.readouterr().out == f"documentation: 3 examples executed, {marked} marked with a reason\n"
    pytest_terminal_summary(SimpleNamespace(stats={"failed": reports["failed"]}, write_line=print))
    assert capsys.readouterr().out == ""


def test_every_rule_is_needed() -> None:
    used = {reason_against(command) for command in shell_commands()}
    assert {reason for verb, reason in NOT_EXECUTED.items() if verb not in ("help", "demo", "inspect all")} <= used


if __name__ == "__main__":
    for reason, count in counts().most_common():
        print(f"{count:4} {'examples executed' if reason == 'executed' else 'not executed: ' + reason}")
