"""`attribute`: which input made this output."""

from typing import TYPE_CHECKING, Annotated

from regard.foundation.errors import UsageError
from regard.inspection import requirements
from regard.inspection.options import Option
from regard.inspection.registry import Analysis

if TYPE_CHECKING:
    from regard.foundation.progress import Progress
    from regard.inspection.result import Result
    from regard.tasks.trace import Trace

EXAMPLES = """
regard inspect attribute runs/mine "A dog runs." -o page.html
regard inspect attribute runs/mine "A dog runs." --method integrated
regard inspect attribute runs/mine "A dog runs." --instead Katze --at 2     why the second word, and not that
regard inspect attribute runs/mine "A dog runs." --target "Eine Katze läuft." -o picture.png
regard inspect attribute runs/sentiment "a stirring, funny film" -o page.html     which words made this label
"""


def attribute(
    trace: "Trace",
    methods: Annotated[
        list[str] | None,
        Option(
            "occlusion, integrated or gradient; repeat it for several. By default all, in a table occlusion.",
            flag="--method",
        ),
    ] = None,
    instead: Annotated[
        str | None, Option("Why it, and not this word? By default the runner-up.", metavar="WORD")
    ] = None,
    at: Annotated[
        int | None, Option("Which word of the output --instead replaces; needed where there are several.", minimum=1)
    ] = None,
    progress: "Progress | None" = None,
    brief: bool = False,
) -> "Result":
    """Show which words, of the source and of the output so far, made each word likely; for every kind of model."""
    from regard.inspection.analyses.attribute import compute
    from regard.inspection.analyses.attribute.methods import METHODS

    if at is not None and instead is None:
        raise UsageError("--at names the word that --instead replaces. Give --instead WORD as well.")
    usual = list(METHODS)[:1] if brief else list(METHODS)  # a table shows the first alone
    chosen = list(dict.fromkeys(methods or usual))
    return compute.attribute(trace, chosen, instead=instead, at=at, progress=progress)


ANALYSIS = Analysis(
    inspect=attribute,
    order=30,
    question="which input made this output?",
    works_on="every model that reads text",
    applies=requirements.text("Words of a text are blanked one by one"),
    examples=EXAMPLES,
)
