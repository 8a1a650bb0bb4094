"""`regard plan`: estimate the cost of a run before training."""

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from regard.foundation.errors import UsageError

if TYPE_CHECKING:
    from regard.planning import Elsewhere, Parallel, Plan

EXAMPLES = """
\b
Examples:
  regard plan my.yaml                                  parameters, FLOPs, memory, time on this machine
  regard plan recipes/wmt14/big.yaml --devices 8xA100 --devices 8xP100
  regard plan my.yaml model.width=512 training.steps=50000
  regard plan my.yaml --devices 64xA100 --nodes 8      memory, communication and time with DDP and FSDP2
  regard plan my.yaml --devices 64xA100 --nodes 8 --network 100
  regard plan my.yaml --devices 2xhere                 two processes on this machine, by gloo
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
    nodes: Annotated[
        int | None, typer.Option("--nodes", help="Nodes that the devices are on; by default eight share one.", min=1)
    ] = None,
    network: Annotated[
        float | None,
        typer.Option("--network", help="Gbit/s from a node to the others; by default that of a usual system."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
) -> None:
    """Estimate the cost of a run: parameters, FLOPs, memory and time, here or on named hardware.

    For several devices: memory of a rank, communication and time with DDP and with FSDP2, and the number of devices
    above which more do not pay. `2xhere` are two processes on this machine.
    """
    if network is not None and not 0 < network <= 1e6:
        raise UsageError(f"--network must be above 0 and at most 1,000,000 Gbit/s, not {network:g}.")
    if utilisation is not None and not 0 < utilisation <= 1:
        raise UsageError(f"--utilisation must be a share of the peak, above 0 and at most 1, not {utilisation:g}.")
    from regard.config.loading import load
    from regard.recipes import configuration_file

    loaded = load(configuration_file(config), overrides or [])
    from regard import planning
    from regard.foundation.display import bar

    share = planning.UTILISATION if utilisation is None else utilisation
    with bar() as progress:
        made = planning.plan(
            loaded,
            devices or (),
            share,
            nodes=nodes,
            network=None if network is None else network / 8,
            measure=measure,
            progress=progress,
        )
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
        fits = f"{made.memory_on(machine.devices) / 1e9:.2g} of {machine.hardware.gigabytes:.3g} GB each{apart}"
        rows.append(
            (
                machine.name,
                f"{duration(machine.seconds)} at {machine.utilisation:.0%} of {machine.hardware.teraflops:.3g} TFLOP/s "
                f"each ({machine.hardware.precision}); {machine.spent:.2g} FLOPs as time × peak; {fits}",
            )
        )
        rows += [(f"  {way.kind}", _way(way, machine, apart)) for way in machine.ways]
    return columns(rows)


def _way(way: "Parallel", machine: "Elsewhere", apart: str) -> str:
    """Return training by several devices in a sentence."""
    from regard.planning import format_memory
    from regard.training.summary import duration

    update, grows = way.update, way.worthwhile_per_device
    memory = {name: size for name, size in way.memory.items() if name != "program"}
    return (
        f"{duration(way.seconds)}: {update.seconds:.3g} s per update, of which {update.waiting:.2g} s waiting for "
        f"communication ({update.communicating:.2g} s, {update.sent / 1e9:.3g} GB sent by each); efficiency "
        f"{way.efficiency:.0%}, above 50 % up to {way.worthwhile:,} "
        f"{'device' if way.worthwhile == 1 else 'devices'} (with a batch that grows: "
        f"{way.efficiency_per_device:.0%}, up to {f'{grows:,}' if grows else 'more than 65,536'}); each needs "
        f"{format_memory(memory)}{apart}{'' if way.fits else ', which DOES NOT FIT'}"
    )
