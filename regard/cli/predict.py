"""`regard predict`: what a run that writes no text says of texts: labels, numbers, tags."""

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

CHUNK = 512
"""Lines answered before any answer is written: enough to sort by length, few enough to stream."""

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
        list[Path] | None, typer.Argument(help="Files to read (none: standard input).", metavar="[FILE]...")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, with all there is to say.")] = False,
) -> None:
    """Answer files, or standard input, line by line; as many lines come out as went in, and an empty one stays so."""
    from regard.evaluation.display import bar
    from regard.predictor import Predictor
    from regard.run import Run

    Run.open(run)
    predictor = Predictor.load(run)
    lines = enumerate(_lines(files or []), start=1)
    with bar() as progress:
        while chunk := list(islice(lines, 1 if not files and sys.stdin.isatty() else CHUNK)):
            texts = [line for _, line in chunk if line.strip()]
            _check(chunk, predictor.shape.config.data.train.texts)
            answers = iter(predictor.predict(texts))
            for number, line in chunk:
                answer = next(answers) if line.strip() else None
                if as_json:
                    facts = {"line": number, "text": line, **(answer.facts if answer else {})}
                    print(json.dumps(facts, ensure_ascii=False))
                else:
                    print(answer.line if answer else "")
            sys.stdout.flush()
            if progress and files:
                progress("predicting", chunk[-1][0], None)


def _check(chunk: list[tuple[int, str]], wanted: int) -> None:
    from regard.errors import RegardError

    for number, line in chunk:
        if wanted > 1 and line.strip() and line.count("\t") != wanted - 1:
            raise RegardError(
                f"Line {number:,} has {line.count(chr(9)) + 1} tab-separated texts, but this run reads {wanted}: put "
                "one tab between the two."
            )


def _lines(files: list[Path]) -> Iterator[str]:
    from regard.data.lines import read_lines, stream_lines

    if not files:
        yield from stream_lines(sys.stdin.buffer, "standard input", whole=True)
    for file in files:
        yield from read_lines(file, whole=True)
