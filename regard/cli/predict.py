"""`regard predict`: labels, numbers or tags for texts."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
\b
Examples:
  regard predict runs/questions "Who wrote Faust ?"                  label, probability
  regard predict runs/questions in.txt --json > answers.jsonl         the probability of every label
  regard predict runs/entailment pairs.tsv                            two texts per line, separated by a tab
  regard predict runs/tagging < sentences.txt                         word/tag word/tag
"""


def predict(
    run: Annotated[Path, typer.Argument(help="Directory of a trained run.", metavar="RUN")],
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Texts, or files to read (none, or -: standard input).", metavar="[TEXT|FILE]..."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line, with all details.")] = False,
) -> None:
    """Predict labels, numbers, tags or answers for texts, files or standard input.

    Every input line gives one output line. An argument that is not an existing file is read as text, unless it looks
    like a file name: no spaces, and an ending such as .txt or a path into an existing directory.

    A line that cannot be read, such as one with a damaged image or too many tabs, gives an empty line and an error on
    standard error; the other lines are answered, and the exit code is 1.
    """
    from regard.cli.line_input import chunks
    from regard.cli.words import file_or_text
    from regard.foundation.display import bar
    from regard.foundation.errors import RegardError
    from regard.runs.run import Run
    from regard.tasks.bad_inputs import answer_each
    from regard.tasks.loaded import load_run

    given = [file_or_text(file) for file in files or ()]
    opened = Run.open(run)
    predictor = load_run(opened, verb="predict")
    failed = 0
    with bar() as progress:
        for chunk in chunks(given, 0):
            answers = answer_each(predictor.answer, [line for _, line in chunk], predictor.check)
            for (number, line), answer in zip(chunk, answers, strict=True):
                if isinstance(answer, RegardError):
                    failed += 1
                    print(f"error: Line {number:,}: {answer}", file=sys.stderr)
                if as_json:
                    nothing = dict.fromkeys(predictor.output.result.fields)  # every line has the same fields
                    facts = nothing | {"error": str(answer)} if isinstance(answer, RegardError) else answer.facts
                    print(json.dumps({"line": number, "text": line, **facts}, ensure_ascii=False))
                else:
                    print("" if isinstance(answer, RegardError) else answer.line)
            sys.stdout.flush()
            if progress and files:
                progress("predicting", chunk[-1][0], None)
    if failed:
        raise RegardError(
            f"{failed:,} {'line' if failed == 1 else 'lines'} could not be answered. See the errors above."
        )
