"""`regard new`: write a configuration for a file of examples."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.config.run import RunConfig
    from regard.data.manifest_recognition import Manifest
    from regard.data.recognition import Examples

EXAMPLES = """
\b
Examples:
  regard new codes.csv                                    writes codes.yaml
  regard new reviews.csv --source text --target stars --task classification
  regard new train.en train.de -o en-de.yaml              two parallel files
  regard new clips/clips.tsv                              names of sounds or pictures, and a text for each
"""


def new(
    files: Annotated[
        list[str],
        typer.Argument(
            help="A table (.csv, .tsv, .xlsx, .parquet), .jsonl, .conllu, or two parallel text files. Sources are "
            "texts, or the paths of sounds or pictures.",
            metavar="FILE...",
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            help="translation, classification, regression, tagging, speech-recognition, sound-classification, "
            "captioning or image-classification; recognised by default.",
        ),
    ] = None,
    source: Annotated[str | None, typer.Option("--source", help="Source column.", metavar="COLUMN")] = None,
    target: Annotated[str | None, typer.Option("--target", help="Target column.", metavar="COLUMN")] = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether the first row names the columns.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; by default NAME.yaml.", metavar="FILE")
    ] = None,
) -> None:
    """Write a commented configuration for a file of examples, with its task recognised."""
    from regard.cli.new_configuration import configuration
    from regard.cli.places import check_places
    from regard.config.loading import load
    from regard.data.manifest_recognition import MANIFEST_TARGETS, MANIFEST_TASKS, recognise_media_task, refuse_media
    from regard.data.recognition import TARGETS, TASKS, choose_columns, read_examples, recognise_task
    from regard.foundation import durable
    from regard.foundation.errors import UsageError

    if task is not None and task not in (*TASKS, *MANIFEST_TASKS):
        raise UsageError(f"--task must be one of {', '.join((*TASKS, *MANIFEST_TASKS))}, not {task[:40]}.")
    place = output or Path(Path(files[0].removesuffix(".gz")).stem + ".yaml")
    check_places(place)
    if place.exists() and str(place) not in files:
        raise UsageError(f"{place} exists already. Name another file with -o, or remove it.")
    refuse_media(files)
    examples = read_examples(files, header=header)
    _report(examples)
    manifest = _find_manifest(examples, source, target, task)
    source, common = (manifest.column, MANIFEST_TARGETS) if manifest else (source, TARGETS)
    chosen = choose_columns(examples, source, target, targets=common) or _ask_columns(examples, source, target)
    if examples.kind == "conllu":
        found, reason = "tagging", "CoNLL-U has a tag for every word"
    else:
        _check_columns(examples, chosen)
        sources, targets = (examples.column(name) for name in chosen)
        found, reason = recognise_media_task(manifest.medium, targets) if manifest else recognise_task(sources, targets)
    if task is None:
        task = _ask_task(found, reason, manifest.medium.tasks if manifest else TASKS)
        print(f"Task: {task}" + (f" ({reason}); --task chooses another." if task == found else "."))
    if examples.kind != "conllu":
        print(f"Source column: {chosen[0]}. Target column: {chosen[1]}.")
    durable.write(place, configuration(examples, chosen, task, place, manifest))
    try:
        config = load(place)
        if manifest:
            _check_manifest(config)
    except BaseException:
        place.unlink()
        raise
    _print_next_steps(examples, chosen, task, place, manifest)


def _find_manifest(examples: "Examples", source: str | None, target: str | None, task: str | None) -> "Manifest | None":
    """Return the manifest if sources name sounds or pictures, unless the task reads texts."""
    from regard.data.manifest_recognition import MANIFEST_TASKS, MEDIA, find_files, find_names
    from regard.foundation.errors import UsageError

    if task is not None and task not in MANIFEST_TASKS:
        return None
    named = find_names(examples, source, target)
    wanted = next((medium for medium in MEDIA if task in medium.tasks), None)
    if wanted is not None and (named is None or named[0] is not wanted):
        where = f"the column {source}" if source else "no column"
        raise UsageError(
            f"--task {task} needs the names of {wanted.noun}s ({wanted.formats}), but {where} of {examples.files[0]} "
            f"{'does not have' if source else 'has'} them. Name a table that has, or leave out --task."
        )
    if named is None:
        return None
    manifest = find_files(examples, *named)
    print(f"Column {manifest.column} names {manifest.medium.noun}s of {manifest.folder}.")
    return manifest


def _check_manifest(config: "RunConfig") -> None:
    """Read the manifest as training does, which raises for a row that cannot be used."""
    from regard.config.media_corpora import ImageFiles
    from regard.data.corpus import read

    for _ in read(config.data.train):
        pass
    if isinstance(config.data.train, ImageFiles):
        from regard.data.image_files import check_captions

        check_captions([config.data.train])


def _report(examples: "Examples") -> None:
    """Print what was found in the file."""
    from regard.config.data import FEW_EXAMPLES

    if examples.kind == "conllu":
        return
    more = "" if examples.complete else " (the first ones were inspected)"
    print(f"{' and '.join(examples.files)}: {examples.count:,} examples{more}, columns {', '.join(examples.names)}.")
    if examples.kind == "table":
        known = "names the columns" if examples.header else "is an example, not a header"
        other = "--no-header" if examples.header else "--header"
        print(f"The first row {known}; {other} if that is wrong.")
    if examples.complete and examples.count < FEW_EXAMPLES:
        print(
            f"warning: {examples.count:,} examples are few. A useful model needs at least a few hundred.",
            file=sys.stderr,
        )


def _check_columns(examples: "Examples", chosen: tuple[str, str]) -> None:
    """Raise `UsageError` for a column without texts; warn of a target column that has only one."""
    from regard.foundation.errors import UsageError

    for name in chosen:
        texts = {text.strip() for text in examples.column(name)}
        if not texts - {""}:
            raise UsageError(f"The column {name} of {examples.files[0]} is empty. Choose other columns.")
        if name == chosen[1] and len(texts) == 1:
            print(
                f"warning: all targets are equal ({texts.pop()[:40]!r}), so there is nothing to learn.", file=sys.stderr
            )


def _ask_columns(examples: "Examples", source: str | None, target: str | None) -> tuple[str, str]:
    """Ask for the source and target columns; without a terminal, options are required."""
    from regard.foundation.errors import UsageError

    names = ", ".join(examples.names)
    if len(examples.names) < 2:
        raise UsageError(
            f"{examples.files[0]} has only {len(examples.names)} column, but examples need a source and a target. If "
            "its columns are not separated by commas, name it .tsv, or convert it."
        )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        what = "which is the source and which the target" if source is None else "which is the target"
        raise UsageError(
            f"{examples.files[0]} has the columns {names}, and it is not clear {what}. Add "
            f"{'--source COLUMN ' if source is None else ''}--target COLUMN."
        )
    source = source or typer.prompt(f"Source column? ({names})")
    target = target or typer.prompt(f"Target column? ({names})")
    for name in (source, target):
        examples.column(name)
    return source, target


def _ask_task(found: str, reason: str, tasks: Sequence[str]) -> str:
    """Ask for one of the tasks on a terminal; without one, return the recognised task."""
    from regard.foundation.errors import UsageError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return found
    answer = str(typer.prompt(f"Task ({', '.join(tasks)})? It looks like {found}: {reason}", default=found)).strip()
    if answer not in tasks:
        raise UsageError(f"The task must be one of {', '.join(tasks)}, not {answer[:40]}.")
    return answer


def _print_next_steps(
    examples: "Examples", chosen: tuple[str, str], task: str, place: Path, manifest: "Manifest | None"
) -> None:
    import shlex

    from regard.config.task import TASKS

    run, verb = Path("runs") / place.stem, TASKS[task].output_kind().verb
    sources = manifest.files if manifest else examples.column(chosen[0])
    text = shlex.quote(next((source for source in sources if source.strip()), "some text")[: None if manifest else 60])
    print(f"\nWrote {place}. Next:")
    print(f"  regard train {place}")
    # `regard predict` reads the lines of a file that it is given.
    print(
        f"  echo {text} | regard predict {run}" if manifest and verb == "predict" else f"  regard {verb} {run} {text}"
    )
    print(f"  regard evaluate {run}")
