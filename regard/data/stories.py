"""Stories with questions, in the format of the bAbI tasks (Weston et al., 2015)."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from regard.config.text_corpora import BabiFiles
from regard.data.lines import read_lines
from regard.foundation.errors import RegardError


class Question(NamedTuple):
    """A question about a story."""

    story: tuple[str, ...]
    """The sentences of the story before the question."""
    text: str
    answer: str
    evidence: tuple[int, ...]
    """The sentences of the story that support the answer, counted from 0; empty if the file does not name them."""


def stories(corpus: BabiFiles) -> Iterator[tuple[str, str, str]]:
    """Yield (the story so far, a question, its answer) for each question of a corpus."""
    for path in corpus.babi:
        for question in questions(path):
            yield " ".join(question.story), question.text, question.answer


def questions(path: Path | str) -> Iterator[Question]:
    """Yield the questions of a file; a line numbered 1 begins a new story."""
    story: dict[str, str] = {}  # sentences by line number
    for index, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        number, _, rest = line.partition(" ")
        if not number.isdecimal():
            raise RegardError(f"{path}:{index} does not begin with a number. In bAbI's format every line has one.")
        if int(number) == 1:
            story = {}
        text, *answer = rest.split("\t")
        if not answer:
            story[number] = rest.strip()
        elif not answer[0].strip() or not story:
            missing = "answer" if story else "story before it"
            raise RegardError(f"{path}:{index} is a question without {missing}. Correct the file.")
        else:
            named = answer[1].split() if len(answer) > 1 else []
            numbers = list(story)
            evidence = tuple(numbers.index(number) for number in named if number in story)
            yield Question(tuple(story.values()), text.strip(), answer[0].strip(), evidence)
