"""`regard index`: index the states of a run's training examples."""

import json
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
\b
Examples:
  regard index runs/en-de                                   up to 10,000 training examples
  regard index runs/en-de --limit 50000                     more of them: larger, slower to search
  regard inspect nearest runs/en-de "A dog runs."           then: which examples taught it this
"""


def index(
    run: Annotated[Path, typer.Argument(help="Directory of a trained run that still has its data.", metavar="RUN")],
    limit: Annotated[
        int, typer.Option("--limit", help="Index at most this many different examples, drawn at random.", min=1)
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the draw.", min=0)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
) -> None:
    """Index the encoder and decoder states of a run's training examples, for regard inspect nearest.

    It is stored in the run, replaces an earlier index when it is complete, and belongs to the present weights: after
    more training, build it again.
    """
    from dataclasses import asdict

    from regard.foundation.display import bar
    from regard.inspection.indexing import build_index
    from regard.runs.run import Run
    from regard.tasks.loaded import load_run

    opened = Run.open(run)
    loaded = load_run(opened)
    with bar() as progress:
        built = build_index(opened, loaded, limit=limit, seed=seed, progress=progress)
    header = built.header
    if as_json:
        print(json.dumps(asdict(header)))
        return
    states = " and ".join(f"{size.vectors:,} {side} states" for side, size in header.sides.items())
    megabytes = sum(4 * size.vectors * size.width for size in header.sides.values()) / 1e6
    print(
        f"{built.directory}: {states} of {header.examples:,} of {header.available:,} training examples, "
        f"{megabytes:,.1f} MB."
    )
