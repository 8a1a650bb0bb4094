"""`identify`: can attention, and tokens, be distinguished?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from regard.inspection import requirements
from regard.inspection.options import Option
from regard.inspection.registry import Analysis, InspectedRun

if TYPE_CHECKING:
    from regard.foundation.progress import Progress
    from regard.inspection.analyses.identify.identification_result import Identification
    from regard.inspection.analyses.identify.result import Identifiability
    from regard.tasks.trace import Trace

EXAMPLES = """
regard inspect identify runs/mine "A long sentence …" -o page.html       raw and effective attention, head by head
regard inspect identify runs/mine --corpus dev.conllu -o picture.png     by length and by layer, over 1,000 sentences
regard inspect identify runs/mine --corpus texts.txt --most 200 --json
regard inspect identify runs/sentiment --corpus reviews.txt              of any run that reads text
"""


def identify(
    trace: "Trace",
    exact: Annotated[bool, Option("Contributions by the whole Jacobian, not by projections (slow).")] = False,
    progress: "Progress | None" = None,
) -> "Identifiability":
    """Show which part of attention has an effect, and how much of each token is left in its states."""
    from regard.inspection.analyses.identify import compute

    return compute.identify(trace, exact=exact, progress=progress)


def identify_corpus(
    run: InspectedRun,
    corpus: Annotated[Path, Option("Texts, one on each line, or CoNLL-U.")],
    most: Annotated[int, Option("Read at most this many texts of the corpus.", minimum=20)] = 1000,
    progress: "Progress | None" = None,
) -> "Identification":
    """Show the same over a corpus: by length of the sentence, and by layer."""
    from regard.inspection.analyses.identify import identification
    from regard.inspection.corpus import read_texts

    return identification.identify_corpus(run.loaded, read_texts(corpus, most), progress=progress)


ANALYSIS = Analysis(
    inspect=identify,
    inspect_corpus=identify_corpus,
    order=60,
    question="can attention, and tokens, be distinguished?",
    applies=requirements.tokens_or_attention,
    works_on="every model that reads text; effective attention where there is attention",
    examples=EXAMPLES,
)
