"""`regard inspect attribute`: which input made this output."""

from typing import Annotated

import typer

from regard.cli.inspect.output import AsJson, Output, Run, Second, Source, Target, check, joined, show

EXAMPLES = """
\b
Examples:
  regard inspect attribute runs/mine "A dog runs." -o page.html
  regard inspect attribute runs/mine "A dog runs." --method integrated
  regard inspect attribute runs/mine "A dog runs." --instead Katze --at 2     why the second word, and not that
  regard inspect attribute runs/mine "A dog runs." --target "Eine Katze läuft." -o picture.png
  regard inspect attribute runs/sentiment "a stirring, funny film" -o page.html     which words made this label
"""


def attribute(
    run: Run,
    source: Source,
    second: Second = None,
    target: Target = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            help="occlusion, integrated or gradient; repeat it for several. By default all, in a table occlusion.",
        ),
    ] = None,
    instead: Annotated[
        str | None,
        typer.Option("--instead", help="Why it, and not this word? By default the runner-up.", metavar="WORD"),
    ] = None,
    at: Annotated[
        int | None,
        typer.Option(
            "--at", min=1, help="Which word of the output --instead replaces; needed where there are several."
        ),
    ] = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show which words, of the source and of what was said before, made each word likely; for every kind of model."""
    from typing import cast

    from regard.foundation.display import bar
    from regard.foundation.errors import UsageError
    from regard.inspection.analyses.attribute.compute import METHODS, Method, check_methods
    from regard.inspection.analyses.attribute.reasons import explain_words
    from regard.inspection.opening import opened, reading_text

    check(output)
    if at is not None and instead is None:
        raise UsageError("--at names the word that --instead replaces. Give --instead WORD as well.")
    usual = list(METHODS) if output or as_json else [next(iter(METHODS))]  # a table shows the first alone
    methods = cast(list[Method], list(dict.fromkeys(method or usual)))
    check_methods(methods)
    trace = reading_text(opened(run), "Words of a text are blanked in turn").trace(joined(source, second), target)
    with bar() as progress:
        found = explain_words(trace, methods, instead=instead, at=at, progress=progress)
    show(found, output, as_json)
