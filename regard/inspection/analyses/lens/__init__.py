"""`lens`: what each layer would have predicted."""

from typing import TYPE_CHECKING, Annotated

from regard.inspection.corpus_options import MOST, Corpus, Most, Reference, Seed
from regard.inspection.options import Option
from regard.inspection.registry import Analysis, InspectedRun

if TYPE_CHECKING:
    from regard.foundation.progress import Progress
    from regard.inspection.analyses.lens.result import Lens
    from regard.inspection.corpus_result import CorpusMeans
    from regard.tasks.trace import Trace

EXAMPLES = """
regard inspect lens runs/mine "A dog runs."
regard inspect lens runs/mine "A dog runs." --target "Ein Hund läuft." -o page.html
regard inspect lens runs/mine "A dog runs." --inside                after each attention too
regard inspect lens runs/tagging "They book a flight"               from which layer on each tag is settled
regard inspect lens runs/mine --corpus dev.en --reference dev.de -o page.html     means by word class and error
"""


Inside = Annotated[bool, Option("Also read the states between the blocks of each Transformer layer.")]


def lens(
    trace: "Trace",
    inside: Inside = False,
) -> "Lens":
    """Show what each layer would have predicted: the rank and probability of each word (or label), and the layer's own.

    For a model with a decoder these are the layers of the decoder, for other models those of the encoder. Of a model
    that copies, it is what would have been generated.
    """
    from regard.inspection.analyses.lens import compute

    return compute.lens(trace, inside=inside)


def lens_corpus(
    run: InspectedRun,
    corpus: Corpus,
    reference: Reference = None,
    inside: Inside = False,
    most: Most = MOST,
    seed: Seed = 1,
    progress: "Progress | None" = None,
) -> "CorpusMeans":
    """Show over a corpus at which layer words are decided: by word class, position and error."""
    from regard.inspection import examples
    from regard.inspection.analyses.lens import over_corpus

    found = examples.read_examples(corpus, reference, most=most, seed=seed)
    examples.check_run(run.loaded)
    counts = examples.count_target_tokens(run.loaded, run.path)
    return over_corpus.lens_corpus(run.loaded, found, inside=inside, counts=counts, progress=progress)


ANALYSIS = Analysis(
    inspect=lens,
    inspect_corpus=lens_corpus,
    order=40,
    question="what would each layer have predicted?",
    works_on="every decoder, and encoders whose states give the answer",
    examples=EXAMPLES,
)
