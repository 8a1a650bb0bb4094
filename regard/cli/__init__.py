"""The command line: one file per verb, and one way for everything to end.

A verb is a module with a function of typer-annotated parameters; it imports what is heavy inside that function, so that
`regard --help` needs no torch. Whatever goes wrong is a `RegardError`; `main` prints it and sets the exit code.
"""

import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

import regard
from regard.cli import (
    bench,
    caption,
    compare,
    config,
    contrast,
    demo,
    evaluate,
    export,
    generate,
    import_,
    inspect,
    judge,
    plan,
    predict,
    runs,
    score,
    train,
    translate,
)
from regard.cli.grouped import grouped
from regard.errors import RegardError

EXAMPLES = """
\b
Examples:
  regard train recipes/dates.yaml                 learn to normalise dates
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
app.command(epilog=train.EXAMPLES)(train.train)
app.command(epilog=translate.EXAMPLES, cls=grouped(translate.GROUPS))(translate.translate)
app.command(epilog=generate.EXAMPLES)(generate.generate)
app.command(epilog=caption.EXAMPLES, cls=grouped(caption.GROUPS))(caption.caption)
app.command(epilog=predict.EXAMPLES)(predict.predict)
app.command(epilog=evaluate.EXAMPLES, cls=grouped(evaluate.GROUPS))(evaluate.evaluate)
app.command(epilog=score.EXAMPLES)(score.score)
app.command(epilog=compare.EXAMPLES, cls=grouped(compare.GROUPS))(compare.compare)
app.command(epilog=contrast.EXAMPLES)(contrast.contrast)
app.command()(runs.runs)
app.command(epilog=plan.EXAMPLES)(plan.plan)
app.command("import", epilog=import_.EXAMPLES)(import_.import_)
app.command(epilog=export.EXAMPLES)(export.export)
app.command(epilog=demo.EXAMPLES)(demo.demo)
app.command(epilog=bench.EXAMPLES)(bench.bench)
app.add_typer(inspect.app, name="inspect")
app.add_typer(judge.app, name="judge")
app.add_typer(config.app, name="config")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"regard {regard.__version__}")
        raise typer.Exit


@app.callback()
def _regard(
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # whatever the locale says: what is read is UTF-8 as well
    command = typer.main.get_command(app)
    try:
        with command.make_context("regard", list(sys.argv[1:] if arguments is None else arguments)) as context:
            command.invoke(context)
        sys.stdout.flush()
    except SystemExit:
        raise
    except BaseException as error:
        if os.environ.get("REGARD_DEBUG") == "1" and not isinstance(error, typer.Exit):
            traceback.print_exception(error)
        return _ended(error)
    return 0


def _ended(error: BaseException) -> int:
    """The exit code for what ended a command, after a sentence or two where there is something to say."""
    if isinstance(error, BrokenPipeError):
        # Nobody reads any longer; without this, Python would complain once more while it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return 130
    if isinstance(error, typer.Exit):
        return error.exit_code
    message = _in_words(error)
    if message.startswith("Usage:"):
        print(message, file=sys.stderr)
    else:
        _complain(message)
    return int(getattr(error, "exit_code", 1))


def _in_words(error: BaseException) -> str:
    """What went wrong, in a sentence or two with the remedy."""
    if isinstance(error, RegardError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror or error}."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this: try smaller batches or a smaller model."
    if hasattr(error, "format_message"):  # what typer finds wrong with the arguments
        context = getattr(error, "ctx", None)
        message = str(error.format_message())
        return f"{message}\nTry `{context.command_path} --help`." if context and "Usage:" not in message else message
    return (
        f"this is a bug in Regard ({type(error).__name__}: {str(error)[:500]}).\n"
        "Set REGARD_DEBUG=1 to see where it happened, and please report it."
    )


def _complain(message: str) -> None:
    """Print an error on standard error, in red where that is a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(Text.assemble(("error: ", "bold red"), message))
