"""`regard prepare`: tokenise a corpus once, for many runs."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from regard.foundation.errors import UsageError

EXAMPLES = """
\b
Examples:
  regard prepare my.yaml --to prepared/my                   clean and tokenise on all cores
  regard train my.yaml data.prepared=prepared/my            then: train on it, as often as you like
  regard prepare my.yaml text.tokenizer.vocabulary=16000 --to prepared/16k --workers 4
"""


def prepare(
    config: Annotated[str, typer.Argument(help="A YAML configuration, or the name of a recipe.", metavar="CONFIG")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings as key.path=value.", metavar="[KEY=VALUE]...")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Directory of the prepared data; by default prepared/NAME of the configuration."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option("--workers", help="Processes that work at the same time; by default as many as cores.", min=1),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Read, clean and tokenise the corpora of a configuration once, for many runs (data.prepared).

    The result does not depend on the number of workers. Settings that do not concern the data (model, training) may
    differ between the runs; a run whose data, text or task settings or corpus files differ is refused. Interrupted, it
    starts over.
    """
    from regard.config.loading import load
    from regard.foundation.display import bar
    from regard.recipes import configuration_file

    if config and "=" in config:
        raise UsageError("Name a configuration first. For example: regard prepare my.yaml --to prepared/my")
    loaded = load(configuration_file(config), overrides or [])
    directory = to or Path("prepared") / Path(config).stem
    from regard.tasks.preparation import prepare_shared
    from regard.training.summary import duration

    start = time.monotonic()
    with bar() as progress:
        prepared, known = prepare_shared(loaded, directory, progress, workers=workers)
    seconds = time.monotonic() - start
    report, tokens = prepared.report, prepared.train.tokens
    if as_json:
        found = {
            "directory": str(directory),
            "prepared_before": known,
            "seconds": round(seconds, 3),
            "pairs": len(prepared.train),
            "tokens": {"source": tokens[0], "target": tokens[1]},
            "vocabularies": {name: one.size for name, one in prepared.task.vocabularies.by_name.items()},
            "report": report.to_json(),
        }
        print(json.dumps(found, ensure_ascii=False))
        return
    print(report)
    for note in report.notes:
        print(f"note: {note}")
    print(f"{sum(tokens):,} tokens ({prepared.task.describe()})")
    print(f"{directory} was prepared before." if known else f"Prepared {directory} in {duration(seconds)}.")
    print(f"Use it: regard train {config} {' '.join([*(overrides or []), f'data.prepared={directory}'])}")
