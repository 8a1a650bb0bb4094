"""`regard import`: turn a model from Hugging Face into a run."""

import sys
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
\b
Examples:
  regard import opus-mt-en-de runs/opus-en-de     a directory fetched from the Hugging Face hub
  echo "A dog runs." | regard translate runs/opus-en-de
  regard export runs/opus-en-de --to ctranslate2 fast/ --quantize int8
  regard import bert-base-uncased runs/bert       an encoder, for model.start_from=runs/bert
"""


def import_(
    directory: Annotated[
        Path,
        typer.Argument(
            help="Hugging Face directory: config.json, model.safetensors or pytorch_model.bin, and of a Marian model "
            "source.spm, target.spm, vocab.json, of BERT vocab.txt or tokenizer.json.",
            metavar="DIR",
        ),
    ],
    run: Annotated[Path, typer.Argument(help="Directory of the new run.", metavar="RUN")],
) -> None:
    """Import a Marian model (such as OPUS-MT) or BERT from Hugging Face as a run.

    Every other command then works on it.
    """
    from regard.formats.from_huggingface import import_run

    made = import_run(directory, run)
    info = made.info
    config = made.config
    size = list(info["tokenizers"].values())[-1]["vocabulary"]
    print(f"{run}: {info['cell']}, {info['parameters']:,} parameters, {size:,} tokens.")
    if left_out := info.get("left_out"):
        names = ", ".join(left_out[:3]) + (", …" if len(left_out) > 3 else "")
        print(
            f"Left out: {len(left_out):,} tensors that this model does not use ({names}). If it needs them, its "
            "outputs differ from the original's.",
            file=sys.stderr,
        )
    if config.task.output_kind().decoder:
        print(f"Try it: echo ... | regard translate {run}")
        return
    from regard.formats.from_bert import start_settings

    if info["head"] == "fresh":
        print("Its layer that predicts masked words is not imported; ours is untrained, so its predictions are random.")
    print(f"Start your own run from it with\n\n{start_settings(run)}")
