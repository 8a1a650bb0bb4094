"""`heads`: what each head does."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from regard.inspection import requirements
from regard.inspection.options import Option
from regard.inspection.registry import Analysis, InspectedRun, ReportInput

if TYPE_CHECKING:
    from regard.foundation.progress import Progress
    from regard.inspection.analyses.heads.result import Roles

EXAMPLES = """
regard inspect heads runs/mine --corpus dev.conllu -o heads.html     roles, with dependency relations
regard inspect heads runs/mine --corpus texts.en -o heads.png        plain text, without them
regard inspect heads runs/mine --score                               and what each head is worth in BLEU
regard inspect heads runs/sentiment --score                          … or in accuracy, or the run's own score
"""


def heads(
    run: InspectedRun,
    corpus: Annotated[
        Path | None, Option("CoNLL-U (.conllu), or plain text; by default the run's validation examples.")
    ] = None,
    pairs: Annotated[int, Option("Validation examples by which importance is measured.", minimum=1)] = 200,
    most: Annotated[int | None, Option("Read at most this many sentences.", flag="--sentences", minimum=1)] = None,
    score: Annotated[
        bool, Option("Also answer them once without each head: how much of the run's score is lost.")
    ] = False,
    progress: "Progress | None" = None,
) -> "Roles":
    """Describe every head: how sure it is, where it looks, which relations it follows, how much it is needed."""
    from regard.inspection.analyses.heads import compute

    return compute.heads(run.path, corpus, pairs=pairs, score=score, most=most, progress=progress)


def report(given: ReportInput) -> "Roles":
    """Describe the heads over the corpus of a report, or of a run that reads no text over its validation examples."""
    corpus = None if requirements.corpus(given.run.loaded) else given.required_corpus()
    return heads(given.run, corpus, most=given.sentences, progress=given.progress)


ANALYSIS = Analysis(
    inspect=heads,
    order=80,
    needs="run",
    question="what does each head do?",
    works_on="whatever has attention",
    applies=requirements.heads("describe"),
    report=report,
    examples=EXAMPLES,
)
