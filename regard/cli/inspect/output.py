"""Where the result of an analysis goes: to the terminal, or into a file whose ending says in which form."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.inspection.result import Result

Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write a page (.html), picture (.png, .svg, .pdf), .json or .txt."),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]


def check(output: Path | None, *, pictures: bool = True) -> None:
    """Refuse a file that cannot be written before the work begins."""
    from regard.cli.places import check_places
    from regard.foundation.errors import UsageError
    from regard.inspection.result import ENDINGS, PICTURES

    if output is None:
        return
    ending = output.suffix.lower().removeprefix(".")
    if ending not in ENDINGS:
        raise UsageError(f"{output} has no ending that says what to write: use one of .{', .'.join(ENDINGS)}.")
    if ending in PICTURES and not pictures:
        raise UsageError(f"A report is no picture: write {output.with_suffix('.html')}, or draw single analyses.")
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
