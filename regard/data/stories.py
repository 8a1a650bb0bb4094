"""Stories with questions, in the format of the bAbI tasks (Weston et al., 2015)."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from regard.config.data import BabiFiles
from regard.data.lines import read_lines
from regard.foundation.errors import RegardError


class Question(NamedTuple):
    """A question about a story."""

    story: tuple[str, ...]
    """The sentences told so far."""
    text: str
    answer: str
    evidence: tuple[int, ...]
    """Which sentences of the story the answer follows from, counted from 0; empty where the file does not say."""


def stories(corpus: BabiFiles) -> Iterator[tuple[str, str, str]]:
    """(the story so far, a question, its answer) for each question of a corpus."""
    for path in corpus.babi:
        for one in questions(path):
            yield " ".join(one.story), one.text, one.answer


def questions(path: Path | str) -> Iterator[Question]:
    """The questions of a file; a line numbered 1 begins a new story."""
    told: dict[str, str] = {}  # by the number of the line
    for place, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        number, _, rest = line.partition(" ")
        if not number.isdecimal():
            raise RegardError(f"{path}:{place} begins with no number: in bAbI's format every line has one.")
        if int(number) == 1:
            told = {}
        text, *answer = rest.split("\t")
        if not answer:
            told[number] = rest.strip()
        elif not answer[0].strip() or not told:
            missing = "answer" if told else "story before it"
            raise RegardError(f"{path}:{place} is a question without {missing}: mend the file.")
        else:
            named = answer[1].split() if len(answer) > 1 else []
            numbers = list(told)
            evidence = tuple(numbers.index(one) for one in named if one in told)
            yield Question(tuple(told.values()), text.strip(), answer[0].strip(), evidence)
