"""`regard inspect patch`: which activation carries the difference between two sources."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.inspect.output import AsJson, Output, Run, check, show

EXAMPLES = """
\b
Examples:
  regard inspect patch runs/mine "A man runs." "A woman runs."
  regard inspect patch runs/mine "A man runs." "A woman runs." -o page.html
  regard inspect patch runs/sentiment "a stirring film" "a boring film" -o page.html       which state holds the label
  regard inspect patch runs/mine --pairs pairs.tsv          means over many pairs, with intervals
  regard inspect patch runs/mine "A man runs." "A dog runs." --target "Ein Mann läuft." --instead "Ein Hund läuft."
"""

Clean = Annotated[str | None, typer.Argument(help="The source whose answer is to be recovered; or use --pairs.")]
Corrupted = Annotated[
    str | None, typer.Argument(help="The same with a word or two changed; it must have as many tokens.")
]
Pairs = Annotated[
    Path | None,
    typer.Option("--pairs", help="Many pairs, a clean and a corrupted source with a tab between them on each line."),
]
Target = Annotated[
    str | None, typer.Option("--target", help="The clean answer, instead of what the model says.", metavar="TEXT")
]
Instead = Annotated[
    str | None, typer.Option("--instead", help="The corrupted answer, instead of what the model says.", metavar="TEXT")
]


def patch(
    run: Run,
    clean: Clean = None,
    corrupted: Corrupted = None,
    pairs: Pairs = None,
    target: Target = None,
    instead: Instead = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Copy each activation of the clean source's pass into the corrupted one's, and show how much it recovers.

    The measure is the logit difference between the two answers at the first token where they part: 0 where the copy
    changes nothing, 1 where it brings back the whole difference. Over many pairs (--pairs), means and their intervals.
    """
    from regard import inspection
    from regard.data.lines import read_lines
    from regard.foundation.display import bar
    from regard.foundation.errors import RegardError, UsageError
    from regard.inspection.opening import answering, opened
    from regard.inspection.result import Result

    check(output)
    if pairs is None and (clean is None or corrupted is None):
        raise UsageError("Patching compares two sources. Give a clean and a corrupted one, or many by --pairs FILE.")
    if pairs is not None and any(one is not None for one in (clean, corrupted, target, instead)):
        raise UsageError("--pairs holds all sources: leave out the others, --target and --instead.")
    rows = []
    for number, line in enumerate(read_lines(pairs), start=1) if pairs is not None else ():
        cells = line.split("\t")
        if len(cells) != 2:
            raise RegardError(
                f"{pairs}:{number} has {len(cells)} tab-separated columns. Write a clean and a corrupted source."
            )
        rows.append((cells[0], cells[1]))
    translator = answering(opened(run), "Patching compares the answers")
    found: Result
    with bar() as progress:
        if clean is not None and corrupted is not None:
            traces = translator.trace(clean, target), translator.trace(corrupted, instead)
            found = inspection.patch(*traces, progress=progress)
        else:
            found = inspection.patch_pairs(translator, rows, progress=progress)
    show(found, output, as_json, run)
