"""`regard judge`: human evaluation of translations."""

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.help import PlainGroup, grouped

app = typer.Typer(
    cls=PlainGroup,
    help="Let people judge outputs blindly, and count their judgements.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="Example: regard judge make --source test.en --system a=a.de --system b=b.de -o form.html",
)


@app.command(
    cls=grouped({}), epilog="Example: regard judge make --source test.en --system a=a.de --system b=b.de -o form.html"
)
def make(
    source: Annotated[Path, typer.Option("--source", help="Source sentences, one per line.")],
    system: Annotated[
        list[str], typer.Option("--system", help="Outputs of a system; may be repeated.", metavar="NAME=FILE")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The form: .html, or .csv for spreadsheets.")],
    reference: Annotated[
        Path | None, typer.Option("--reference", help="Reference translations, shown to judges if given.")
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of sentences to sample.")] = 50,
    seed: Annotated[int, typer.Option("--seed", help="Seed of sampling and shuffling.")] = 1,
) -> None:
    """Sample sentences, shuffle the outputs of the systems, and write a form that names no system.

    The key that names them is written next to the form as NAME.key.json. Do not show it to the judges.
    """
    from regard.cli.places import check_places
    from regard.evaluation.form import LETTERS, make_form
    from regard.evaluation.texts import named_files, read_aligned
    from regard.foundation import durable
    from regard.foundation.errors import UsageError
    from regard.pages import judge_page

    if output.suffix.lower() not in (".html", ".csv"):
        raise UsageError(f"{output} is neither .html nor .csv. Use one of these endings.")
    check_places(output)
    files = named_files(system)
    sources, *texts = read_aligned(source, *files.values(), *([reference] if reference else []))
    references = texts.pop() if reference else None
    form, key = make_form(sources, dict(zip(files, texts, strict=True)), references, count=count, seed=seed)
    apart = output.with_suffix(".key.json")
    key.save(apart)
    is_page = output.suffix.lower() == ".html"
    durable.write(output, judge_page.render(form.facts(), LETTERS) if is_page else "\ufeff" + form.as_csv())
    print(f"{output}: {len(form.items)} sentences for judges. {apart}: the key; do not show it to them.")
    print(f"next: regard judge score ANSWERS... --key {apart}")


@app.command(
    cls=grouped({}), epilog="Example: regard judge score answers-anna.json answers-ben.json --key form.key.json"
)
def score(
    answers: Annotated[
        list[Path],
        typer.Argument(
            help="Files of the judges: .json saved by the page, or the completed .csv.", metavar="ANSWERS..."
        ),
    ],
    key: Annotated[Path, typer.Option("--key", help="The key of the form.")],
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the resamples.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Print adequacy and fluency of each system, the ranking with intervals, and the agreement of judges."""
    from regard.evaluation.form import Key
    from regard.evaluation.verdicts import count_verdicts, read_answers

    found = count_verdicts(Key.load(key), [read_answers(path) for path in answers], seed=seed)
    print(json.dumps(found.facts(), indent=2, ensure_ascii=False) if as_json else found)
