"""`regard inspect custom`: an analysis that an extension has added."""

from typing import Annotated

import typer

from regard.cli.inspect.output import AsJson, Output, Run, Second, Source, Target, check, joined, show

EXAMPLES = """
\b
Examples:
  regard --plugin my_parts inspect custom surprise runs/mine "A dog runs."
  regard --plugin my_parts inspect custom surprise runs/mine "A dog runs." -o page.html
"""


def custom(
    name: Annotated[str, typer.Argument(help="The name of the analysis.")],
    run: Run,
    source: Source,
    second: Second = None,
    target: Target = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Run an analysis of one input that an extension has added (see docs/extending.md)."""
    from regard.foundation.errors import RegardError, UsageError
    from regard.inspection import ANALYSES
    from regard.inspection.opening import opened
    from regard.inspection.result import Result

    check(output)
    if name not in ANALYSES:
        raise UsageError(f"There is no analysis {name!r}: there are {', '.join(ANALYSES)}. Load one with --plugin.")
    found = ANALYSES[name](opened(run).trace(joined(source, second), target))
    if not isinstance(found, Result):
        raise RegardError(
            f"The analysis {name} gives {type(found).__name__}, but it must give a regard.inspection.result.Result. "
            "Correct the extension."
        )
    show(found, output, as_json, run)
