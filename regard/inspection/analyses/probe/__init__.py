"""`probe`: what each layer knows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from regard.inspection import requirements
from regard.inspection.options import Option
from regard.inspection.registry import Analysis, InspectedRun, ReportInput

if TYPE_CHECKING:
    from regard.foundation.progress import Progress
    from regard.inspection.analyses.probe.result import Probing

EXAMPLES = """
regard inspect probe runs/mine --corpus train.conllu --property upos -o probe.html
regard inspect probe runs/mine --corpus train.conllu --dev dev.conllu --property Number
regard inspect probe runs/mine --corpus words.tsv --property 2 --json
regard inspect probe runs/mine --corpus target.conllu --sources source.txt      the decoder instead of the encoder

A property is upos, xpos, deprel or a morphological feature (Number, Tense, …) of a CoNLL-U file, or the number of a
column of a .tsv file with a word and its labels on each line and a blank line between sentences.
"""


def probe(
    run: InspectedRun,
    corpus: Annotated[Path, Option("Annotated sentences: CoNLL-U, or a .tsv table.")],
    wanted: Annotated[str, Option("What to ask for.", flag="--property", metavar="NAME")] = "upos",
    dev: Annotated[Path | None, Option("Measure on this, not on a tenth of the corpus.")] = None,
    sources: Annotated[Path | None, Option("Source lines of the corpus: probe the decoder.")] = None,
    most: Annotated[int | None, Option("Use at most this many sentences.", minimum=1)] = None,
    word: Annotated[Literal["mean", "last"], Option("A word of several tokens is their mean, or the last.")] = "mean",
    seed: Annotated[int, Option("Seed of the split, the control task and the untrained model.")] = 1,
    progress: "Progress | None" = None,
) -> "Probing":
    """Train small classifiers on the frozen states of every layer, and on everything they have to be compared with."""
    from regard.inspection.analyses.probe import compute

    return compute.probe(
        run.loaded, corpus, wanted, dev=dev, sources=sources, most=most, pool=word, seed=seed, progress=progress
    )


def report(given: ReportInput) -> "Probing":
    """Probe for parts of speech in the corpus of a report."""
    return probe(given.run, given.required_corpus(), most=given.sentences, progress=given.progress)


ANALYSIS = Analysis(
    inspect=probe,
    order=90,
    needs="run",
    question="what does each layer know?",
    works_on="every model that reads text",
    applies=requirements.text("Probes measure what layers know about the words of a text"),
    report=report,
    examples=EXAMPLES,
)
