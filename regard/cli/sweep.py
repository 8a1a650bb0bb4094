"""`regard sweep`: train a grid of runs from one configuration, and compare their scores."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.foundation.errors import RegardError
    from regard.training.outcome import Outcome
    from regard.training.sweep import Trial

EXAMPLES = """
\b
Examples:
  regard sweep my.yaml model.width=128,256 training.seed=1,2,3
  regard sweep copy model.encoder.kind=rnn,transformer training.steps=500 --run runs/kinds
  regard sweep my.yaml model.dropout=0,0.1,0.3 --dry-run            the trials, without training
"""


def sweep(
    arguments: Annotated[
        list[str],
        typer.Argument(
            help="A YAML configuration or the name of a recipe, then settings as key.path=value,value,…: every "
            "combination of their values is trained.",
            metavar="CONFIG KEY=VALUE,VALUE...",
        ),
    ],
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", help="Directory of the sweep; by default runs/NAME-sweep of the configuration.", metavar="DIR"
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the trials and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Train every combination of some settings, and compare them in a table.

    Runs that differ only in training.seed are one row, with mean and standard deviation. The same command continues an
    interrupted sweep: finished runs are kept. The table is written to the directory of the sweep as sweep.txt, .csv,
    .tex and .png.
    """
    from regard.foundation.display import note
    from regard.foundation.errors import RegardError, UsageError
    from regard.recipes import configuration_file
    from regard.training.sweep import plan_trials, run_sweep
    from regard.training.view import scores_line

    config, *settings = arguments
    if "=" in config:
        raise UsageError("Name a configuration. For example: regard sweep my.yaml model.width=128,256")
    if not settings:
        raise UsageError(f"No setting varies. Give values to try, such as: regard sweep {config} model.width=128,256")
    directory = run or Path("runs") / f"{Path(config).stem}-sweep"
    trials = plan_trials(configuration_file(config), settings, directory)
    if dry_run:
        for trial in trials:
            print(f"{trial.directory}\t{' '.join(trial.overrides)}")
        return

    def begin(number: int, trial: "Trial") -> None:
        note(f"[{number}/{len(trials)}] {' '.join(trial.overrides)}")

    def end(trial: "Trial", outcome: "Outcome | RegardError") -> None:
        if isinstance(outcome, RegardError):
            print(f"error: {trial.directory}: {outcome}", file=sys.stderr)
        else:
            note(f"    {scores_line(outcome.test or outcome.validation)}")

    result = run_sweep(trials, begin=begin, end=end)
    files = result.save(directory)
    print(json.dumps(result.to_json(), indent=2, ensure_ascii=False) if as_json else str(result))
    note(f"Written: {', '.join(str(file) for file in files)}")
    if result.failed:
        raise typer.Exit(1)
