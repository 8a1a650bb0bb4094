"""A small bundle of suggested replies for tests: every message has a few usual replies."""

import json
from pathlib import Path

import pytest
import torch

from regard.reply.building import build
from regard.reply.members import BuildOptions
from tests.conftest import made_once

OPTIONS = BuildOptions(least=5, steps=150)
QUESTIONS = {
    "are you coming tonight": ["Yes, I am.", "No, I can't.", "I think so.", "Yes."],
    "did you like the movie": ["I loved it.", "Not really.", "It was great!", "Yes."],
    "where are you": ["At home.", "Why?", "I am on my way."],
    "thank you for your help": ["You're welcome.", "No problem."],
    "i finished the report": ["Thanks.", "Great!", "Cool."],
}


def name(number: int) -> str:
    """Return a word of its own for a number."""
    return chr(97 + number % 26) + chr(97 + number // 26 % 26) + "o"


def conversations(path: Path, count: int = 240) -> Path:
    """Write conversations in which every message has a few usual replies."""
    rows = []
    for number in range(count):
        for message, replies in QUESTIONS.items():
            rows.append({"message": f"{message} {name(number)}", "reply": replies[number % len(replies)]})
        rows.append(
            {"message": f"tell me about {name(number)}", "reply": f"it is the long story of {name(7 * number)}"}
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def make_bundle(factory: pytest.TempPathFactory) -> Path:
    """Return the directory `bundle`, built from `chat.jsonl` next to it; all test processes share the training."""

    def make(directory: Path) -> None:
        directory.mkdir()
        torch.set_num_threads(1)
        build(conversations(directory / "chat.jsonl"), directory / "bundle", OPTIONS, report=lambda line: None)

    return made_once(factory, "reply", make) / "bundle"
