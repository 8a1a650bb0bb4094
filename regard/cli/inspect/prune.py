"""`regard inspect prune`: switch heads off by learned gates, and remove them."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.inspect.output import AsJson, Output, Run, check, show

EXAMPLES = """
\b
Examples:
  regard inspect prune runs/mine --keep 8                      the best eight heads of the encoder
  regard inspect prune runs/mine --keep 8 --run runs/small -o pruning.html
  regard inspect prune runs/mine --lambda 0.1                  as many as are worth the price
  regard inspect prune runs/mine --which source --keep 6       of the attention to the source
  regard inspect prune runs/sentiment --keep 2                 of a classifier: what stays is what it answers by
"""


def prune(
    run: Run,
    keep: Annotated[int | None, typer.Option("--keep", help="How many heads shall stay.")] = None,
    price: Annotated[
        float | None, typer.Option("--lambda", help="A constant price of each open gate, instead of a rising one.")
    ] = None,
    which: Annotated[
        str | None,
        typer.Option(
            "--which",
            help="Whose heads: encoder, decoder (its past), source (from the decoder), picture (from the words to it), "
            "places (inside it), all; by default the first of these that there is.",
            metavar="HEADS",
        ),
    ] = None,
    steps: Annotated[int, typer.Option("--steps", help="Training steps in all, at most.")] = 1500,
    new: Annotated[
        Path | None, typer.Option("--run", help="Directory of the pruned run; by default RUN-pruned.", metavar="DIR")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="By default the run's own.", min=0)] = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Learn which heads a trained model can do without, remove them, and save what is left as a run of its own."""
    from typing import cast

    from regard import inspection
    from regard.inspection.analyses.prune.compute import Which

    check(output)
    found = inspection.prune(
        run, keep=keep, price=price, which=cast(Which | None, which), steps=steps, directory=new, seed=seed
    )
    show(found, output, as_json)
