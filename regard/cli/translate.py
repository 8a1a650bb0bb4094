"""`regard translate`: raw text through a trained run."""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

CHUNK = 2000
"""Lines translated before any of them is written: enough to sort by length, few enough to stream."""

EXAMPLES = """
\b
Examples:
  echo "9. Mai 2018" | regard translate runs/dates
  regard translate runs/mine < in.txt > out.txt
  regard translate runs/mine --beam 1 < in.txt       greedy: fastest
"""


def translate(
    run: Annotated[Path, typer.Argument(help="Directory of a trained run.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings as key.path=value.", metavar="[KEY=VALUE]...")
    ] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Beam width; 1 is greedy.")] = None,
) -> None:
    """Translate standard input line by line; as many lines come out as went in."""
    import regard

    translator = regard.load(run, overrides or [])
    lines = read_lines(sys.stdin.buffer, "standard input")
    while chunk := list(islice(lines, CHUNK)):
        for line in translator.translate(chunk, beam=beam):
            sys.stdout.write(" ".join(line.splitlines()) + "\n")
        sys.stdout.flush()


def read_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines of a stream of UTF-8, without their ends; what is not UTF-8 is refused with its line."""
    from regard.errors import RegardError

    for number, line in enumerate(stream, start=1):
        try:
            yield line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise RegardError(
                f"{name}, line {number}: byte {error.start + 1} is not UTF-8. Convert the text, for example with iconv."
            ) from None
