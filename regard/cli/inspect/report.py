"""`regard inspect all`: one report with every analysis that applies."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.inspect.output import AsJson, Output, Run, Second, Source, Target, check, joined, show

EXAMPLES = """
\b
Examples:
  regard inspect all runs/mine "A dog runs." -o report.html
  regard inspect all runs/mine "A dog runs." --corrupted "A cat runs." -o report.html    patching too
  regard inspect all runs/mine "A dog runs." --corpus dev.conllu -o report.html          and what is asked of a corpus
  regard inspect all runs/sentiment "a stirring, funny film" -o report.html              a label, and what made it
  regard inspect all runs/visual-questions picture.png "how many circles are there ?" -o report.html
"""

Corrupted = Annotated[
    str | None, typer.Option("--corrupted", help="A second source of as many tokens, for patching.", metavar="TEXT")
]
Corpus = Annotated[
    Path | None, typer.Option("--corpus", help="CoNLL-U, for heads, probes and identifiability.", metavar="FILE")
]


def report(
    run: Run,
    source: Source,
    second: Second = None,
    target: Target = None,
    corrupted: Corrupted = None,
    corpus: Corpus = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Write one report of a translation, or of whatever a run says: every analysis that applies to it.

    Attention, contributions, attribution, lens, alignment, identifiability.
    With --corrupted also patching, with --corpus also heads, probes (upos) and identifiability over a corpus, of which
    1,000 sentences are read; that takes minutes. What does not apply to the model is left out with its reason. Pruning
    makes another model and is never part of a report.
    """
    from regard import inspection
    from regard.foundation.display import bar
    from regard.foundation.errors import UsageError
    from regard.inspection.result import PICTURES

    check(output)
    if output is not None and output.suffix.lower().removeprefix(".") in PICTURES:
        raise UsageError(f"A report is no picture: write {output.with_suffix('.html')}, or draw single analyses.")
    with bar() as progress:
        found = inspection.report(
            run, joined(source, second), target, corrupted=corrupted, corpus=corpus, progress=progress
        )
    show(found, output, as_json)
    if output is not None:
        for name, why in found.left_out.items():
            print(f"left out: {name}: {why}", file=sys.stderr)
