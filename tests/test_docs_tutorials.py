"""The tutorials of docs/tutorials, executed from first line to last in an empty directory, with short trainings.

What a model learns in so few steps is not judged here; the figures on the pages are those of complete trainings. The
tutorial of docs/tutorial-csv.md has a test of its own in `test_docs_run.py`.
"""

import io
import os
import runpy
import sys
from pathlib import Path

import pytest

from regard.cli import main
from tests.documentation import ROOT, Block, blocks, commands

PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
SHORT = ("training.steps=3", "training.validate_every=3", "training.validation_sample=3", "data.every=20")
GERMAN_DATES = (
    "data.train.languages=[de]",
    "data.train.size=3000",
    "data.held_out=50",
    "training.steps=80",
    "training.batch_tokens=1024",
    "training.schedule.warmup=20",
    "training.validate_every=80",
    "training.validation_sample=3",
)
"""The demo with German dates only, of which a model learns to copy digits within seconds."""
DATA = Path(os.environ.get("REGARD_DATA", "no-data"))


def run_command(words: list[str]) -> None:
    """Run one `regard` command of a page; trainings get few steps, and the demo is such a training."""
    if words[0] == "demo":
        words = ["train", "dates", "--run", "runs/demo", *GERMAN_DATES]
    elif words[0] == "train" and {"multi30k/quick", "pairs.yaml"} & set(words):
        words = [*words, *SHORT, "decoding.max_length=4", "model.width=16"]
        if "multi30k/quick" in words:  # a small part of the corpus for training, and of that for validation and test
            words += ["data.test=null", "data.validation=null", "data.held_out=40", "text.tokenizer.vocabulary=400"]
    elif words[0] == "train":
        words = [*words, *(one for one in SHORT if one.partition("=")[0] not in " ".join(words))]
    if words[:2] == ["inspect", "patch"]:  # after so few steps the model copies digits, but knows no months
        words = [*words[:3], "9. Mai 2018", "9. Mai 2015", "--target", "2018-05-09", "--instead", "2015-05-09"]
    try:
        code = main(words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 0, " ".join(words)


def run_block(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all commands of a shell block in order; `printf TEXT | regard …` reads the text."""
    text = ""
    for command in commands(block):
        program, *words = command.words
        if program == "printf":
            text = words[0].replace("\\n", "\n")
            continue
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))
        text = ""
        if program == "python":
            runpy.run_path(words[0])
        else:
            assert program == "regard", f"{block}: {program}"
            run_command(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.stem != "looking-inside" and not (DATA / "multi30k").is_dir():
        pytest.skip("needs public corpora: REGARD_DATA names no directory with them")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reviews.csv").write_text("text,stars\n" + "".join(f"film {n},{n % 7 % 5}\n" for n in range(3000)))
    for name in ("train.en", "train.de"):
        (tmp_path / name).write_text("".join(f"word {n} is {n % 13} .\n" for n in range(3000)))
    executed = 0
    for block in blocks(page):
        if block.language == "python":
            assert block.title, f"{block} has no file name"
            (tmp_path / block.title).write_text(block.text)
        elif block.language == "bash" and not block.reason:
            run_block(block, monkeypatch)
            executed += 1
    assert executed
