"""`regard plan`: what a run will cost, before any of it is trained."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.planning import Plan

EXAMPLES = """
\b
Examples:
  regard plan my.yaml                                  parameters, FLOPs, memory, time on this machine
  regard plan recipes/wmt14/big.yaml --devices 8xA100 --devices 8xP100
  regard plan my.yaml model.width=512 training.steps=50000
  regard plan my.yaml --devices H100 --utilisation 0.45 --no-measure --json
"""


def plan(
    config: Annotated[Path, typer.Argument(help="Configuration file.", metavar="CONFIG")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings as key.path=value.", metavar="[KEY=VALUE]...")
    ] = None,
    devices: Annotated[
        list[str] | None,
        typer.Option("--devices", help="Hardware such as 8xA100; may be repeated.", metavar="HARDWARE"),
    ] = None,
    utilisation: Annotated[
        float | None,
        typer.Option("--utilisation", help="Share of its peak that training reaches there; 0.35 by default."),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure/--no-measure", help="Train on random text here for ten seconds.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Say what a run will cost: parameters, FLOPs, memory, and time here and on named hardware."""
    if utilisation is not None and not 0 < utilisation <= 1:
        raise UsageError(f"--utilisation is a share of the peak, above 0 and at most 1, not {utilisation:g}.")
    from regard.config.loading import load

    loaded = load(config, overrides or [])
    from regard import planning
    from regard.evaluation.display import waiting

    with waiting("measuring this machine") if measure else _nothing():
        made = planning.plan(
            loaded, tuple(devices or ()), planning.UTILISATION if utilisation is None else utilisation, measure=measure
        )
    if as_json:
        print(json.dumps(made.to_json(), indent=2, ensure_ascii=False))
    else:
        _print(made)
