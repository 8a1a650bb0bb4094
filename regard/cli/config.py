"""`regard config`: show and convert configurations, their schema and the presets."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.help import PlainGroup, grouped

app = typer.Typer(
    cls=PlainGroup,
    help="Show, describe and convert configurations.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="Example: regard config show my.yaml model.width=128",
)


@app.command(cls=grouped({}), epilog="Example: regard config show my.yaml model.encoder.kind=rnn")
def show(
    file: Annotated[str, typer.Argument(help="A YAML configuration, or the name of a recipe.", metavar="FILE")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings as key.path=value.", metavar="KEY=VALUE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of YAML.")] = False,
) -> None:
    """Print a configuration with all defaults filled in."""
    from regard.config.loading import dump, load
    from regard.recipes import configuration_file

    config = load(configuration_file(file), overrides or [])
    if as_json:
        _print(json.dumps(config.model_dump(mode="json"), indent=2, ensure_ascii=False), "json")
    else:
        _print(dump(config), "yaml")


@app.command(cls=grouped({}), epilog="Example: regard config schema > regard.schema.json")
def schema() -> None:
    """Print the JSON Schema of a configuration file, for completion and checks in editors."""
    from regard.config.schema import json_schema

    _print(json.dumps(json_schema(), indent=2, ensure_ascii=False), "json")


@app.command(cls=grouped({}), epilog="Example: regard config presets bahdanau")
def presets(
    name: Annotated[str | None, typer.Argument(help="Print this one as YAML.", metavar="NAME")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, with all settings.")] = False,
) -> None:
    """List the presets that a file can name with `preset: NAME`, or print one."""
    import yaml

    from regard.config.presets import PRESETS
    from regard.config.schema import nearest
    from regard.foundation.errors import UsageError

    if name is not None and name not in PRESETS:
        meant = nearest(name, PRESETS)
        raise UsageError(f"There is no preset {name}" + (f"; did you mean {meant}?" if meant else "."))
    chosen = PRESETS if name is None else {name: PRESETS[name]}
    if as_json:
        facts = {
            preset_name: {"description": preset.description, "paper": preset.paper, "settings": preset.explicit()}
            for preset_name, preset in chosen.items()
        }
        _print(json.dumps(facts, indent=2, ensure_ascii=False), "json")
    elif name is None:
        _table([(preset_name, _size(preset_name), preset.description) for preset_name, preset in chosen.items()])
    else:
        preset = chosen[name]
        settings = yaml.safe_dump(preset.explicit(), sort_keys=False, allow_unicode=True)
        _print(f"# {name} ({preset.paper}): {preset.description}\n{settings}", "yaml")


@app.command(cls=grouped({}), epilog="Example: regard config convert train.sh -o my.yaml")
def convert(
    file: Annotated[
        str,
        typer.Argument(
            help="A shell script with `fairseq-train`, or the YAML of fairseq-hydra-train, OpenNMT-py or JoeyNMT.",
            metavar="FILE",
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the configuration to this file instead of printing it.")
    ] = None,
) -> None:
    """Convert a configuration of fairseq, OpenNMT-py or JoeyNMT.

    Every setting is kept, with its origin as a comment, or listed with the reason why Regard has no counterpart.
    """
    import sys

    from regard.cli.places import check_places
    from regard.config.migration.conversion import convert_file
    from regard.foundation import durable
    from regard.foundation.errors import UsageError

    if output is not None and output.exists():
        raise UsageError(f"{output} exists already. Name another file with -o, or remove it.")
    check_places(output)
    following = f"check the paths under `data`, then: regard train {shlex.quote(str(output or 'my.yaml'))}"
    converted = convert_file(file, next_command=following)
    if output is None:
        _print(converted, "yaml")
        print(f"Next: save this as my.yaml (-o my.yaml), {following}", file=sys.stderr)
    else:
        durable.write(output, converted)
        print(f"Wrote {output}. Next: {following}")


def _size(name: str) -> str:
    """Return the depth of both sides and the width of a preset, such as `4+4 × 128`."""
    from regard.config.loading import from_mapping

    model = from_mapping({"preset": name, "data": {"train": {"generate": "copy"}}}).model
    depths = [str(getattr(side, "layers", 0)) for side in (model.encoder, model.decoder)]
    return f"{'+'.join(depths)} × {model.width}"


def _table(rows: list[tuple[str, str, str]]) -> None:
    """Print presets as an aligned table that wraps on a terminal; one line each in a pipe."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        for name, size, description in rows:
            print(f"{name:<18} {size:<11} {description}")
        return
    table = Table("preset", "layers × width", "description", box=SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _print(text: str, language: str) -> None:
    """Print a document, coloured on a terminal."""
    from rich.console import Console
    from rich.syntax import Syntax

    console = Console()
    if console.is_terminal:
        console.print(Syntax(text.rstrip("\n"), language, theme="ansi_dark", background_color="default"))
    else:
        print(text.rstrip("\n"))
