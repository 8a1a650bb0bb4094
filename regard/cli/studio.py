"""`regard studio`: see, question and change a model in the browser."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.foundation.errors import UsageError

if TYPE_CHECKING:
    from regard.serving.catalogue import ServedModel

EXAMPLES = """
\b
Examples:
  regard studio runs/en-de                                 opens the browser
  regard studio runs/rnn runs/transformer                  two models side by side
  regard studio runs/en-de --corpus test.en test.de        with a table of a test set
  regard studio runs/en-de --text "A dog runs." --export page.html     one read-only file
"""


LARGEST_BODY = 100_000_000
"""Bytes of a request: an image, or everything that an exported page has."""


def studio(
    runs: Annotated[list[str], typer.Argument(help="Directories of trained runs, or NAME=RUN.", metavar="RUN...")],
    corpus: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--corpus", help="Inputs and references of a test set, line by line.", metavar="INPUTS REFERENCES"
        ),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--text", help="What is shown first; twice for models that read two texts.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", help="Write the studio of --text to one file, and stop.", metavar="FILE.html"),
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = 5050,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """See, question and change a model in the browser.

    Type a sentence, watch the model write, ask why, change something inside, and see what happens. The server listens
    on this machine only; Ctrl-C stops it.
    """
    try:
        from regard.serving.server import run_server
        from regard.serving.service import Service
        from regard.serving.settings import settings_from
    except ImportError as error:
        from regard.foundation.installation import install_command

        raise UsageError(
            f"`regard studio` needs {error.name}. Install what it needs with `{install_command('serve')}`."
        ) from None
    from regard.cli.serve import name_of
    from regard.serving.catalogue import Catalogue, ServedModel
    from regard.serving.studio import LEFT_OUT

    models = [ServedModel.open(Path(run).resolve(), name=name, engine="native") for name, run in map(name_of, runs)]
    for model in models:
        if model.verb in LEFT_OUT:
            raise UsageError(f"{model.run} suggests replies. Use `regard serve {model.run}`, whose inbox shows them.")
    if export is not None:
        _export(models, text, export)
        return
    given = {"host": "127.0.0.1", "port": port, "log": "none", "engine": "native", "limits": {"body": LARGEST_BODY}}
    settings = settings_from(given, "The command")
    service = Service(Catalogue(models), settings, workers=1)
    if corpus is not None:
        service.corpora.append(_corpus(*corpus))

    def announce(bound: int) -> None:
        from regard.serving.studio import address_of

        address = address_of(bound, models[0].name, text)
        print(f"The studio is at {address} (Ctrl-C stops it).", file=sys.stderr, flush=True)
        if browser:
            import webbrowser

            webbrowser.open(address)

    run_server(service, settings, announce)


def _export(models: "list[ServedModel]", text: list[str] | None, export: Path) -> None:
    from regard.foundation import durable
    from regard.foundation.display import bar, note
    from regard.serving.studio import export_page

    if not text:
        raise UsageError('--export needs something to show: give it with --text "…".')
    if export.suffix.lower() != ".html":
        raise UsageError(f"{export} must end in .html.")
    with bar() as progress:
        page = export_page(models, text, progress)
    durable.write(export, page)
    note(f"{export} shows this input without a server.")


def _corpus(source: Path, reference: Path) -> dict[str, Any]:
    """Check the files of a corpus, and describe it."""
    counts = []
    for path in (source, reference):
        try:
            counts.append(len(path.read_text(encoding="utf-8").splitlines()))
        except (OSError, UnicodeDecodeError) as error:
            reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
            raise UsageError(f"{path} cannot be read: {reason}.") from None
    if counts[0] != counts[1]:
        raise UsageError(
            f"{source} has {counts[0]:,} lines, but {reference} has {counts[1]:,}. They must have as many."
        )
    return {"name": source.name, "size": counts[0], "paths": [str(source.resolve()), str(reference.resolve())]}
