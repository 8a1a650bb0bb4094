"""`lens`: what each layer would have said."""

from typing import TYPE_CHECKING, Annotated

from regard.inspection.options import Option
from regard.inspection.registry import Analysis

if TYPE_CHECKING:
    from regard.inspection.analyses.lens.result import Lens
    from regard.tasks.trace import Trace

EXAMPLES = """
regard inspect lens runs/mine "A dog runs."
regard inspect lens runs/mine "A dog runs." --target "Ein Hund läuft." -o page.html
regard inspect lens runs/mine "A dog runs." --inside                after each attention too
regard inspect lens runs/tagging "They book a flight"               from which layer on each tag is settled
"""


def lens(
    trace: "Trace",
    inside: Annotated[bool, Option("Also read the states between the blocks of each Transformer layer.")] = False,
) -> "Lens":
    """Show what each layer would have said: the rank and probability of each word (or label), and the layer's own.

    For a model with a decoder these are the layers of the decoder, for other models those of the encoder.
    """
    from regard.inspection.analyses.lens import compute

    return compute.lens(trace, inside=inside)


ANALYSIS = Analysis(
    inspect=lens,
    order=40,
    question="what would each layer have said?",
    works_on="every decoder, and encoders whose states give the answer",
    examples=EXAMPLES,
)
