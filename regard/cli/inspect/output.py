"""Where the result of an analysis goes: to the terminal, or into a file whose ending says in which form."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.inspection.result import Result

Run = Annotated[Path, typer.Argument(help="Directory of a trained run.")]
Source = Annotated[str, typer.Argument(help="The source text, or the name of a picture.")]
Second = Annotated[
    str | None, typer.Argument(help="The second text of a pair, or the question about a picture.", metavar="[SECOND]")
]
Target = Annotated[
    str | None, typer.Option("--target", help="A target to be read, instead of what the model says.", metavar="TEXT")
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write a page (.html), picture (.png, .svg, .pdf), .json or .txt."),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


def joined(source: str, second: str | None) -> str:
    """A source of one text, or of two."""
    return source if second is None else f"{source}\t{second}"


def check(output: Path | None) -> None:
    """Refuse a file that cannot be written before the work begins, not behind it."""
    from regard.cli.places import check_places
    from regard.foundation.errors import UsageError
    from regard.inspection.result import ENDINGS

    if output is None:
        return
    if output.suffix.lower().removeprefix(".") not in ENDINGS:
        raise UsageError(f"{output} has no ending that says what to write: use one of .{', .'.join(ENDINGS)}.")
    check_places(output)


def show(result: "Result", output: Path | None, as_json: bool, run: Path | None = None) -> None:
    """Print a result, or write it; its page names the run."""
    if run is not None:
        result = result.named(run)
    if output is not None:
        result.save(output)
    if as_json:
        print(json.dumps(result.to_json(), ensure_ascii=False))
    elif output is None:
        print(result)
    else:
        print(f"{output}: {result.title[0].lower()}{result.title[1:].rstrip('?.')}.")
