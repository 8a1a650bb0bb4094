"""`regard inspect`: look inside a trained model, one file per analysis.

Each analysis prints a table; `-o` writes a page (.html), a picture (.png, .svg, .pdf), plain data (.json) or the table
(.txt) instead, by the ending of the name.
"""

import typer

from regard.cli.inspect import (
    align,
    attention,
    attribute,
    contributions,
    custom,
    heads,
    identify,
    lens,
    patch,
    probe,
    prune,
    report,
)

EXAMPLES = """
\b
Examples:
  regard inspect attention runs/mine "A dog runs." -o page.html     where it looked, as an interactive page
  regard inspect attention runs/mine "A dog runs." -o picture.png   the alignment picture
  regard inspect heads runs/mine --corpus dev.conllu -o heads.html  what each head does
  regard inspect all runs/mine "A dog runs." -o report.html         everything that applies, in one report
"""

app = typer.Typer(
    help="Look inside a trained model: what it attends to, what its parts do, what made it say what it said.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXAMPLES,
)

# The analyses, in the order in which help lists them.
app.command(epilog=attention.EXAMPLES)(attention.attention)
app.command(epilog=heads.EXAMPLES)(heads.heads)
app.command(epilog=prune.EXAMPLES)(prune.prune)
app.command(epilog=probe.EXAMPLES)(probe.probe)
app.command(epilog=identify.EXAMPLES)(identify.identify)
app.command(epilog=attribute.EXAMPLES)(attribute.attribute)
app.command(epilog=contributions.EXAMPLES)(contributions.contributions)
app.command(epilog=lens.EXAMPLES)(lens.lens)
app.command(epilog=patch.EXAMPLES)(patch.patch)
app.command(epilog=align.EXAMPLES)(align.align)
app.command(epilog=custom.EXAMPLES)(custom.custom)
app.command("all", epilog=report.EXAMPLES)(report.report)
