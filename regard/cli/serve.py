"""`regard serve`: serve trained runs over HTTP."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.foundation.errors import UsageError

if TYPE_CHECKING:
    from regard.serving.catalogue import Languages, ServedModel
    from regard.serving.settings import ServingSettings

EXAMPLES = """
\b
Examples:
  regard serve runs/en-de                                   on 127.0.0.1:5000, for clients of LibreTranslate
  regard serve runs/en-de runs/de-en runs/sentiment --workers 2
  regard serve runs/mine --languages en-de                  if the run does not state its languages
  regard serve news=runs/en-de                              under a name of its own
  regard serve runs/reply                                   suggested replies: /v1/reply, and a demo at /inbox
  regard serve --config serving.yaml                        models, limits, keys, TLS
  curl -s 127.0.0.1:5000/translate -d q="A dog runs." -d source=en -d target=de
"""


def serve(
    runs: Annotated[
        list[str] | None,
        typer.Argument(help="Directories of trained runs, or NAME=RUN.", metavar="[RUN|NAME=RUN]..."),
    ] = None,
    config: Annotated[Path | None, typer.Option("--config", help="A file with settings.", metavar="FILE")] = None,
    host: Annotated[str | None, typer.Option("--host", help="Address to listen on.", metavar="ADDRESS")] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, max=256, help="Worker processes; by default one per core.")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option("--engine", help="native, ctranslate2, ctranslate2-int8, or auto (default).", metavar="NAME"),
    ] = None,
    languages: Annotated[
        list[str] | None,
        typer.Option(
            "--languages",
            help="Languages of the translation runs in their order, as en-de; by default those that a run states.",
            metavar="SOURCE-TARGET",
        ),
    ] = None,
    shutdown_timeout: Annotated[
        float | None, typer.Option("--shutdown-timeout", min=0, help="Seconds to finish requests after SIGTERM.")
    ] = None,
    log: Annotated[str | None, typer.Option("--log", help="text, json or none.", metavar="FORMAT")] = None,
    log_choices: Annotated[
        bool, typer.Option("--log-choices", help="Log which suggested replies are chosen, to improve their ranking.")
    ] = False,
) -> None:
    """Serve trained runs over HTTP: the LibreTranslate protocol, and an API of its own under /v1.

    SIGTERM finishes accepted requests and exits; SIGHUP loads all runs again.
    """
    try:
        from regard.serving.server import count_cores, run_server
        from regard.serving.service import Service
        from regard.serving.settings import ServingSettings, read_settings, settings_from
    except ImportError as error:
        from regard.foundation.installation import install_command

        raise UsageError(
            f"`regard serve` needs {error.name}. Install what it needs with `{install_command('serve')}`."
        ) from None
    from regard.serving.catalogue import Catalogue

    settings = read_settings(config) if config is not None else ServingSettings()
    given = {
        "host": host,
        "port": port,
        "workers": workers,
        "engine": engine,
        "shutdown_seconds": shutdown_timeout,
        "log": log,
        "log_choices": log_choices or None,
    }
    given = {name: value for name, value in given.items() if value is not None}
    settings = settings_from(settings.model_dump() | given, "The command")
    models = _models(runs or [], languages or [], settings)
    catalogue = Catalogue(models)
    processes = settings.workers or count_cores()
    service = Service(catalogue, settings, workers=processes)

    def announce(bound: int) -> None:
        scheme = "https" if settings.certificate else "http"
        workers_text = "worker" if processes == 1 else "workers"
        print(f"Serving on {scheme}://{settings.host}:{bound} with {processes} {workers_text}:", file=sys.stderr)
        for model in catalogue.models.values():
            pair = f", {model.languages}" if model.languages else ""
            print(f"  {model.name}: {model.task}{pair} ({model.engine})", file=sys.stderr)
        sys.stderr.flush()

    run_server(service, settings, announce)


def _models(runs: list[str], pairs: list[str], settings: "ServingSettings") -> "list[ServedModel]":
    """Open the runs of the command line and the settings; ask for languages that are missing."""
    from dataclasses import replace

    from regard.engines.choice import ADDED, ENGINES
    from regard.serving.catalogue import Languages, ServedModel

    models, given = [], iter([Languages.parse(pair) for pair in pairs])
    wanted = [(run, *name_of(run), None, settings.engine) for run in runs]
    listed = [
        (
            model.run,
            model.name or Path(model.run).resolve().name,
            model.run,
            model.languages,
            model.engine or settings.engine,
        )
        for model in settings.models
    ]
    for _, name, run, pair, engine in [*wanted, *listed]:
        if engine not in (*ENGINES, *ADDED):
            raise UsageError(f"The engine must be one of {', '.join((*ENGINES, *ADDED))}, not `{engine}`.")
        model = ServedModel.open(
            Path(run).resolve(), name=name, engine=engine, languages=Languages.parse(pair) if pair else None
        )
        if model.task == "translation":
            model = replace(model, languages=next(given, None) or model.languages or _ask(run))
        models.append(model)
    if next(given, None) is not None:
        raise UsageError("There are more --languages than translation runs. Leave some out.")
    if not models:
        raise UsageError("There is nothing to serve. Name a run, or a settings file with --config.")
    return models


def name_of(argument: str) -> tuple[str, str]:
    """Return the name and the directory of an argument RUN or NAME=RUN."""
    name, mark, run = argument.partition("=")
    if mark and not Path(argument).exists():
        return name, run
    return Path(argument).resolve().name, argument


def _ask(run: str) -> "Languages | None":
    """Ask for the languages of a run; without a terminal, say that they are missing."""
    from regard.serving.catalogue import Languages

    if not sys.stdin.isatty():
        print(
            f"{run} does not state its languages, so it is offered under /v1/translate only. Give them with "
            "--languages en-de, or in its configuration as data.languages.",
            file=sys.stderr,
        )
        return None
    answer = typer.prompt(f"Languages of {run}, such as en-de (empty: none)", default="", show_default=False)
    return Languages.parse(answer.strip()) if answer.strip() else None
