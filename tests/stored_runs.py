"""Small runs of every task, stored as the format of their time wrote them: every later Regard must open them.

`python -m tests.stored_runs DIR` makes such runs with the present code, each with what it answers. The runs under
`tests/fixtures/format-1` are never made again: a new format gets a directory of its own next to them.
"""

import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from regard.cli import main
from tests.task_runs import COURSE, settings

FIXTURES = Path(__file__).parent / "fixtures"

TRANSFORMER = {"kind": "transformer", "layers": 1, "feed_forward": 24}
COPY = {"generate": "copy", "size": 300, "symbols": 8, "max_length": 6}
SCENE = "shapes: red circle 0 0 6 0 0, blue square 2 1 5 1 0"


def _translation(data: dict[str, Any], text: dict[str, Any], model: dict[str, Any]) -> dict[str, Any]:
    return {
        "data": {"train": data, "held_out": 20},
        "text": text,
        "model": {"width": 16, **model},
        "training": dict(COURSE),
    }


def _two_texts(directory: Path) -> dict[str, Any]:
    lines = [f"a b c {a}\td {b}\t{b} {a}" for a in "abcdef" for b in "abcdef"]
    path = directory / "asked.tsv"
    path.write_text("".join(f"{line}\n" for line in lines * 3))
    return {"tsv": str(path), "second_column": 2, "target_column": 3}


def configurations(directory: Path) -> dict[str, dict[str, Any]]:
    """Return the settings of every stored run by name, and write their corpora into the directory."""
    words = {"tokenizer": {"kind": "words", "min_frequency": 1}}
    transformer = {"encoder": TRANSFORMER, "decoder": TRANSFORMER, "attention": {"heads": 2}}
    rnn = {"encoder": {"kind": "rnn"}, "decoder": {"kind": "rnn"}}
    return {
        "translation-transformer": _translation(COPY, {"tokenizer": {"kind": "bpe"}}, transformer),
        "translation-unigram": _translation(COPY, {"tokenizer": {"kind": "unigram"}}, transformer),
        "translation-two-vocabularies": _translation(COPY, {**words, "target": {"kind": "characters"}}, transformer),
        "translation-rnn": _translation(COPY, words, rnn),
        "translation-fixed": _translation(COPY, words, {**rnn, "join": {"kind": "fixed"}}),
        "translation-conv": _translation(COPY, words, {"encoder": {"kind": "conv"}, "decoder": {"kind": "conv"}}),
        "answering": _translation(_two_texts(directory), words, transformer),
        **{kind: settings(kind, directory) for kind in ("classes", "number", "pairs", "tags", "language", "masked")},
        "pairs-apart": settings("pairs", directory, task={"pairs": "apart"}),
        "pairs-attended": settings("pairs", directory, task={"pairs": "attended"}),
        "tags-transformer": settings("tags", directory, model={"encoder": TRANSFORMER, "attention": {"heads": 2}}),
        "captions": settings("captions", directory),
        "questions": settings("questions", directory),
    }


def question(name: str) -> tuple[list[str], str]:
    """Return the command line (RUN stands for the directory) and the standard input that question a run."""
    translate = ["translate", "RUN", "--format", "jsonl", "--with", "scores"]
    predict = ["predict", "RUN", "--json"]
    pairs = "w0 w1\tw0 w2\nw3\tw99 w1\n"
    return {
        "translation": (translate, "a b c\nc\nh g f e d\n"),
        "answering": (translate, "a b c d\td e\na b c a\td f\n"),
        "classes": (predict, "w0 w1 w2\nw3\nw4 w0 w5\n"),
        "pairs": (predict, pairs),
        "number": (predict, pairs),
        "tags": (predict, "w0 w1 w2\nw3\n"),
        "masked": (predict, "w0 ___ w2 w3\n___ w5\n"),
        "language": (["generate", "RUN", "--prompt", "w0 w1", "--beam", "1", "--max-length", "6", "--json"], ""),
        "captions": (["caption", "RUN", SCENE, "--format", "jsonl"], ""),
        "questions": (predict, f"{SCENE}\twhat colour is the circle ?\n"),
    }[name.split("-", maxsplit=1)[0]]


def run_command(*arguments: str, text: str = "") -> str:
    """Run `regard` in this process and return what it prints."""
    streams = sys.stdin, sys.stdout
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    try:
        code = main(list(arguments))
        sys.stdout.flush()
        printed = sys.stdout.buffer.getvalue().decode()  # type: ignore[attr-defined]
    finally:
        sys.stdin, sys.stdout = streams
    assert code == 0
    return printed


def answer(run: Path, arguments: list[str], text: str) -> list[Any]:
    """Return what a command prints about a run, line by line, as JSON."""
    printed = run_command(*(str(run) if word == "RUN" else word for word in arguments), text=text)
    return [json.loads(line) for line in printed.splitlines()]


def make(directory: Path) -> None:
    """Train every stored run with the present code and record what it answers."""
    from regard.config.loading import from_mapping
    from regard.training.loop import train
    from regard.training.view import View

    directory.mkdir(parents=True)
    os.chdir(directory)
    corpora = Path("corpora")
    corpora.mkdir()
    for name, given in configurations(corpora).items():
        given["training"]["checkpoint_every"] = COURSE["steps"]
        train(from_mapping(given), Path(name), view=View())
        for picture in Path(name).glob("*.png"):
            picture.unlink()
        arguments, text = question(name)
        record = {"arguments": arguments, "input": text, "answers": answer(directory / name, arguments, text)}
        Path(f"{name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.rmtree(corpora)


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve())
