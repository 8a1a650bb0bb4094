"""`reference`: what a reference would have cost, and where search left it."""

from typing import TYPE_CHECKING, Annotated

from regard.foundation.errors import UsageError
from regard.inspection.options import Option
from regard.inspection.registry import Analysis, TracedInput

if TYPE_CHECKING:
    from regard.inspection.analyses.reference.result import ReferenceCost
    from regard.tasks.loaded import LoadedRun
    from regard.tasks.trace import Trace

EXAMPLES = """
regard inspect reference runs/mine "A dog runs." --target "Ein Hund rennt."
regard inspect reference runs/mine "A dog runs." --target "Ein Hund rennt." --beam 1 -o page.html
"""


def reference(
    trace: "Trace",
    beam: Annotated[int | None, Option("Width of the beam; by default that of the run.", minimum=1)] = None,
    length_penalty: Annotated[
        float | None, Option("Scores are divided by length to this power; by default that of the run.")
    ] = None,
    traced: "TracedInput | None" = None,
) -> "ReferenceCost":
    """Compare the model's output with a reference (--target): their scores, token by token, and where search left it.

    A search error: the reference scores higher, but search did not find it. A model error: the model prefers its own
    output (Stahlberg and Byrne, 2019).
    """
    from regard.inspection.analyses.reference import compute

    if traced is None:
        raise UsageError("Search needs the run. Use model.explain(source, 'reference', target=reference).")
    if traced.target is None:
        raise UsageError("There is no reference to compare the output with. Give one as the target (--target TEXT).")
    return compute.reference(trace, traced.run.loaded, traced.source, beam=beam, length_penalty=length_penalty)


def searched(run: "LoadedRun") -> str | None:
    """Require a run that searches for a text, given a source."""
    if run.writes_text and run.config.task.input_kind().encoder:
        return None
    return (
        "The output for a source is compared with a reference text, and this run does not generate text from a source "
        f"({run.config.task.arrow})."
    )


ANALYSIS = Analysis(
    inspect=reference,
    order=77,
    question="what would the reference have cost, and where did search leave it?",
    works_on="every model that generates text from a source",
    applies=searched,
    examples=EXAMPLES,
)
