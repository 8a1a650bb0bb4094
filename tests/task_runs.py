"""Tiny runs of every task, over corpora that are made for them."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.config.loading import from_mapping
from regard.tasks.preparation import prepare

ENCODERS = ("bag", "rnn", "conv", "transformer")
COURSE = {"steps": 12, "validate_every": 6, "checkpoint_every": 6, "batch_tokens": 300, "device": "cpu", "log_every": 3}


def corpus(path: Path, lines: list[str]) -> str:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def words(seed: int, most: int = 8) -> list[str]:
    random = np.random.default_rng(seed)
    return [f"w{n}" for n in random.integers(0, 12, int(random.integers(1, most + 1)))]


def labelled_lines(count: int) -> list[str]:
    """Texts whose label says whether `w0` occurs in them before `w1` would: it is there, or it is not."""
    rows = [words(seed) for seed in range(count)]
    return [f"{'yes' if 'w0' in row else 'no'} {' '.join(row)}" for row in rows]


def pair_lines(count: int) -> list[str]:
    """Two texts, whether they begin alike, and how many words they share."""
    lines = []
    for seed in range(count):
        one, other = words(2 * seed), words(2 * seed + 1)
        alike = "same" if seed % 3 == 0 else "other"
        other = [one[0], *other] if alike == "same" else ["w99", *other]
        shared = len(set(one) & set(other)) / 2
        lines.append("\t".join([" ".join(one), " ".join(other), alike, f"{shared}"]))
    return lines


def tagged_lines(count: int) -> list[str]:
    """Words whose tag says what stands before them: a tagger must look around."""
    lines = []
    for seed in range(count):
        row = words(seed)
        lines += [f"{word} {'first' if not place else row[place - 1]}" for place, word in enumerate(row)]
        lines.append("")
    return lines


def settings(kind: str, directory: Path, **more: Any) -> dict[str, Any]:
    """Settings of a tiny run of a task, over a corpus that is made for it."""
    tasks: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "classes": ({"kind": "classification"}, {"labelled": corpus(directory / "labelled.txt", labelled_lines(120))}),
        "number": (
            {"kind": "regression"},
            {"tsv": corpus(directory / "pairs.tsv", pair_lines(120)), "second_column": 2, "target_column": 4},
        ),
        "pairs": (
            {"kind": "classification"},
            {"tsv": corpus(directory / "pairs.tsv", pair_lines(120)), "second_column": 2, "target_column": 3},
        ),
        "tags": (
            {"kind": "tagging"},
            {"columns": corpus(directory / "tagged.txt", tagged_lines(120))},
        ),
        "language": (
            {"kind": "language-model", "length": 12},
            {"text": corpus(directory / "text.txt", [" ".join(words(seed, 30)) for seed in range(120)])},
        ),
        "captions": (
            {"kind": "captioning", "shift": 1, "doubly_stochastic": 0.1},
            {"generate": "shapes", "size": 80, "captions": 2},
        ),
        "questions": (
            {"kind": "visual-questions", "looks": 1},
            {"generate": "questions", "size": 60, "questions": 4},
        ),
        "masked": (
            {"kind": "masked-words"},
            {"text": corpus(directory / "text.txt", [" ".join(words(seed, 30)) for seed in range(120)])},
        ),
    }
    task, data = tasks[kind]
    ends: dict[str, Any] = {"encoder": {"kind": "rnn"}}
    if kind == "language":
        ends = {"decoder": {"kind": "rnn"}}
    elif kind == "questions":
        ends = {"encoder": {"kind": "rnn"}, "picture": {"size": 16, "patch": 4, "layers": 1}}
    elif kind == "captions":
        ends = {"encoder": {"kind": "image", "size": 16, "patch": 4, "layers": 1}, "decoder": {"kind": "rnn"}}
    found: dict[str, Any] = {
        "task": task,
        "data": {"train": data, "held_out": 20},
        "text": {"tokenizer": {"kind": "words", "min_frequency": 1}},
        "model": {"width": 16, **ends},
        "training": dict(COURSE),
    }
    for name, value in more.items():
        found[name] = {**found.get(name, {}), **value}
    return found


TASKS = ("classes", "number", "pairs", "tags", "language", "captions", "questions", "masked")
READING = ("classes", "number", "pairs", "tags")


def task_and_model(kind: str, directory: Path, **more: Any):
    """Return a task, a small random model of it in use (no dropout), and its prepared data."""
    config = from_mapping(settings(kind, directory, **more))
    prepared = prepare(config, directory / "run")
    task = prepared.task
    torch.manual_seed(0)
    model = task.build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return task, model, prepared
