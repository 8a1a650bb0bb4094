"""`regard inspect probe`: what each layer knows."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from regard.cli.inspect.output import AsJson, Output, Run, check, show

EXAMPLES = """
\b
Examples:
  regard inspect probe runs/mine --corpus train.conllu --property upos -o probe.html
  regard inspect probe runs/mine --corpus train.conllu --dev dev.conllu --property Number
  regard inspect probe runs/mine --corpus words.tsv --property 2 --json
  regard inspect probe runs/mine --corpus target.conllu --sources source.txt      the decoder instead of the encoder

\b
A property is upos, xpos, deprel or a morphological feature (Number, Tense, …) of a CoNLL-U file, or the number of a
column of a .tsv file with a word and its labels on each line and a blank line between sentences.
"""


def probe(
    run: Run,
    corpus: Annotated[Path, typer.Option("--corpus", help="Annotated sentences: CoNLL-U, or a .tsv table.")],
    wanted: Annotated[str, typer.Option("--property", help="What to ask for.", metavar="NAME")] = "upos",
    dev: Annotated[Path | None, typer.Option("--dev", help="Measure on this, not on a tenth of the corpus.")] = None,
    sources: Annotated[
        Path | None, typer.Option("--sources", help="Source lines of the corpus: probe the decoder.")
    ] = None,
    most: Annotated[int | None, typer.Option("--most", min=1, help="Use only so many sentences.")] = None,
    word: Annotated[
        Literal["mean", "last"], typer.Option("--word", help="A word of several tokens is their mean, or the last.")
    ] = "mean",
    seed: Annotated[int, typer.Option("--seed", help="Of the split, the control task, the untrained model.")] = 1,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Train small classifiers on the frozen states of every layer, beside all that they have to be compared to."""
    from regard import inspection
    from regard.foundation.display import bar
    from regard.inspection.opening import opened, reading_text

    check(output)
    translator = reading_text(opened(run), "Probes ask what layers know of the words of a text")
    with bar() as progress:
        found = inspection.probe(
            translator,
            corpus,
            wanted,
            dev=dev,
            sources=sources,
            most=most,
            pool=word,
            seed=seed,
            progress=progress,
        )
    show(found, output, as_json, run)
