"""`prune`: which heads a model can do without."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from regard.inspection import requirements
from regard.inspection.options import Option
from regard.inspection.registry import Analysis, InspectedRun

if TYPE_CHECKING:
    from regard.inspection.analyses.prune.result import Pruning

EXAMPLES = """
regard inspect prune runs/mine --keep 8                      the best eight heads of the encoder
regard inspect prune runs/mine --keep 8 --run runs/small -o pruning.html
regard inspect prune runs/mine --lambda 0.1                  as many as are worth the price
regard inspect prune runs/mine --which source --keep 6       of the attention to the source
regard inspect prune runs/sentiment --keep 2                 of a classifier: it then answers with these
"""


def prune(
    run: InspectedRun,
    keep: Annotated[int | None, Option("How many heads are kept.")] = None,
    price: Annotated[
        float | None, Option("A constant price of each open gate, instead of a rising one.", flag="--lambda")
    ] = None,
    which: Annotated[
        str | None,
        Option(
            "Whose heads: encoder, decoder (its past), source (from the decoder), picture (from the words to it), "
            "places (inside it), all; by default the first of these that exists.",
            metavar="HEADS",
        ),
    ] = None,
    steps: Annotated[int, Option("Training steps in all, at most.")] = 1500,
    new: Annotated[
        Path | None, Option("Directory of the pruned run; by default RUN-pruned.", flag="--run", metavar="DIR")
    ] = None,
    seed: Annotated[int | None, Option("By default the run's own.", minimum=0)] = None,
) -> "Pruning":
    """Learn which heads a trained model can do without, remove them, and save what is left as a run of its own."""
    from regard.inspection.analyses.prune import compute

    return compute.prune(
        run.path,
        keep=keep,
        price=price,
        which=which,  # type: ignore[arg-type]
        steps=steps,
        directory=new,
        seed=seed,
    )


ANALYSIS = Analysis(
    inspect=prune,
    order=100,
    needs="run",
    question="which heads can go?",
    works_on="attention with projections",
    applies=requirements.heads("prune"),
    left_out="It makes another model, so it is not part of a report: regard inspect prune RUN --keep N.",
    examples=EXAMPLES,
)
