"""`regard new`: write a configuration for a file of examples."""

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.data.recognition import Examples

EXAMPLES = """
\b
Examples:
  regard new codes.csv                                    writes codes.yaml
  regard new reviews.csv --source text --target stars --task classification
  regard new train.en train.de -o en-de.yaml              two parallel files
"""

SHORT = 40
"""Texts of at most this many characters on average are tokenised into characters."""


def new(
    files: Annotated[
        list[str],
        typer.Argument(
            help="A table (.csv, .tsv, .xlsx, .parquet), .jsonl, .conllu, or two parallel text files.",
            metavar="FILE...",
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option("--task", help="translation, classification, regression or tagging; recognised by default."),
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
    from regard.cli.places import check_places
    from regard.config.loading import load
    from regard.data.recognition import TASKS, choose_columns, read_examples, recognise_task
    from regard.foundation import durable
    from regard.foundation.errors import UsageError

    if task is not None and task not in TASKS:
        raise UsageError(f"--task must be one of {', '.join(TASKS)}, not {task[:40]}.")
    place = output or Path(Path(files[0].removesuffix(".gz")).stem + ".yaml")
    check_places(place)
    if place.exists() and str(place) not in files:
        raise UsageError(f"{place} exists already. Name another file with -o, or remove it.")
    examples = read_examples(files, header=header)
    _report(examples)
    chosen = choose_columns(examples, source, target) or _ask_columns(examples, source, target)
    if examples.kind != "conllu":
        _check_columns(examples, chosen)
    if examples.kind == "conllu":
        found, reason = "tagging", "CoNLL-U has a tag for every word"
    else:
        found, reason = recognise_task(*(examples.column(name) for name in chosen))
    if task is None:
        task = _ask_task(found, reason)
        print(f"Task: {task}" + (f" ({reason}); --task chooses another." if task == found else "."))
    if examples.kind != "conllu":
        print(f"Source column: {chosen[0]}. Target column: {chosen[1]}.")
    durable.write(place, _yaml(examples, chosen, task, place))
    try:
        load(place)
    except BaseException:
        place.unlink()
        raise
    _print_next_steps(examples, chosen, task, place)


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
        raise UsageError(
            f"{examples.files[0]} has the columns {names}, and it is not clear which is the source and which "
            "the target. Add --source COLUMN --target COLUMN."
        )
    source = source or typer.prompt(f"Source column? ({names})")
    target = target or typer.prompt(f"Target column? ({names})")
    for name in (source, target):
        examples.column(name)
    return source, target


def _ask_task(found: str, reason: str) -> str:
    """Ask for the task on a terminal; without one, return the recognised task."""
    from regard.data.recognition import TASKS
    from regard.foundation.errors import UsageError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return found
    answer = str(typer.prompt(f"Task ({', '.join(TASKS)})? It looks like {found}: {reason}", default=found)).strip()
    if answer not in TASKS:
        raise UsageError(f"The task must be one of {', '.join(TASKS)}, not {answer[:40]}.")
    return answer


def _yaml(examples: "Examples", chosen: tuple[str, str], task: str, place: Path) -> str:
    """Return the configuration, with a comment on every choice."""
    sources, targets = (examples.column(name) for name in chosen)
    held = max(1, min(500, examples.count // 10)) if examples.kind != "conllu" else 500
    tested = max(1, min(500, (examples.count - held) // 10)) if examples.kind != "conllu" else 500  # of the others
    parts = [
        f"# Written by `regard new {' '.join(examples.files)}`. Change what you like;",
        f"# `regard config show {place}` prints every other setting with its value.",
        "#",
        f"#   regard train {place}",
        "",
        f"task: {{kind: {task}}}",
        "",
        "data:",
        f"  train: {{{_corpus(examples, chosen)}}}",
        f"  held_out: {held:<12}# examples held out to choose the best step",
        f"  held_out_test: {tested:<7}# examples held out to score once, at the end",
        "",
    ]
    if task == "translation" and _is_short(sources) and _is_short(targets):
        parts.append(_LETTERS)
    else:
        parts.append({"translation": _SENTENCES, "tagging": _TAGGING}.get(task, _POOLED))
    return "\n".join(parts)


def _is_short(texts: list[str]) -> bool:
    return sum(map(len, texts)) <= SHORT * len(texts)


_LETTERS = """\
text:
  tokenizer: {kind: characters}     # short texts are split into characters

model:
  width: 128
  dropout: 0.1
  encoder: {kind: rnn, cell: gru, direction: both}
  decoder: {kind: rnn, cell: gru}
  join: {kind: attention, order: after}

training:
  steps: 1000                       # more if the validation loss still falls at the end
  batch_tokens: 2048
  label_smoothing: 0.0              # there is only one right answer
  schedule: {kind: cosine, warmup: 100}
  optimizer: {learning_rate: 0.004}
  validate_every: 100
"""

_SENTENCES = """\
preset: transformer-tiny            # `regard config presets` lists others

training:
  steps: 3000                       # more if the validation loss still falls at the end
"""

_POOLED = """\
text:
  tokenizer: {kind: words, lower: true}

model:
  width: 128
  dropout: 0.3                      # more for fewer examples
  encoder: {kind: rnn, cell: gru, direction: both}

training:
  steps: 600
  batch_tokens: 1024
  schedule: {kind: cosine, warmup: 50}
  validate_every: 100
"""

_TAGGING = """\
model:
  width: 128
  dropout: 0.3
  encoder: {kind: rnn, cell: gru, direction: both}

training:
  steps: 1000
  batch_tokens: 2048
  label_smoothing: 0.0
  schedule: {kind: cosine, warmup: 100}
  validate_every: 250
"""


def _corpus(examples: "Examples", chosen: tuple[str, str]) -> str:
    files = [_scalar(file) for file in examples.files]
    source, target = map(_scalar, chosen)
    if examples.kind == "paired":
        return f"source: {files[0]}, target: {files[1]}"
    if examples.kind == "conllu":
        return f"conllu: {files[0]}"
    if examples.kind == "jsonl":
        return f"jsonl: {files[0]}, source_field: {source}, target_field: {target}"
    return f"table: {files[0]}, source: {source}, target: {target}" + ("" if examples.header else ", header: false")


def _scalar(text: str) -> str:
    """Return a text as YAML, in quotes unless it is a plain word."""
    plain = re.fullmatch(r"[A-Za-z_./][\w./-]*", text) and text.lower() not in ("true", "false", "null")
    return text if plain else json.dumps(text, ensure_ascii=False)


def _print_next_steps(examples: "Examples", chosen: tuple[str, str], task: str, place: Path) -> None:
    import shlex

    run = Path("runs") / place.stem
    sources = examples.column(chosen[0])
    text = shlex.quote(next((source for source in sources if source.strip()), "some text")[:60])
    verb = "translate" if task == "translation" else "predict"
    print(f"\nWrote {place}. Next:")
    print(f"  regard train {place}")
    print(f"  regard {verb} {run} {text}")
    print(f"  regard evaluate {run}")
