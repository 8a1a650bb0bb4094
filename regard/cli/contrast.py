"""`regard contrast`: does a run find the right target likelier than a wrong one?"""

import json
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
\b
Examples:
  regard contrast runs/mine suite.tsv
  regard contrast runs/mine suites/*.tsv.gz --per-token --json
  regard contrast runs/mine suite.tsv --control     likings for short or common targets taken out

\b
A suite is tab-separated (source, correct, wrong, more wrong ones…; or a header line with source, correct, wrong,
category) or JSON lines with these fields.
"""


def contrast(
    run: Annotated[Path, typer.Argument(help="Directory of a trained run.")],
    suites: Annotated[list[Path], typer.Argument(help="Files of items; a file's name is a category.")],
    per_token: Annotated[
        bool, typer.Option("--per-token", help="Compare means per token, so that length does not count.")
    ] = False,
    control: Annotated[
        bool, typer.Option("--control", help="Also with sources of other items: what does the right source add?")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="TSV of every item with its margin, the worst first.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Score right and wrong targets, and print how often the right one wins, by category."""
    import regard
    from regard import durable
    from regard.cli.places import check_places
    from regard.evaluation.contrast import by_model, read_suite
    from regard.evaluation.contrast import contrast as ask
    from regard.evaluation.display import bar

    check_places(output)
    items = [item for suite in suites for item in read_suite(suite)]
    translator = regard.load(run)
    with bar() as progress:
        found = ask(items, by_model(translator, per_token=per_token, progress=progress), control=control)
    if output is not None:
        rows = sorted(zip(found.margins, found.items, strict=True), key=lambda row: row[0])
        lines = ["\t".join(("margin", "category", "source", "correct", "wrong"))]
        lines += [f"{m:.4f}\t{one.category}\t{one.source}\t{one.correct}\t" + "\t".join(one.wrong) for m, one in rows]
        durable.write(output, "\n".join(lines) + "\n")
    print(json.dumps(found.facts(), indent=2, ensure_ascii=False) if as_json else found)
