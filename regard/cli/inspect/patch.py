"""`regard inspect patch`: which activation carries the difference between two sources."""

from typing import Annotated

import typer

from regard.cli.inspect.output import AsJson, Output, Run, check, show

EXAMPLES = """
\b
Examples:
  regard inspect patch runs/mine "A man runs." "A woman runs."
  regard inspect patch runs/mine "A man runs." "A woman runs." -o page.html
  regard inspect patch runs/sentiment "a stirring film" "a boring film" -o page.html       which state holds the label
  regard inspect patch runs/mine "A man runs." "A dog runs." --target "Ein Mann läuft." --instead "Ein Hund läuft."
"""

Clean = Annotated[str, typer.Argument(help="The source whose answer is to be recovered.")]
Corrupted = Annotated[str, typer.Argument(help="The same with a word or two changed; it must have as many tokens.")]
Target = Annotated[
    str | None, typer.Option("--target", help="The clean answer, instead of what the model says.", metavar="TEXT")
]
Instead = Annotated[
    str | None, typer.Option("--instead", help="The corrupted answer, instead of what the model says.", metavar="TEXT")
]


def patch(
    run: Run,
    clean: Clean,
    corrupted: Corrupted,
    target: Target = None,
    instead: Instead = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Copy each activation of the clean source's pass into the corrupted one's, and show how much it recovers.

    The measure is the logit difference between the two answers at the first token where they part: 0 where the copy
    changes nothing, 1 where it brings back the whole difference.
    """
    from regard import inspection
    from regard.evaluation.display import bar
    from regard.inspection.opening import answering, opened

    check(output)
    translator = answering(opened(run), "Patching compares the answers")
    traces = translator.trace(clean, target), translator.trace(corrupted, instead)
    with bar() as progress:
        found = inspection.patch(*traces, progress=progress)
    show(found, output, as_json)
