"""`attribute`: which input made this output."""

from typing import TYPE_CHECKING, Annotated

from regard.foundation.errors import UsageError
from regard.inspection import requirements
from regard.inspection.corpus_options import MOST, Corpus, Most, Reference, Seed
from regard.inspection.options import Option
from regard.inspection.registry import Analysis, InspectedRun

if TYPE_CHECKING:
    from regard.foundation.progress import Progress
    from regard.inspection.corpus_result import CorpusMeans
    from regard.inspection.result import Result
    from regard.tasks.trace import Trace

EXAMPLES = """
regard inspect attribute runs/mine "A dog runs." -o page.html
regard inspect attribute runs/mine "A dog runs." --method integrated
regard inspect attribute runs/mine "A dog runs." --instead Katze --at 2     why the second word, and not that
regard inspect attribute runs/mine "A dog runs." --target "Eine Katze läuft." -o picture.png
regard inspect attribute runs/sentiment "a stirring, funny film" -o page.html     which words made this label
regard inspect attribute runs/mine --corpus dev.en --reference dev.de -o page.html     means by word class and error
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


def attribute_corpus(
    run: InspectedRun,
    corpus: Corpus,
    reference: Reference = None,
    methods: Annotated[
        list[str] | None, Option("As for one source text; by default occlusion.", flag="--method")
    ] = None,
    most: Most = MOST,
    seed: Seed = 1,
    progress: "Progress | None" = None,
) -> "CorpusMeans":
    """Show the source's part and its concentration over a corpus: by word class, position and error."""
    from regard.inspection import examples
    from regard.inspection.analyses.attribute import over_corpus

    found = examples.read_examples(corpus, reference, most=most, seed=seed)
    examples.check_run(run.loaded)
    counts = examples.count_target_tokens(run.loaded, run.path)
    return over_corpus.attribute_corpus(run.loaded, found, methods or ["occlusion"], counts=counts, progress=progress)


ANALYSIS = Analysis(
    inspect=attribute,
    inspect_corpus=attribute_corpus,
    order=30,
    question="which input made this output?",
    works_on="every model that reads text",
    applies=requirements.text("Words of a text are blanked one by one"),
    examples=EXAMPLES,
)
