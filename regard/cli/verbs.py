"""The verbs of the command line: one file each, registered here.

A verb is a module with a function of typer-annotated parameters; it imports what is heavy inside that function, so that
`regard --help` needs no torch.
"""

import os
from typing import Annotated

import typer

import regard
from regard.cli import (
    bench,
    caption,
    compare,
    config,
    contrast,
    data,
    demo,
    evaluate,
    export,
    generate,
    import_,
    inspect,
    judge,
    new,
    plan,
    predict,
    recipes,
    runs,
    score,
    train,
    transcribe,
    translate,
)
from regard.cli.grouped import grouped

EXAMPLES = """
\b
Examples:
  regard train dates                              learn to normalise dates
  regard train my.yaml model.encoder.kind=rnn     change a setting on the way
  regard translate runs/dates < in.txt            use what was learnt
  regard config show my.yaml                      all that follows from a file
"""

app = typer.Typer(
    help="Sequence-to-sequence models you can see through: train, run, measure, explain.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# The verbs, in the order in which help lists them.
app.command(epilog=new.EXAMPLES)(new.new)
app.command(epilog=train.EXAMPLES)(train.train)
app.command(epilog=translate.EXAMPLES, cls=grouped(translate.GROUPS))(translate.translate)
app.command(epilog=caption.EXAMPLES, cls=grouped(caption.GROUPS))(caption.caption)
app.command(epilog=transcribe.EXAMPLES)(transcribe.transcribe)
app.command(epilog=generate.EXAMPLES)(generate.generate)
app.command(epilog=caption.EXAMPLES, cls=grouped(caption.GROUPS))(caption.caption)
app.command(epilog=predict.EXAMPLES)(predict.predict)
app.command(epilog=evaluate.EXAMPLES, cls=grouped(evaluate.GROUPS))(evaluate.evaluate)
app.command(epilog=score.EXAMPLES)(score.score)
app.command(epilog=compare.EXAMPLES, cls=grouped(compare.GROUPS))(compare.compare)
app.command(epilog=contrast.EXAMPLES)(contrast.contrast)
app.command(epilog=runs.EXAMPLES)(runs.runs)
app.command(epilog=recipes.EXAMPLES)(recipes.recipes)
app.command(epilog=plan.EXAMPLES)(plan.plan)
app.command("import", epilog=import_.EXAMPLES)(import_.import_)
app.command(epilog=export.EXAMPLES)(export.export)
app.command(epilog=demo.EXAMPLES)(demo.demo)
app.command(epilog=bench.EXAMPLES)(bench.bench)
app.add_typer(inspect.app, name="inspect")
app.add_typer(judge.app, name="judge")
app.add_typer(config.app, name="config")
app.add_typer(data.app, name="data")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"regard {regard.__version__}")
        raise typer.Exit


@app.callback()
def _regard(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option("--plugin", help="Extension module to load first; may be repeated.", metavar="MODULE"),
    ] = None,
) -> None:
    if plugin or os.environ.get("REGARD_PLUGINS"):
        from regard.config.plugins import load, load_requested

        load_requested()
        for module in plugin or ():
            load(module)
