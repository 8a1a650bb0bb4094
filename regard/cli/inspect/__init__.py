"""`regard inspect`: look inside a trained model.

The commands are generated from the registry of analyses (`regard.inspection.registry`). Each prints a table; with `-o`
it writes a page (.html), a picture (.png, .svg, .pdf), plain data (.json) or the table (.txt), by the ending.
"""

import typer

from regard.cli.inspect.commands import AnalysisGroup

EXAMPLES = """
\b
Examples:
  regard inspect attention runs/mine "A dog runs." -o page.html     where it looked, as an interactive page
  regard inspect attention runs/mine "A dog runs." -o picture.png   the alignment picture
  regard inspect heads runs/mine --corpus dev.conllu -o heads.html  what each head does
  regard inspect all runs/mine "A dog runs." -o report.html         everything that applies, in one report
"""

app = typer.Typer(
    cls=AnalysisGroup,
    help="Look inside a trained model: what it attends to, what its parts do, what explains its output.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXAMPLES,
)


@app.callback()
def _inspect() -> None:
    """Commands are added by `AnalysisGroup`."""
