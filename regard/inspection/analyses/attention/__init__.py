"""`attention`: where the model looked."""

from typing import TYPE_CHECKING, Annotated

from regard.inspection import requirements
from regard.inspection.options import Option
from regard.inspection.registry import Analysis

if TYPE_CHECKING:
    from regard.inspection.analyses.attention.result import Attention
    from regard.tasks.trace import Trace

EXAMPLES = """
regard inspect attention runs/mine "A dog runs." -o page.html
regard inspect attention runs/mine "A dog runs." --target "Ein Hund läuft." -o picture.png
regard inspect attention runs/mine "A dog runs." --kind encoder --layer 1 --head 0 -o head.svg
regard inspect attention runs/mine "A dog runs." --words --json
regard inspect attention runs/captions picture.png -o page.html
regard inspect attention runs/entailment "A dog runs." "A dog sleeps." --kind between -o page.html
regard inspect attention runs/visual-questions picture.png "how many circles are there ?" -o page.html
"""


def attention(
    trace: "Trace",
    kind: Annotated[
        str | None,
        Option("What is shown first: source (the target looks at it), between, encoder, decoder.", metavar="KIND"),
    ] = None,
    layer: Annotated[int | None, Option("One layer, counted from 0; by default the mean of all.")] = None,
    head: Annotated[int | None, Option("One head of it, counted from 0; by default the mean of all.")] = None,
    words: Annotated[bool, Option("Merge tokens into words.")] = False,
) -> "Attention":
    """Show where each head of each layer looked while a source was read and a target written.

    A page (-o page.html) has every head; the table and the picture show one map, by default the mean over all layers
    and heads of the attention to the source. A model without any attention (a fixed join between recurrent or
    convolutional sides) has nothing to show here and says so.
    """
    from regard.inspection.analyses.attention import compute

    return compute.attention(trace, kind, layer, head, words=words)  # type: ignore[arg-type]


ANALYSIS = Analysis(
    inspect=attention,
    order=10,
    question="where did it look?",
    works_on="whatever has attention",
    applies=requirements.attention,
    examples=EXAMPLES,
)
