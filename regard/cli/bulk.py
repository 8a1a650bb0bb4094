"""`regard bulk`: translate many files with one trained run, by several processes or machines."""

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.drawing import AMONG, Seed, Temperature, TopK, TopP, check_sampling_options
from regard.cli.search_options import (
    Beam,
    Constraint,
    CoveragePenalty,
    Diverse,
    Diversity,
    Engine,
    Forbid,
    FullBeam,
    Keep,
    Length,
    LengthPenalty,
    Mbr,
    Only,
    Prefix,
    Require,
    Samples,
    Sampling,
    Split,
    read_phrases,
    split_constraint,
)
from regard.cli.translate import MBR_TEMPERATURE
from regard.foundation.display import is_quiet, note
from regard.foundation.errors import UsageError

if TYPE_CHECKING:
    from regard.bulk.job import Progress
    from regard.bulk.runner import Runner

RUNNERS = ("processes", "ray")
FAILED_SHOWN = 10
"""Failed files that the summary lists."""

EXAMPLES = """
\b
Examples:
  regard bulk runs/en-de 'corpus/*.jsonl.gz' -o translated/               one worker process per core
  regard bulk runs/en-de corpus/ -o translated/ --engine ctranslate2      many times faster, if installed
  regard bulk runs/en-de data.parquet -o out/ --field en --into de        names of the columns
  regard bulk runs/webnlg records.jsonl -o out/                           a record a line, as JSON
  regard bulk runs/en-de corpus/ -o translated/ --shard 3/64              the third of 64 jobs of a scheduler
  regard bulk runs/en-de corpus/ -o translated/ --on ray                  with Ray, here or on a cluster
  regard bulk runs/en-de corpus/ -o translated/ --json > summary.json
"""

GROUPS = {
    "Input and output": ("output", "form", "field", "into", "as_json"),
    "Workers": ("on", "workers", "shard", "engine"),
    "Beam search": ("beam", "full_beam", "length_penalty", "coverage_penalty", "diverse", "diversity"),
    "Sampling": ("sampling", "samples", "temperature", "top_k", "top_p", "seed", "mbr"),
    "Constraints": ("prefix", "require", "forbid", "only", "length", "constraint", "keep", "split"),
}
"""Groups of options in the help."""


def bulk(
    run: Annotated[Path, typer.Argument(help="Directory of a trained run.", metavar="RUN")],
    arguments: Annotated[
        list[str],
        typer.Argument(
            help="Files, directories or patterns in quotation marks (.txt, .tsv, .jsonl, each also .gz; .parquet), and "
            "settings as key.path=value.",
            metavar="INPUT... [KEY=VALUE]...",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Directory of the outputs, one for each input.", metavar="DIR")
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="text, tsv, jsonl or parquet; by default from the ending of each file.", metavar="FORMAT"
        ),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(
            "--field",
            help="Field or column of the source; by default `source`, the first column of a TSV file without a header, "
            "and the whole line of JSON for runs that read records. A number counts columns of a TSV file without a "
            "header.",
            metavar="NAME",
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            "--into", help="Field or column of the translation; by default `translation`. It is replaced if it exists."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    on: Annotated[str, typer.Option("--on", help="processes or ray.", metavar="RUNNER")] = "processes",
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, max=10_000, help="Workers, one core each; by default one per core."),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            help="Translate the files of one of N jobs: 3/64. All of them can write to the same directory.",
            metavar="I/N",
        ),
    ] = None,
    engine: Engine = "native",
    beam: Beam = None,
    full_beam: FullBeam = False,
    length_penalty: LengthPenalty = None,
    coverage_penalty: CoveragePenalty = 0.0,
    diverse: Diverse = 1,
    diversity: Diversity = 0.5,
    sampling: Sampling = False,
    samples: Samples = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    mbr: Mbr = None,
    prefix: Prefix = None,
    require: Require = None,
    forbid: Forbid = None,
    only: Only = None,
    length: Length = None,
    constraint: Constraint = None,
    keep: Keep = None,
    split: Split = None,
) -> None:
    """Translate many files, and resume after any interruption.

    Every input gets an output of the same format and name. The same command continues an interrupted job: finished
    files are final, and of the others every block of lines that was translated is kept. Lines that cannot be translated
    are written to NAME.quarantine.jsonl and have an empty translation.
    """
    if on not in RUNNERS:
        raise UsageError(f"--on is {' or '.join(RUNNERS)}, not `{on}`.")
    drawn = sampling or samples is not None or (mbr is not None and beam is None)
    if samples is not None and mbr is None:
        raise UsageError("--samples is for --mbr, which chooses among them. For one sample of each line use --sample.")
    check_sampling_options(drawn, temperature, top_k, top_p, seed)
    if drawn and beam is not None:
        raise UsageError("--beam searches for the best output and --sample draws at random. Use one of them.")
    from regard.bulk.decoding_options import Assignment, DecodingOptions
    from regard.bulk.input_files import Part, find_shards
    from regard.bulk.job import BulkJob
    from regard.cli.words import is_setting
    from regard.config.plugins import loaded

    inputs = [argument for argument in arguments if not is_setting(argument)]
    if not inputs:
        raise UsageError("Name files, directories or patterns to translate, such as 'corpus/*.jsonl.gz'.")
    decoding = DecodingOptions(
        beam=beam,
        length_penalty=length_penalty,
        full_beam=full_beam,
        coverage_penalty=coverage_penalty,
        groups=diverse,
        diversity=diversity,
        samples=0 if not drawn else 1 if mbr is None else samples or AMONG,
        temperature=temperature if temperature is not None else 1.0 if mbr is None else MBR_TEMPERATURE,
        top_k=top_k,
        top_p=top_p,
        seed=seed or 0,
        utility=mbr,
        prefix=prefix,
        require=tuple(require or ()),
        forbid=tuple(read_phrases(forbid)) if forbid else (),
        only=tuple(read_phrases(only)) if only else None,
        length=length,
        extra=dict(split_constraint(text) for text in constraint or ()),
        keep=tuple(keep or ()),
        split=split,
    )
    overrides = tuple(argument for argument in arguments if is_setting(argument))
    job = BulkJob(
        shards=find_shards(inputs, output, form),
        output=output,
        assignment=Assignment(str(run.absolute()), engine, overrides, decoding, loaded()),
        part=Part.parse(shard) if shard else Part(),
        source_field=field,
        into=into,
        form=form,
    )

    def make_runner() -> "Runner":
        if on == "ray":
            from regard.bulk.ray_runner import RayRunner

            return RayRunner(job.assignment, workers)
        from regard.bulk.local_runner import LocalRunner

        return LocalRunner(job.assignment, workers)

    try:
        with _signals(), _display() as report:
            done = job.run(make_runner, report)
    except KeyboardInterrupt:
        note("Stopped. Everything translated so far is kept; the same command resumes.")
        raise
    _show_summary(done, output, as_json=as_json)
    if done.failed:
        raise typer.Exit(1)


@contextmanager
def _signals() -> Iterator[None]:
    """Let SIGTERM stop the job as Ctrl-C does; each only once, so that closing it is not interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        for number in before:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before: dict[int, Any] = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _display() -> "Iterator[Callable[[Progress], None]]":
    """Show progress on a terminal; yields a function that takes it."""
    if is_quiet() or not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    bar = Bar(BarColumn(), TextColumn("{task.description}"), console=Console(stderr=True), transient=True)
    task = bar.add_task("starting …", total=None)

    def report(progress: "Progress") -> None:
        whole = progress.bytes + max(progress.bytes_left, 0)
        bar.update(task, description=describe(progress), completed=progress.bytes, total=whole)

    with bar:
        yield report


def describe(progress: "Progress") -> str:
    """Return one line about the progress of a job."""
    facts = progress.facts()
    parts = [
        f"{progress.lines:,} lines",
        f"{facts['lines_per_second']:,.0f} lines/s",
        f"{facts['tokens_per_second']:,.0f} tokens/s",
        f"{progress.finished:,} of {progress.files:,} files",
    ]
    if progress.quarantined:
        parts.append(f"{progress.quarantined:,} quarantined")
    if progress.failed:
        parts.append(f"{len(progress.failed):,} failed")
    if progress.seconds_left is not None:
        seconds = round(progress.seconds_left)
        parts.append(f"{seconds // 3600}:{seconds % 3600 // 60:02}:{seconds % 60:02} left")
    return " · ".join(parts)


def _show_summary(done: "Progress", output: Path, *, as_json: bool) -> None:
    """Print what was done: as JSON on standard output, or in sentences on standard error."""
    if as_json:
        print(json.dumps({"output": str(output), **done.facts()}, ensure_ascii=False, indent=1))
    for name, reason in list(done.failed.items())[:FAILED_SHOWN]:
        print(f"{name}: {reason}", file=sys.stderr)
    if as_json:
        return
    facts = done.facts()
    earlier = f" (and {done.earlier:,} earlier)" if done.earlier else ""
    note(
        f"Finished files: {done.finished:,} of {done.files:,}, in {output}. Lines: {done.lines:,}{earlier}, "
        f"{facts['lines_per_second']:,.0f} lines/s, {facts['tokens_per_second']:,.0f} tokens/s."
    )
    if done.cut:
        note(
            f"Lines longer than this run reads: {done.cut:,} of the {done.lines:,} translated now. Only the beginning "
            "of each was read, and the rest left out (data.cleaning.max_length)."
        )
    if done.quarantined:
        note(f"Lines that could not be translated: {done.quarantined:,}, in NAME.quarantine.jsonl next to the outputs.")
    if done.failed:
        print(
            f"Files that could not be translated: {len(done.failed):,}. Correct them, then run the same command again.",
            file=sys.stderr,
        )
