"""The verbs of the command line: one module each, imported when its verb is used.

The verb NAME is the module `regard.cli.NAME`: a function NAME with Typer annotations and its `EXAMPLES`, or an `app` of
several commands. Verbs import torch inside their functions, so that `regard --help` does not need it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.main import get_command

import regard
from regard.cli.help import PlainGroup, grouped

SECTIONS = {
    "Start": ("demo", "new", "recipes", "data"),
    "Train": ("train", "prepare", "sweep", "config", "plan", "runs"),
    "Use": ("translate", "bulk", "predict", "generate", "caption", "transcribe", "reply", "serve", "client"),
    "Measure": ("evaluate", "compare", "score", "calibrate", "contrast", "judge", "bench"),
    "Look inside": ("studio", "inspect", "index"),
    "Exchange": ("import", "export"),
}
"""The verbs, under the headings of `regard --help`."""

EXAMPLES = """
\b
Examples:
  regard demo                                     train a date normaliser and show its attention
  regard new products.csv                         write a configuration for your own examples
  regard train my.yaml model.encoder.kind=rnn     train, with a setting changed
  regard translate runs/mine "9. Mai 2018"        use the trained model
  regard help translate                           options and examples of a verb
"""


class Verbs(Mapping[str, Any]):
    """Commands by name; a verb's module is imported when its command is looked up."""

    names = tuple(name for names in SECTIONS.values() for name in names)

    def __getitem__(self, name: str) -> Any:
        if name not in self.names:
            raise KeyError(name)
        module = import_module(f"regard.cli.{name}" if name != "import" else "regard.cli.import_")
        app = getattr(module, "app", None)
        if app is None:
            app = typer.Typer(add_completion=False, rich_markup_mode=None)
            function = getattr(module, module.__name__.rpartition(".")[2])
            app.command(name, epilog=module.EXAMPLES, cls=grouped(getattr(module, "GROUPS", {})))(function)
        command = get_command(app)
        command.name = name
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


class VerbGroup(PlainGroup):
    """The program: its commands are the verbs, and its help lists them by section in whole sentences."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Verbs()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all verbs."""
        return list(self.commands)

    def sections(self) -> Mapping[str, Sequence[str]]:
        """Return the verbs by heading."""
        return SECTIONS


app = typer.Typer(
    cls=VerbGroup,
    help="Sequence-to-sequence models you can see through: train, run, measure and explain them.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 110},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"regard {regard.__version__}")
        raise typer.Exit


@app.callback()
def _regard(
    _version: Annotated[
        bool, typer.Option("--version", "-V", help="Show the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Show no progress and no notes, with any verb; warnings and errors remain.")
    ] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option("--plugin", help="Extension module to load first; may be repeated.", metavar="MODULE"),
    ] = None,
) -> None:
    if quiet:
        os.environ["REGARD_QUIET"] = "1"
    if plugin or os.environ.get("REGARD_PLUGINS"):
        from regard.config.plugins import load, load_requested

        load_requested()
        for module in plugin or ():
            load(module)
