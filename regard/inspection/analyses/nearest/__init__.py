"""`nearest`: which training examples have the most similar states."""

from typing import TYPE_CHECKING, Annotated, Literal

from regard.foundation.errors import UsageError
from regard.inspection.options import Option
from regard.inspection.registry import Analysis, TracedInput

if TYPE_CHECKING:
    from regard.inspection.analyses.nearest.result import Nearest
    from regard.tasks.loaded import LoadedRun
    from regard.tasks.trace import Trace

EXAMPLES = """
regard inspect nearest runs/mine "A dog runs."                       for every word of the output
regard inspect nearest runs/mine "A dog runs." --side encoder --position 1      for one token of the source
regard inspect nearest runs/mine "A dog runs." --count 10 -o page.html

The run needs an index of its training examples, which is built once: regard index runs/mine
"""


def nearest(
    trace: "Trace",
    side: Annotated[
        Literal["encoder", "decoder"] | None,
        Option("Whose states: encoder (source tokens) or decoder (output tokens); by default the decoder, if any."),
    ] = None,
    position: Annotated[
        int | None, Option("One token of that side, counted from 0; by default every token.", minimum=0)
    ] = None,
    count: Annotated[int, Option("Training examples for each token.", minimum=1)] = 5,
    traced: "TracedInput | None" = None,
) -> "Nearest":
    """Show the training examples whose states are nearest to those of each token: what in the data taught it this.

    States are those of the last layer, compared by their cosine. A decoder state belongs to the token that it writes.
    """
    from regard.inspection.analyses.nearest import compute
    from regard.inspection.state_index import open_index

    if traced is None:
        raise UsageError("The index of a run is needed to find its examples. Use model.explain(source, 'nearest').")
    index = open_index(traced.run.path)
    return compute.nearest(trace, traced.run.loaded, index, side=side, position=position, count=count)


def suited(run: "LoadedRun") -> str | None:
    """Require a run whose training examples can be indexed."""
    from regard.inspection.last_states import unsuited

    return unsuited(run)


ANALYSIS = Analysis(
    inspect=nearest,
    order=75,
    question="which training examples taught it this?",
    works_on="every model of single texts, after `regard index`",
    applies=suited,
    examples=EXAMPLES,
)
