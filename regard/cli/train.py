"""`regard train`: train a run from a configuration, or resume one."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.training.outcome import Outcome

EXAMPLES = """
\b
Examples:
  regard train dates                              a recipe (see `regard recipes`); the run is runs/dates
  regard train my.yaml model.encoder.kind=rnn --run runs/mine
  regard train --resume runs/mine                 resume after Ctrl-C or a crash
  regard train --resume runs/mine training.steps=9000
  torchrun --nproc-per-node 4 -m regard train my.yaml -r runs/mine
"""


def train(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            help="A YAML configuration or the name of a recipe (not with --resume), then settings as key.path=value.",
            metavar="[CONFIG] [KEY=VALUE]...",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option("--run", "-r", help="Directory of the new run; by default runs/NAME of the configuration."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Continue this run, exactly where it stopped.")
    ] = None,
) -> None:
    """Train a model, or resume a run.

    The run directory holds everything: configuration, tokenizers, weights, checkpoints and metrics. Ctrl-C saves a
    checkpoint; --resume continues exactly where training stopped.
    """
    if "RANK" in os.environ:  # DDP warns in every process that each parameter is used, which Regard does not rely on
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from regard.config.loading import load
    from regard.foundation.errors import UsageError
    from regard.recipes import configuration_file
    from regard.runs.run import Run

    given = arguments or []
    if resume is not None:
        if run is not None:
            raise UsageError("--run names a new run and --resume an old one. Use one of them.")
        files = [argument for argument in given if "=" not in argument]
        if files:
            raise UsageError(f"A run is resumed with its own configuration. Leave out {files[0]}.")
        opened = Run.open(resume)
        directory, config = opened.directory, opened.load_config(given)
    else:
        if not given or "=" in given[0]:
            raise UsageError("Name a configuration. For example: regard train copy (`regard recipes` lists more)")
        config = load(configuration_file(given[0]), given[1:])
        directory = run or Path("runs") / Path(given[0]).stem
        if "TORCHELASTIC_RUN_ID" not in os.environ:  # torchrun restarts a job with the same command
            Run.refuse_occupied(directory)

    from regard.training.loop import train as train_run

    outcome = train_run(config, directory, resume=resume is not None)
    if os.environ.get("RANK", "0") == "0":
        _report(outcome)


def _report(outcome: "Outcome") -> None:
    """Print the location of the run, its scores, and the next command."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from regard.training.view import scores_line

    console = Console(highlight=False, soft_wrap=True)
    place = outcome.run.directory
    if outcome.already:
        console.print(f"{place} is finished (step {outcome.step:,}). To train longer: ", end="", markup=False)
        console.print(f"regard train --resume {place} training.steps=N", markup=False)
    else:
        console.print(Text(f"Finished at step {outcome.step:,}: {outcome.choice}.", style="bold"))
    rows = [("validation", scores_line(outcome.validation)), ("", outcome.note)]
    rows += [("test", scores_line(outcome.test) if outcome.test else "")]
    rows += [("run", f"{place} (README.md is its card)"), ("next", outcome.next_command)]
    shown = [(name, text) for name, text in rows if text]
    if console.is_terminal:
        table = Table.grid(padding=(0, 2))
        for name, text in shown:
            table.add_row(Text(name), Text(text, style="" if name else "dim", overflow="fold"))
        console.print(Padding(table, (0, 0, 0, 2)), soft_wrap=False)
    else:
        for name, text in shown:
            console.print(f"  {name:<10}  {text}", markup=False)
