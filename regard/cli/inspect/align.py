"""`regard inspect align`: which words belong together."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.inspect.output import AsJson, Output, Run, check, show

EXAMPLES = """
\b
Examples:
  regard inspect align runs/en-de --source test.en --target test.de > links.txt
  regard inspect align runs/en-de --source test.en --target test.de --reverse runs/de-en -o page.html
  regard inspect align runs/en-fr --source dev.en --target dev.fr --gold dev.wa --method contributions

\b
The links of a pair are a line: 0-0 1-2, words between white space counted from 0, the source's first. Gold is a file
of such lines (0?1 or 0p1 for possible links), or of lines "sentence source target S|P", all counted from 1.
"""

SourceFile = Annotated[Path, typer.Option("--source", help="Source texts, one a line.", metavar="FILE")]
TargetFile = Annotated[Path, typer.Option("--target", help="Their translations, as many lines.", metavar="FILE")]
GoldFile = Annotated[Path | None, typer.Option("--gold", help="Links made by people.", metavar="FILE")]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out links of --gold that cannot be read, and say how many.")
]
Reverse = Annotated[
    Path | None, typer.Option("--reverse", help="A run that translates targets into sources.", metavar="RUN")
]
Method = Annotated[str, typer.Option(help="attention, or contributions: each source token's share of a layer's state.")]
Layer = Annotated[int | None, typer.Option(help="One decoder layer, counted from 0; by default the best.")]
Head = Annotated[int | None, typer.Option(help="One head, counted from 0, of that or the best layer; else their mean.")]
Reading = Annotated[
    str | None,
    typer.Option(help="reads: the row that reads a word belongs to it; writes: the row that writes it; or the best."),
]
Combine = Annotated[
    str | None,
    typer.Option(
        help="none, intersection, union or grow-diag of two directions: with --reverse grow-diag, else none.",
        metavar="HOW",
    ),
]


def align(
    run: Run,
    source: SourceFile,
    target: TargetFile,
    gold: GoldFile = None,
    skip_bad: SkipBad = False,
    reverse: Reverse = None,
    method: Method = "attention",
    layer: Layer = None,
    head: Head = None,
    reading: Reading = None,
    combine: Combine = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Align the words of texts and their translations, and measure the error rate against gold.

    Which layer and row is read is chosen once, on the run's validation pairs, and stored in the run.

    Links go to standard output, how they were found (and how well) to standard error.
    """
    from regard import inspection
    from regard.data.lines import read_lines
    from regard.foundation.display import bar
    from regard.foundation.errors import UsageError
    from regard.inspection.opening import opened, translating

    check(output)
    if skip_bad and gold is None:
        raise UsageError("--skip-bad is about the links of a gold file. Name it with --gold FILE.")
    texts = [list(read_lines(path)) for path in (source, target)]
    translator = translating(opened(run), "Alignment is between the words")
    other = None if reverse is None else translating(opened(reverse), "Alignment is between the words")
    with bar() as progress:
        found = inspection.align(
            translator,
            *texts,
            run=run,
            gold=gold,
            skip_bad=skip_bad,
            reverse=other,
            reverse_run=reverse,
            method=method,  # type: ignore[arg-type]
            layer=layer,
            head=head,
            reading=reading,  # type: ignore[arg-type]
            combining=combine,  # type: ignore[arg-type]
            progress=progress,
        )
    print(found.summary, file=sys.stderr)
    show(found, output, as_json, run)
