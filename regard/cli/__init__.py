"""The command line: one module per verb, and one place that turns errors into messages and exit codes.

Expected failures are `RegardError`s; `main` prints them and sets the exit code. The verbs are in `regard.cli.verbs`.
"""

import io
import os
import sys
from collections.abc import Sequence

from regard.foundation.errors import RegardError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # regardless of the locale, since inputs are UTF-8 as well
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    was_loud = "REGARD_QUIET" not in os.environ
    options = given[: given.index("--")] if "--" in given else given
    if "--quiet" in options:  # a program option that is also accepted after the verb
        given.remove("--quiet")
        given.insert(0, "--quiet")
    try:
        from regard.cli.fast_path import run_fast_path

        if not run_fast_path(given):
            from typer.main import get_command

            from regard.cli.verbs import app

            command = get_command(app)
            if "_REGARD_COMPLETE" in os.environ:  # a shell asks for completions
                command.main(prog_name="regard")
            with command.make_context("regard", given) as context:
                command.invoke(context)
        sys.stdout.flush()
    except SystemExit:
        raise
    except BaseException as error:
        return _handle_exception(error)
    finally:
        if was_loud:
            os.environ.pop("REGARD_QUIET", None)  # --quiet is for one command
    return 0


def _handle_exception(error: BaseException) -> int:
    """Return the exit code for an exception, after printing its message if it has one."""
    import typer

    if os.environ.get("REGARD_DEBUG") == "1" and not isinstance(error, typer.Exit):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, BrokenPipeError):
        # The reader is gone; without this, Python would report another error when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return 130
    if isinstance(error, typer.Exit):
        return error.exit_code
    message = _format_exception(error)
    if message.startswith("Usage:"):
        print(message, file=sys.stderr)
    else:
        _print_error(message)
    return int(getattr(error, "exit_code", 1))


def _format_exception(error: BaseException) -> str:
    """Return the message of an exception, with the remedy."""
    if isinstance(error, RegardError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror or error}."
    if isinstance(error, MemoryError):
        return "There is not enough memory. Try smaller batches or a smaller model."
    if hasattr(error, "format_message"):  # typer's errors in arguments
        context = getattr(error, "ctx", None)
        message = str(error.format_message())
        return f"{message}\nTry `{context.command_path} --help`." if context and "Usage:" not in message else message
    from regard.config.plugins import extension_of

    if found := extension_of(error):
        extension, place = found
        return (
            f"The extension {extension} failed at {place} ({type(error).__name__}: {str(error)[:500]}).\n"
            "Correct the extension or its input; set REGARD_DEBUG=1 to see the whole traceback."
        )
    return (
        f"This is a bug in Regard ({type(error).__name__}: {str(error)[:500]}).\n"
        "Set REGARD_DEBUG=1 to see where it happened, and please report it."
    )


def _print_error(message: str) -> None:
    """Print an error on standard error, in red on a terminal."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(Text.assemble(("error: ", "bold red"), message))
