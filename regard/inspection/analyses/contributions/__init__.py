"""`contributions`: how much of each word came from the source, and how much from the words before it."""

from typing import TYPE_CHECKING

from regard.inspection import requirements
from regard.inspection.registry import Analysis

if TYPE_CHECKING:
    from regard.inspection.analyses.contributions.result import Contributions
    from regard.tasks.trace import Trace

EXAMPLES = """
regard inspect contributions runs/mine "A dog runs." -o page.html
regard inspect contributions runs/mine "A dog runs." --target "Ein Hund schläft."
"""


def contributions(trace: "Trace") -> "Contributions":
    """Show how much of each word came from the source, and how much from the words before; for Transformer decoders.

    Each word also has its gain: how much likelier it is with its source than with a blank one. Words whose gain is
    below zero are marked, because the model may have invented them.
    """
    from regard.inspection.analyses.contributions import compute

    return compute.contributions(trace)


ANALYSIS = Analysis(
    inspect=contributions,
    order=20,
    needs="translation",
    question="how much came from the source, how much from the prefix?",
    works_on="Transformers",
    applies=requirements.translation("Contributions compare"),
    examples=EXAMPLES,
)
