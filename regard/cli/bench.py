"""`regard bench`: compare Regard with other toolkits on this machine."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from regard.foundation.errors import RegardError, UsageError

PARTS = ("train", "decode", "startup", "memory", "growth", "plan", "serve", "store")

EXAMPLES = """
\b
Examples:
  regard bench                           everything, into benchmarks/results/ (on two quiet cores: 35 minutes)
  regard bench decode                    one part
  regard bench train --peers eole        against one peer
  regard bench serve --run runs/en-de    servers under load, with the model of a run
  regard bench store                     preparing up to ten million pairs with one worker and with two
  regard bench growth --quick            a smoke test: small models and random text, no usable figures
"""


def bench(
    parts: Annotated[
        list[str] | None, typer.Argument(help=f"{', '.join(PARTS)}; by default all but store.", metavar="[PART]...")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Measurements of each program.")] = 3,
    peers: Annotated[
        str | None,
        typer.Option(
            "--peers",
            help="Only these, separated by commas: huggingface, ctranslate2, joeynmt, eole, opennmt, libretranslate, "
            "litserve, or none.",
            metavar="LIST",
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option("--models", help="Only these, separated by commas: tiny, small, gru, additive.", metavar="LIST"),
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="Run whose weights decode; by default runs/tiny.", metavar="RUN")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A smoke test on random text, in a few minutes.")] = False,
) -> None:
    """Benchmark training, decoding, start-up, memory and serving against other toolkits.

    Tables are written to benchmarks/results/.
    """
    for wrong in [name for name in parts or () if name not in PARTS]:
        raise UsageError(f"No part of the benchmarks is called `{wrong}`. Use {', '.join(PARTS)}.")
    if run is not None and not (run / "model.safetensors").is_file():
        raise UsageError(f"{run} is not a trained run. Name one with --run, or leave --run out to train one.")
    root = Path(__file__).resolve().parents[2]
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise RegardError(
            "The benchmarks are not part of the installed package. Run this in a clone of the source, with make bench."
        )
    command = [sys.executable, "-m", "benchmarks", *(parts or ()), "--rounds", str(rounds)]
    for name, value in (("--peers", peers), ("--models", models), ("--run", run.resolve() if run else None)):
        command += [name, str(value)] if value is not None else []
    code = subprocess.run([*command, *(["--quick"] if quick else [])], cwd=root, check=False).returncode
    if code:
        raise typer.Exit(code)
