"""`regard predict`: what a run that writes no text says of texts: labels, numbers, tags."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.foundation.errors import RegardError
    from regard.tasks.loaded import LoadedRun
    from regard.tasks.results import Result

EXAMPLES = """
\b
Examples:
  echo "Who wrote Faust ?" | regard predict runs/questions           label, probability
  regard predict runs/questions in.txt --json > answers.jsonl         the probability of every label
  regard predict runs/entailment pairs.tsv                            two texts a line, a tab between them
  regard predict runs/tagging < sentences.txt                         word/tag word/tag
"""


def predict(
    run: Annotated[Path, typer.Argument(help="Directory of a trained run.")],
    files: Annotated[
        list[Path] | None, typer.Argument(help="Files to read (none, or -: standard input).", metavar="[FILE]...")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with all there is to say.")] = False,
) -> None:
    """Answer files, or standard input, line by line; as many lines come out as went in, and an empty one stays so.

    A line that cannot be answered, such as one with a damaged picture, stays empty and is told on standard error; the
    others are answered, and the exit code is 1.
    """
    from regard.cli.line_input import chunks
    from regard.foundation.display import bar
    from regard.foundation.errors import RegardError
    from regard.runs.run import Run
    from regard.tasks.loaded import load_run

    opened = Run.open(run)
    predictor = load_run(opened, verb="predict")
    failed = 0
    with bar() as progress:
        for chunk in chunks(files or [], 0, predictor.config.data.train.texts):
            for (number, line), answer in zip(chunk, _answered(predictor, chunk), strict=True):
                if isinstance(answer, RegardError):
                    failed += 1
                    print(f"error: Line {number:,}: {answer}", file=sys.stderr)
                if as_json:
                    said = {"error": str(answer)} if isinstance(answer, RegardError) else answer.facts
                    print(json.dumps({"line": number, "text": line, **said}, ensure_ascii=False))
                else:
                    print("" if isinstance(answer, RegardError) else answer.line)
            sys.stdout.flush()
            if progress and files:
                progress("predicting", chunk[-1][0], None)
    if failed:
        raise RegardError(f"{failed:,} {'line' if failed == 1 else 'lines'} could not be answered: see above.")


def _answered(predictor: "LoadedRun", chunk: list[tuple[int, str]]) -> "Iterator[Result | RegardError]":
    """An answer for each line, or why there is none; where a line is at fault, they are asked one by one."""
    from regard.foundation.errors import RegardError

    try:
        yield from predictor.predict([line for _, line in chunk])
    except RegardError as error:
        if len(chunk) == 1:
            yield error
            return
        for line in chunk:
            yield from _answered(predictor, [line])
