"""Stories with questions, in the format of the bAbI tasks (Weston et al., 2015)."""

from collections.abc import Iterator

from regard.config.data import BabiFiles
from regard.data.lines import read_lines
from regard.errors import RegardError


def stories(corpus: BabiFiles) -> Iterator[tuple[str, str, str]]:
    """(the story so far, a question, its answer) for each question; a line numbered 1 begins a new story."""
    for path in corpus.babi:
        told: list[str] = []
        for place, line in enumerate(read_lines(path), start=1):
            if not line.strip():
                continue
            number, _, rest = line.partition(" ")
            if not number.isdecimal():
                raise RegardError(f"{path}:{place} begins with no number: in bAbI's format every line has one.")
            if int(number) == 1:
                told = []
            question, *answer = rest.split("\t")
            if not answer:
                told.append(rest.strip())
            elif not answer[0].strip() or not told:
                missing = "answer" if told else "story before it"
                raise RegardError(f"{path}:{place} is a question without {missing}: mend the file.")
            else:
                yield " ".join(told), question.strip(), answer[0].strip()
