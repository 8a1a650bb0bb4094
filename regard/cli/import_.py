"""`regard import`: a model that others have trained becomes a run."""

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
\b
Examples:
  regard import opus-mt-en-de runs/opus-en-de     a directory fetched from the Hugging Face hub
  echo "A dog runs." | regard translate runs/opus-en-de
  regard export runs/opus-en-de --to ctranslate2 fast/ --quantize int8
"""


def import_(
    directory: Annotated[
        Path,
        typer.Argument(
            help="Hugging Face directory of a Marian model: config.json, model.safetensors or pytorch_model.bin, "
            "source.spm, target.spm, vocab.json.",
            metavar="DIR",
        ),
    ],
    run: Annotated[Path, typer.Argument(help="Directory of the new run.", metavar="RUN")],
) -> None:
    """Make a run of a Marian model, such as the OPUS-MT ones: every other command then works on it."""
    from regard.interop.from_huggingface import import_run

    made = import_run(directory, run)
    info = made.info
    size = info["tokenizers"]["target"]["vocabulary"]
    print(f"{run}: {info['cell']}, {info['parameters']:,} parameters, {size:,} tokens.")
    print(f"Try it: echo ... | regard translate {run}")
