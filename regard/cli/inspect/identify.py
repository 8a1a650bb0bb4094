"""`regard inspect identify`: do weights and states tell what they seem to tell?"""

from pathlib import Path
from typing import Annotated

import typer

from regard.cli.inspect.output import AsJson, Output, Run, Second, Target, check, joined, show

EXAMPLES = """
\b
Examples:
  regard inspect identify runs/mine "A long sentence …" -o page.html       raw and effective attention, head by head
  regard inspect identify runs/mine --corpus dev.conllu -o picture.png     by length and by layer, over 1,000 sentences
  regard inspect identify runs/mine --corpus texts.txt --most 200 --json
  regard inspect identify runs/sentiment --corpus reviews.txt              of any run that reads text
"""


def identify(
    run: Run,
    source: Annotated[
        str | None, typer.Argument(help="The source text, or the name of a picture; or use --corpus.")
    ] = None,
    second: Second = None,
    target: Target = None,
    corpus: Annotated[Path | None, typer.Option("--corpus", help="Texts, one a line, or CoNLL-U.")] = None,
    most: Annotated[int, typer.Option("--most", min=20, help="Use only so many texts of the corpus.")] = 1000,
    exact: Annotated[
        bool, typer.Option("--exact", help="Contributions by the whole Jacobian, not by projections (slow).")
    ] = False,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Show which part of attention does anything, and how much of each token is left in its states."""
    from regard import inspection
    from regard.foundation.display import bar
    from regard.foundation.errors import UsageError
    from regard.inspection.corpus import read_texts
    from regard.inspection.opening import opened
    from regard.inspection.result import Result

    check(output)
    if (source is None) == (corpus is None):
        raise UsageError("Give a source text, or a --corpus of many: one of the two.")
    if corpus is not None and (target is not None or exact):
        raise UsageError("--target and --exact go with one source text, not with a --corpus.")
    found: Result
    texts = None if corpus is None else read_texts(corpus, most)
    with bar() as progress:
        if texts is None:
            trace = opened(run).trace(joined(source or "", second), target)
            found = inspection.identify(trace, exact=exact, progress=progress)
        else:
            found = inspection.identify_corpus(opened(run), texts, progress=progress)
    show(found, output, as_json)
