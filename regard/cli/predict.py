"""`regard predict`: what a run that writes no text says of texts: labels, numbers, tags."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.predictor import Predictor
    from regard.shapes.shape import Answer

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
    """Answer files, or standard input, line by line; as many lines come out as went in, and an empty one stays so."""
    from regard.cli.line_input import chunks
    from regard.errors import RegardError
    from regard.evaluation.display import bar
    from regard.predictor import Predictor
    from regard.run import Run

    Run.open(run)
    predictor = Predictor.load(run)
    with bar() as progress:
        for chunk in chunks(files or [], 0, predictor.config.data.train.texts):
            try:
                answered = _answered(predictor, chunk)
            except RegardError:  # some line is at fault: those before it are answered
                answered = (answer for one in chunk for answer in _answered(predictor, [one]))
            for (number, line), answer in zip(chunk, answered, strict=True):
                if as_json:
                    facts = {"line": number, "text": line, **(answer.facts if answer else {})}
                    print(json.dumps(facts, ensure_ascii=False))
                else:
                    print(answer.line if answer else "")
            sys.stdout.flush()
            if progress and files:
                progress("predicting", chunk[-1][0], None)


def _answered(predictor: "Predictor", chunk: list[tuple[int, str]]) -> "Iterable[Answer | None]":
    """An answer for each line, none for an empty one; a line that has none to give is told by its number."""
    from regard.errors import RegardError

    try:
        answers = iter(predictor.predict([line for _, line in chunk if line.strip()]))
    except RegardError as error:
        if len(chunk) > 1:
            raise
        raise type(error)(f"Line {chunk[0][0]:,}: {error}") from None
    return [next(answers) if line.strip() else None for _, line in chunk]
