"""`regard inspect heads`: what each head does."""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.inspect.output import AsJson, Output, Run, check, show

EXAMPLES = """
\b
Examples:
  regard inspect heads runs/mine --corpus dev.conllu -o heads.html     roles, with dependency relations
  regard inspect heads runs/mine --corpus texts.en -o heads.png        plain text, without them
  regard inspect heads runs/mine --score                               and what each head is worth in BLEU
  regard inspect heads runs/sentiment --score                          … or in accuracy, or what the run is judged by
"""


def heads(
    run: Run,
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", help="CoNLL-U (.conllu), or plain text; by default the run's validation examples."),
    ] = None,
    pairs: Annotated[
        int, typer.Option("--pairs", min=1, help="Validation examples by which importance is judged.")
    ] = 200,
    most: Annotated[int | None, typer.Option("--sentences", min=1, help="Read no more than so many.")] = None,
    score: Annotated[
        bool, typer.Option("--score", help="Also answer them once without each head: what is lost of the run's score.")
    ] = False,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Describe every head: how sure it is, where it looks, which relations it follows, how much it is needed."""
    from regard import inspection
    from regard.foundation.display import bar

    check(output)
    with bar() as progress:
        found = inspection.heads(run, corpus, pairs=pairs, score=score, most=most, progress=progress)
    show(found, output, as_json, run)
