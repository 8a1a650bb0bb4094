"""`patch`: which activation carries the difference between two sources."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from regard.foundation.errors import RegardError, UsageError
from regard.inspection import requirements
from regard.inspection.corpus_options import MOST, Corpus, Most, Reference, Seed
from regard.inspection.options import Argument, Option
from regard.inspection.registry import Analysis, InspectedRun, ReportInput

if TYPE_CHECKING:
    from regard.foundation.progress import Progress
    from regard.inspection.corpus_result import CorpusMeans
    from regard.inspection.result import Result

EXAMPLES = """
regard inspect patch runs/mine "A man runs." "A woman runs."
regard inspect patch runs/mine "A man runs." "A woman runs." -o page.html
regard inspect patch runs/sentiment "a stirring film" "a boring film" -o page.html       which state holds the label
regard inspect patch runs/mine --pairs pairs.tsv          means over many pairs, with intervals
regard inspect patch runs/mine "A man runs." "A dog runs." --target "Ein Mann läuft." --instead "Ein Hund läuft."
regard inspect patch runs/mine --corpus dev.en --reference dev.de -o page.html     one word of each source replaced
"""


def patch(
    run: InspectedRun,
    clean: Annotated[str | None, Argument("The source whose answer is to be recovered; or use --pairs.")] = None,
    corrupted: Annotated[
        str | None, Argument("The same with a word or two changed; it must have as many tokens.")
    ] = None,
    pairs: Annotated[
        Path | None, Option("Many pairs, a clean and a corrupted source with a tab between them on each line.")
    ] = None,
    target: Annotated[str | None, Option("The clean answer, instead of what the model says.", metavar="TEXT")] = None,
    instead: Annotated[
        str | None, Option("The corrupted answer, instead of what the model says.", metavar="TEXT")
    ] = None,
    inside: Annotated[
        bool, Option("Also copy states between the blocks of Transformer layers, and feed-forward hidden units.")
    ] = False,
    progress: "Progress | None" = None,
) -> "Result":
    """Copy each activation of the clean source's pass into the corrupted one's, and show how much it recovers.

    The measure is the logit difference between the two answers at the first token where they differ: 0 where the copy
    changes nothing, 1 where it brings back the whole difference. Over many pairs (--pairs), means and their intervals.
    """
    from regard.inspection.analyses.patch.compute import patch as patch_traces
    from regard.inspection.analyses.patch.pairs import patch_pairs

    if pairs is None and (clean is None or corrupted is None):
        raise UsageError(
            "Patching compares two sources. Give a clean and a corrupted one, many by --pairs FILE, or a --corpus of "
            "clean ones."
        )
    if pairs is not None and any(value is not None for value in (clean, corrupted, target, instead)):
        raise UsageError("--pairs holds all sources: leave out the others, --target and --instead.")
    if pairs is not None and inside:
        raise UsageError("--inside maps one pair of sources, and --pairs averages many. Leave one of them out.")
    rows = [] if pairs is None else _read_pairs(pairs)
    subject = run.loaded
    if clean is None or corrupted is None:
        return patch_pairs(subject, rows, progress=progress)
    traces = subject.trace(clean, target), subject.trace(corrupted, instead)
    return patch_traces(*traces, inside=inside, progress=progress)


def _read_pairs(path: Path) -> list[tuple[str, str]]:
    """Read clean and corrupted sources from the two columns of a file."""
    from regard.data.lines import read_lines

    rows = []
    for number, line in enumerate(read_lines(path), start=1):
        cells = line.split("\t")
        if len(cells) != 2:
            raise RegardError(
                f"{path}:{number} has {len(cells)} tab-separated columns. Write a clean and a corrupted source."
            )
        rows.append((cells[0], cells[1]))
    return rows


def report(given: ReportInput) -> "Result":
    """Compare the source of a report with a corrupted one."""
    from regard.inspection.analyses.patch.compute import patch as patch_traces

    if given.corrupted is None:
        raise UsageError("It compares two sources: give the other one with --corrupted TEXT.")
    return patch_traces(given.trace, given.run.loaded.trace(given.corrupted), progress=given.progress)


def patch_corpus(
    run: InspectedRun,
    corpus: Corpus,
    reference: Reference = None,
    most: Most = MOST,
    seed: Seed = 1,
    progress: "Progress | None" = None,
) -> "CorpusMeans":
    """Replace a word in each source of a corpus, and show which layers recover the output: by word class and error."""
    from regard.inspection import examples
    from regard.inspection.analyses.patch import over_corpus

    found = examples.read_examples(corpus, reference, most=most, seed=seed)
    examples.check_run(run.loaded)
    counts = examples.count_target_tokens(run.loaded, run.path)
    return over_corpus.patch_corpus(run.loaded, found, seed=seed, counts=counts, progress=progress)


ANALYSIS = Analysis(
    inspect=patch,
    inspect_corpus=patch_corpus,
    order=70,
    needs="run",
    question="which activation carries the difference?",
    works_on="every model with a source text",
    applies=requirements.source_text("Patching compares the answers"),
    report=report,
    examples=EXAMPLES,
)
