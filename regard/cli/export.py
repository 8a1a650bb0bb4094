"""`regard export`: write a run in the format of another toolkit."""

from pathlib import Path
from typing import Annotated

import typer

from regard.foundation.errors import UsageError

EXAMPLES = """
\b
Examples:
  regard export runs/mine --to huggingface hf/                    transformers loads it
  regard export runs/mine --to ctranslate2 fast/                  ctranslate2.Translator("fast") loads it
  regard export runs/mine --to ctranslate2 small/ --quantize int8 a quarter of the size, faster
"""

FORMATS = ("huggingface", "ctranslate2")


def export(
    run: Annotated[Path, typer.Argument(help="Directory of a trained run.", metavar="RUN")],
    directory: Annotated[Path, typer.Argument(help="New directory to write.", metavar="DIR")],
    to: Annotated[str, typer.Option("--to", help="huggingface or ctranslate2.", metavar="FORMAT")],
    quantize: Annotated[
        str | None,
        typer.Option("--quantize", help="ctranslate2: int8, int16, float16 or bfloat16 weights.", metavar="TYPE"),
    ] = None,
) -> None:
    """Export a run to Hugging Face transformers or CTranslate2.

    A model that has no equivalent there is refused with the reason.
    """
    from regard.runs.run import Run

    if to not in FORMATS:
        raise UsageError(f"--to is {' or '.join(FORMATS)}, not `{to}`.")
    if quantize is not None and to != "ctranslate2":
        raise UsageError("--quantize is for --to ctranslate2.")
    opened = Run.open(run)
    if to == "huggingface":
        from regard.formats.to_huggingface import export_huggingface

        notes = export_huggingface(opened, directory)
    else:
        from regard.formats.to_ctranslate2 import export_ctranslate2

        notes = export_ctranslate2(opened, directory, quantize)
    print("\n".join(notes))
