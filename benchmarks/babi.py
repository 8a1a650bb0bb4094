"""Does a model that answers questions look where the answer stands? bAbI says which sentences it follows from.

    python benchmarks/babi.py                                             runs/answering, on its test questions
    python benchmarks/babi.py runs/mine $REGARD_DATA/babi/en/qa2_two-supporting-facts_test.txt.gz

For each file: exact match and F1 of the answers; how much of the attention falls on the supporting sentences while the
answer's first word is written (mean over layers and heads), against chance, which is their share of the story's tokens;
and how often the token looked at most stands in one of them.
"""

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from regard.data.stories import Question, questions
from regard.foundation.display import bar, columns
from regard.inspection import attention
from regard.metrics.scoring import score_text
from regard.tasks.loaded import LoadedRun, load_run
from regard.text.joined import TAB


@dataclass(frozen=True)
class Lookup:
    """Where a model looked while it began an answer."""

    said: str
    attended: float
    """Share of the attention that falls on the evidence."""
    chance: float
    """Share of the story's tokens that stand in the evidence."""
    found: bool
    """Whether the token looked at most stands there."""


def look_up(translator: LoadedRun, question: Question) -> Lookup:
    """Let a model answer a question whose evidence is known."""
    source = f"{' '.join(question.story)}{TAB}{question.text}"
    trace = translator.trace(source)
    weights = attention(trace).mean[0]  # S: while the first word was written
    starts = list(accumulate((len(sentence) + 1 for sentence in question.story), initial=0))
    spans = [range(starts[place], starts[place + 1]) for place in question.evidence]
    offsets = translator.source_tokenizer.encode(source).offsets
    inside = [place for place, (start, _) in enumerate(offsets) if any(start in span for span in spans)]
    told = sum(start < starts[-1] for start, _ in offsets)
    return Lookup(
        said=translator.target_tokenizer.decode(trace.target.ids),
        attended=float(weights[inside].sum()),
        chance=len(inside) / told,
        found=int(weights.argmax()) in inside,
    )


def measure(name: str, asked: Sequence[Question], found: Sequence[Lookup]) -> list[str]:
    """A row of the table."""
    scores = score_text([one.said for one in found], [one.answer for one in asked], ("exact", "f1"))
    shares = [
        statistics.fmean(values) for values in zip(*((x.attended, x.chance, x.found) for x in found), strict=True)
    ]
    told = [f"{100 * share:.1f} %" for share in shares]
    return [name, f"{len(asked):,}", f"{scores['exact']:.1f}", f"{scores['f1']:.1f}", *told]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", type=Path, default=Path("runs/answering"))
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    if not arguments.run.exists():
        print(f"{arguments.run} is not there: regard train recipes/answering.yaml --run {arguments.run}")
        return
    translator = load_run(arguments.run)
    test = translator.config.data.test
    files = arguments.files or [Path(path) for path in getattr(test, "babi", ())]
    rows = [["questions of", "", "exact", "F1", "on evidence", "chance", "most on evidence"]]
    for path in files:
        asked = list(questions(path))
        found = []
        with bar() as progress:
            for question in asked:
                found.append(look_up(translator, question))
                if progress:
                    progress("answering", len(found), len(asked))
        rows.append(measure(path.name.split("_test")[0], asked, found))
    print(columns(rows))


if __name__ == "__main__":
    main()
