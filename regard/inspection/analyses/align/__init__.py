"""`align`: which words belong together."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from regard.foundation.errors import UsageError
from regard.inspection import requirements
from regard.inspection.options import Option
from regard.inspection.registry import Analysis, InspectedRun, ReportInput

if TYPE_CHECKING:
    from regard.foundation.progress import Progress
    from regard.inspection.analyses.align.result import Alignments

EXAMPLES = """
regard inspect align runs/en-de --source test.en --target test.de > links.txt
regard inspect align runs/en-de --source test.en --target test.de --reverse runs/de-en -o page.html
regard inspect align runs/en-fr --source dev.en --target dev.fr --gold dev.wa --method contributions

The links of a pair are a line: 0-0 1-2, words between white space counted from 0, the source's first. Gold is a file
of such lines (0?1 or 0p1 for possible links), or of lines "sentence source target S|P", all counted from 1.
"""


def align(
    run: InspectedRun,
    source: Annotated[Path, Option("Source texts, one on each line.", metavar="FILE")],
    target: Annotated[Path, Option("Their translations, as many lines.", metavar="FILE")],
    gold: Annotated[Path | None, Option("Links made by people.", metavar="FILE")] = None,
    skip_bad: Annotated[bool, Option("Skip links of --gold that cannot be read, and say how many.")] = False,
    reverse: Annotated[Path | None, Option("A run that translates targets into sources.", metavar="RUN")] = None,
    method: Annotated[
        str, Option("attention, or contributions: each source token's share of a layer's state.")
    ] = "attention",
    layer: Annotated[int | None, Option("One decoder layer, counted from 0; by default the best.")] = None,
    head: Annotated[
        int | None, Option("One head, counted from 0, of that or the best layer; by default their mean.")
    ] = None,
    reading: Annotated[
        str | None,
        Option(
            "reads: the row that reads a word belongs to it; writes: the row that writes it. By default the better one."
        ),
    ] = None,
    combine: Annotated[
        str | None,
        Option(
            "none, intersection, union or grow-diag of two directions; by default grow-diag with --reverse, else none.",
            metavar="HOW",
        ),
    ] = None,
    progress: "Progress | None" = None,
) -> "Alignments":
    """Align the words of texts and their translations, and measure the error rate against gold.

    Which layer and row is read is chosen once, on the run's validation pairs, and stored in the run.

    Links go to standard output, how they were found (and how well) to standard error.
    """
    from regard.data.lines import read_lines
    from regard.inspection.analyses.align import compute

    if skip_bad and gold is None:
        raise UsageError("--skip-bad is about the links of a gold file. Name it with --gold FILE.")
    texts = [list(read_lines(path)) for path in (source, target)]
    other = None if reverse is None else InspectedRun(reverse, ANALYSIS)
    return compute.align(
        run.loaded,
        *texts,
        run=run.path,
        gold=gold,
        skip_bad=skip_bad,
        reverse=None if other is None else other.loaded,
        reverse_run=reverse,
        method=method,  # type: ignore[arg-type]
        layer=layer,
        head=head,
        reading=reading,  # type: ignore[arg-type]
        combining=combine,  # type: ignore[arg-type]
        progress=progress,
    )


def report(given: ReportInput) -> "Alignments":
    """Align the words of the one translation that a report is about."""
    from regard.inspection.analyses.align import compute

    run = given.run
    return compute.align(run.loaded, [given.source], [given.target], run=run.path, progress=given.progress)


ANALYSIS = Analysis(
    inspect=align,
    order=50,
    needs="run",
    question="which words belong together?",
    works_on="whatever looks at its source",
    applies=requirements.words,
    report=report,
    examples=EXAMPLES,
)
