"""`regard compare`: compare runs or outputs, with significance tests."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from regard.tasks.loaded import LoadedRun

EXAMPLES = """
\b
Examples:
  regard compare runs/fixed runs/attention                        on their own test data
  regard compare runs/fixed runs/attention --source test.en --reference test.de -o page.html
  regard compare --system old=old.de --system new=new.de --reference test.de -o length.png
"""

GROUPS = {
    "What is compared": ("source", "reference", "system"),
    "How": ("metrics", "frequencies", "beam", "resamples", "seed"),
    "Output": ("output", "picture", "as_json"),
}
"""Groups of options in the help."""


def compare(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Directories of trained runs; the first is the baseline.", metavar="[RUN]..."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--source", help="Source sentences, one per line; by default the test data of the runs."),
    ] = None,
    reference: Annotated[
        list[Path] | None, typer.Option("--reference", help="Reference translations; may be repeated.")
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option("--system", help="Outputs of a system; may be repeated.", metavar="NAME=FILE"),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics", help="Metrics, separated by commas; by default bleu,chrf, or exact,chrf for short targets."
        ),
    ] = None,
    frequencies: Annotated[
        Path | None, typer.Option("--frequencies", help="Text to count words in, such as the training targets.")
    ] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Beam width; 1 is greedy.")] = None,
    resamples: Annotated[int, typer.Option("--resamples", min=1, help="Resamples of each significance test.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the resamples.")] = 1,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the outputs that differ (.html), scores by length (.png), or the tables (.json, .txt).",
            metavar="FILE",
        ),
    ] = None,
    picture: Annotated[Path | None, typer.Option("--picture", help="PNG of the scores by length.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of tables.")] = False,
) -> None:
    """Compare systems on the same sentences.

    Reports significance, scores by length and word frequency, and the largest gains and losses.
    """
    from regard.cli.evaluate import guess_language
    from regard.cli.places import check_ending, check_places, write_by_ending
    from regard.data.lines import read_lines
    from regard.evaluation import comparison, slices
    from regard.evaluation.length_picture import draw_by_length
    from regard.evaluation.side_by_side import write_page
    from regard.evaluation.texts import named_files, read_aligned, translate_lines
    from regard.foundation.display import bar
    from regard.foundation.errors import UsageError
    from regard.metrics.scoring import make

    check_places(output, picture)
    check_ending(output, (".html", ".png", ".json", ".txt"))
    given, folders = reference or [], runs or []
    if len(folders) + len(system or []) < 2:
        raise UsageError("A comparison needs at least two systems. Name them as runs or with --system NAME=FILE.")
    own = source is None and not given and not system
    if not given and not own:
        raise UsageError("There are no references. Name the correct translations with --reference FILE.")
    if folders and source is None and not own:
        raise UsageError("There are no sources to translate. Name them with --source FILE.")
    names = list(dict.fromkeys(name.strip() for name in (metrics or "").split(",") if name.strip()))
    language = guess_language(given)
    make(names, language)
    files = named_files(system or [])
    if own:
        texts: list[list[str]] = []
        sources, references = _own_pairs(folders)
    else:
        texts = read_aligned(*([source] if source else []), *given, *files.values())
        sources = texts.pop(0) if source else None
        references = list(zip(*texts[: len(given)], strict=True))
    outputs: dict[str, list[str]] = {}
    with bar() as progress:
        for folder in folders:
            name = folder.name if folder.name and folder.name not in outputs else str(folder)
            if name in outputs:
                raise UsageError(f"The run {folder} is named twice. Name each once.")
            outputs[name] = translate_lines(_open(folder), sources or [], beam=beam, progress=progress)
    for name, lines in zip(files, texts[len(given) :], strict=True):
        if name in outputs:
            raise UsageError(f"A run and a file are both called `{name}`. Give the file another name.")
        outputs[name] = lines
    found = comparison.compare(
        outputs,
        references,
        None if metrics is None else names,
        sources=sources,
        sliced_by=_sliced_by(folders),
        counts=slices.frequencies(read_lines(frequencies)) if frequencies else None,
        language=language,
        samples=resamples,
        seed=seed,
    )
    if output is not None:
        forms = {".html": lambda path: write_page(found, path), ".png": lambda path: draw_by_length(found, path)}
        write_by_ending(output, found, forms)
    if picture is not None:
        draw_by_length(found, picture)
    print(json.dumps(found.facts(), indent=2, ensure_ascii=False) if as_json else found)


def _own_pairs(runs: list[Path]) -> tuple[list[str] | None, list[tuple[str, ...]]]:
    """Return the test data of the runs, which must be the same for all of them."""
    from regard.cli.evaluate import own_pairs
    from regard.foundation.errors import UsageError

    first, *others = runs
    found = own_pairs(first)
    for other in others:
        if own_pairs(other) != found:
            raise UsageError(
                f"{first} and {other} have different test data. Name the sentences with --source and --reference."
            )
    return found


def _sliced_by(runs: list[Path]) -> Literal["source", "reference"]:
    """Return the text that defines the slices: the reference for runs that read records, whose JSON is no sentence."""
    from regard.runs.run import Run

    return "reference" if any(Run.open(run).config.task.input_kind().record for run in runs) else "source"


def _open(folder: Path) -> "LoadedRun":
    """Open a run that generates texts, which can be compared."""
    from regard.foundation.errors import UsageError
    from regard.tasks.loaded import load_run

    run = load_run(folder)
    if run.config.task.verb != "translate":
        raise UsageError(
            f"`regard compare` compares texts, but {folder} does something else ({run.config.task.arrow}). Score each "
            f"run with `regard evaluate {folder}`, which gives intervals."
        )
    return run
