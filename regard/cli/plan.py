"""`regard plan`: estimate the cost of a run before training."""

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from regard.foundation.errors import UsageError

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
    config: Annotated[str, typer.Argument(help="A YAML configuration, or the name of a recipe.", metavar="CONFIG")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings as key.path=value.", metavar="[KEY=VALUE]...")
    ] = None,
    devices: Annotated[
        list[str] | None,
        typer.Option("--devices", help="Hardware such as 8xA100; may be repeated.", metavar="HARDWARE"),
    ] = None,
    utilisation: Annotated[
        float | None,
        typer.Option("--utilisation", help="Share of the peak that training reaches; 0.35 by default."),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure/--no-measure", help="Train on random text here for ten seconds.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Estimate the cost of a run: parameters, FLOPs, memory and time, here or on named hardware."""
    if utilisation is not None and not 0 < utilisation <= 1:
        raise UsageError(f"--utilisation must be a share of the peak, above 0 and at most 1, not {utilisation:g}.")
    from regard.config.loading import load
    from regard.recipes import configuration_file

    loaded = load(configuration_file(config), overrides or [])
    from regard import planning
    from regard.foundation.display import bar

    share = planning.UTILISATION if utilisation is None else utilisation
    with bar() as progress:
        made = planning.plan(loaded, devices or (), share, measure=measure, progress=progress)
    print(json.dumps(made.to_json(), indent=2, ensure_ascii=False) if as_json else _table(made))
    for warning in made.warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _table(made: "Plan") -> str:
    """Return a plan as aligned lines."""
    from regard.foundation.display import columns
    from regard.planning import format_memory
    from regard.training.summary import duration, short

    lengths = made.lengths
    parts = ", ".join(f"{name} {short(count)}" for name, count in made.parameters.items())
    rows = [
        ("cell", made.cell),
        ("vocabulary", f"{made.vocabulary[0]:,} source and {made.vocabulary[1]:,} target tokens"),
        ("sentences", f"{lengths.source:.0f} source and {lengths.target:.0f} target tokens ({lengths.origin})"),
        ("parameters", f"{short(sum(made.parameters.values()))} ({parts})"),
        ("training", f"{made.updates:,} updates of {made.tokens:,} tokens per side"),
        ("FLOPs", f"{made.flops:.2g} in all, {made.flops_per_token:.2g} for a target token and its source"),
        ("memory", format_memory(made.memory) + ("" if made.here else ", activations apart")),
    ]
    if made.here:
        rate = made.flops_per_token * made.tokens / made.here.seconds
        rows.append(
            (
                "here",
                f"{duration(made.here.seconds * made.updates)}: {made.here.seconds:.3g} s per update, "
                f"{rate / 1e9:.3g} GFLOP/s (measured on {made.here.updates} updates of {made.here.tokens:,} tokens)",
            )
        )
    else:
        rows.append(("here", f"not measured: {made.why_not_here}"))
    for machine in made.elsewhere:
        apart = "" if made.here else " (activations apart)"
        fits = f"{made.memory_on(machine.devices) / 1e9:.2g} of {machine.hardware.gigabytes:g} GB each{apart}"
        rows.append(
            (
                machine.name,
                f"{duration(machine.seconds)} at {machine.utilisation:.0%} of {machine.hardware.teraflops:g} TFLOP/s "
                f"each ({machine.hardware.precision}); {machine.spent:.2g} FLOPs as time × peak; {fits}",
            )
        )
    return columns(rows)
