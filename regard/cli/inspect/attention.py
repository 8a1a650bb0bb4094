"""`regard inspect attention`: where the model looked."""

from typing import Annotated

import typer

from regard.cli.inspect.output import AsJson, Output, Run, Second, Source, Target, check, joined, show

EXAMPLES = """
\b
Examples:
  regard inspect attention runs/mine "A dog runs." -o page.html
  regard inspect attention runs/mine "A dog runs." --target "Ein Hund läuft." -o picture.png
  regard inspect attention runs/mine "A dog runs." --kind encoder --layer 1 --head 0 -o head.svg
  regard inspect attention runs/mine "A dog runs." --words --json
  regard inspect attention runs/captions picture.png -o page.html
  regard inspect attention runs/entailment "A dog runs." "A dog sleeps." --kind between -o page.html
  regard inspect attention runs/visual-questions picture.png "how many circles are there ?" -o page.html
"""

Kind = Annotated[
    str | None,
    typer.Option(
        help="What is shown first: source (the target looks at it), between, encoder, decoder.", metavar="KIND"
    ),
]
Layer = Annotated[int | None, typer.Option(help="One layer, counted from 0; by default the mean of all.")]
Head = Annotated[int | None, typer.Option(help="One head of it, counted from 0; by default the mean of all.")]
Words = Annotated[bool, typer.Option("--words", help="Merge tokens into words.")]


def attention(
    run: Run,
    source: Source,
    second: Second = None,
    target: Target = None,
    kind: Kind = None,
    layer: Layer = None,
    head: Head = None,
    words: Words = False,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show where each head of each layer looked while a source was read and a target written.

    A page (-o page.html) has every head; the table and the picture show one map, by default the mean over all layers
    and heads of the attention to the source. A model without any attention (a fixed join between recurrent or
    convolutional sides) has nothing to show here and says so.
    """
    from regard import inspection
    from regard.inspection.opening import opened

    check(output)
    trace = opened(run).trace(joined(source, second), target)
    show(inspection.attention(trace, kind, layer, head, words=words), output, as_json, run)  # type: ignore[arg-type]
