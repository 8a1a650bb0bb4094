"""`all`: one report with every analysis that applies."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from regard.inspection.options import Argument, Option
from regard.inspection.registry import Analysis, InspectedRun

if TYPE_CHECKING:
    from regard.foundation.progress import Progress
    from regard.inspection.analyses.all.result import Report

EXAMPLES = """
regard inspect all runs/mine "A dog runs." -o report.html
regard inspect all runs/mine "A dog runs." --corrupted "A cat runs." -o report.html    patching too
regard inspect all runs/mine "A dog runs." --corpus dev.conllu -o report.html          and what needs a corpus
regard inspect all runs/sentiment "a stirring, funny film" -o report.html              a label, and what made it
regard inspect all runs/visual-questions picture.png "how many circles are there ?" -o report.html
"""


def report(
    run: InspectedRun,
    source: Annotated[str, Argument("The source text, or the name of a picture.")],
    second: Annotated[
        str | None, Argument("The second text of a pair, or the question about a picture.", metavar="[SECOND]")
    ] = None,
    target: Annotated[
        str | None, Option("A target that the model reads, instead of its own output.", metavar="TEXT")
    ] = None,
    corrupted: Annotated[str | None, Option("A second source of as many tokens, for patching.", metavar="TEXT")] = None,
    corpus: Annotated[
        Path | None, Option("CoNLL-U, for heads, probes and means over a corpus.", metavar="FILE")
    ] = None,
    progress: "Progress | None" = None,
) -> "Report":
    """Write one report of a translation, or of whatever a run answers: every analysis that applies to it.

    Attention, contributions, attribution, lens, alignment, identifiability.
    With --corrupted also patching, with --corpus also heads, probes (upos) and means over the corpus, of which
    1,000 sentences are read; that takes minutes. What does not apply to the model is left out with its reason. Pruning
    makes another model and is never part of a report.
    """
    from regard.inspection.analyses.all import compute

    text = run.text(source, second)
    return compute.report(run.path, text, target, corrupted=corrupted, corpus=corpus, progress=progress)


ANALYSIS = Analysis(
    inspect=report,
    given_name="all",
    order=900,
    needs="run",
    question="all of these that apply",
    works_on="every run",
    pictures=False,
    examples=EXAMPLES,
)
