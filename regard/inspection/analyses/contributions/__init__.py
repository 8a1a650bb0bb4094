"""`contributions`: how much of each word came from the source, and how much from the words before it."""

from typing import TYPE_CHECKING

from regard.inspection import requirements
from regard.inspection.corpus_options import MOST, Corpus, Most, Reference, Seed
from regard.inspection.registry import Analysis, InspectedRun

if TYPE_CHECKING:
    from regard.foundation.progress import Progress
    from regard.inspection.analyses.contributions.result import Contributions
    from regard.inspection.corpus_result import CorpusMeans
    from regard.tasks.trace import Trace

EXAMPLES = """
regard inspect contributions runs/mine "A dog runs." -o page.html
regard inspect contributions runs/mine "A dog runs." --target "Ein Hund schläft."
regard inspect contributions runs/mine --corpus dev.en --reference dev.de -o page.html     means by class and error
"""


def contributions(trace: "Trace") -> "Contributions":
    """Show how much of each word came from the source, and how much from the words before; for Transformer decoders.

    Each word also has its gain: how much likelier it is with its source than with a blank one. Words whose gain is
    below zero are marked, because the model may have invented them.
    """
    from regard.inspection.analyses.contributions import compute

    return compute.contributions(trace)


def contributions_corpus(
    run: InspectedRun,
    corpus: Corpus,
    reference: Reference = None,
    most: Most = MOST,
    seed: Seed = 1,
    progress: "Progress | None" = None,
) -> "CorpusMeans":
    """Show the source's share over a corpus: by word class, position and error."""
    from regard.inspection import examples
    from regard.inspection.analyses.contributions import over_corpus

    found = examples.read_examples(corpus, reference, most=most, seed=seed)
    counts = examples.count_target_tokens(run.loaded, run.path)
    return over_corpus.contributions_corpus(run.loaded, found, counts=counts, progress=progress)


ANALYSIS = Analysis(
    inspect=contributions,
    inspect_corpus=contributions_corpus,
    order=20,
    needs="translation",
    question="how much came from the source, how much from the prefix?",
    works_on="Transformers",
    applies=requirements.translation("Contributions compare"),
    examples=EXAMPLES,
)
