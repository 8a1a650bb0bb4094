"""`regard translate`: translate raw text with one trained run, or with several as an ensemble."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from regard.cli.drawing import AMONG, Seed, Temperature, TopK, TopP, check_sampling_options, count_samples
from regard.cli.places import check_places
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
from regard.cli.words import split_arguments
from regard.foundation.display import note
from regard.foundation.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.cli.words import Given
    from regard.search import Hypothesis, Search
    from regard.search.tree import Shown
    from regard.tasks.generation import TextGenerator

    Rate = Callable[[Sequence[str], Sequence[Sequence[Hypothesis]]], list[dict[str, object]]]

MBR_TEMPERATURE = 0.7
"""Default temperature of samples for --mbr; label smoothing leaves some probability on every word."""
MOST_SHOWN = 50
"""Largest number of searches on one page."""

EXAMPLES = """
\b
Examples:
  regard translate runs/dates "9. Mai 2018"               text on the command line
  regard translate runs/mine in.txt -o out.txt            resumes after an interruption
  regard translate runs/mine in.txt --beam 1              greedy: fastest
  regard translate runs/mine in.txt --engine ctranslate2  many times faster, if installed
  regard translate runs/mine in.txt --beam 8 --n-best 3   the three best, as a table
  regard translate runs/a runs/b runs/c in.txt            an ensemble
  regard translate runs/mine --sample --temperature 0.8 --top-p 0.9 --seed 7 < in.txt
  regard translate runs/mine --mbr chrf < in.txt          the sample that agrees most with the others
  regard translate runs/mine --mbr chrf --beam 10 < in.txt   the same among the outputs of a beam
  regard translate runs/mine --format jsonl --with scores,alignment,attention < in.txt
  regard translate runs/mine --prefix "Der Mann" --require Fahrrad --forbid words.txt < in.txt
  regard translate runs/mine --keep urls,numbers < in.txt
  regard translate runs/subjects --length 5 < mails.txt   outputs of exactly five words
  regard translate runs/webnlg records.jsonl              one JSON object, or list of triples, a line
  regard translate runs/people people.csv                 one record a row
  regard translate runs/mine --show-search beam.html < in.txt
  regard translate runs/mine --markup html "A <b>dog</b> runs."
  regard translate runs/mine --document film.srt -o film.de.srt
  regard translate runs/mine in.txt model.positions.ntk=2
"""

GROUPS = {
    "Input and output": ("output", "form", "extras", "split", "markup", "document", "engine", "show_search"),
    "Beam search": ("beam", "n_best", "full_beam", "length_penalty", "coverage_penalty", "diverse", "diversity"),
    "Sampling": ("sampling", "samples", "temperature", "top_k", "top_p", "seed", "mbr"),
    "Constraints": ("prefix", "require", "forbid", "only", "length", "constraint", "keep"),
}
"""Groups of options in the help."""

EXTRAS = ("scores", "alignment", "attention", "confidence")


def translate(
    arguments: Annotated[
        list[str],
        typer.Argument(
            help="Directories of trained runs (several are an ensemble), texts or files to translate (none: standard "
            "input), and settings as key.path=value.",
            metavar="RUN... [TEXT|FILE]... [KEY=VALUE]...",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; by default standard output.", metavar="FILE"),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="text (one line per line), tsv (line, rank, score, text) or jsonl.",
            metavar="FORMAT",
        ),
    ] = None,
    extras: Annotated[
        str | None,
        typer.Option("--with", help="More on each output: scores, alignment, attention, confidence.", metavar="LIST"),
    ] = None,
    beam: Beam = None,
    n_best: Annotated[
        int | None, typer.Option("--n-best", min=1, help="Number of different outputs per line, best first.")
    ] = None,
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
    markup: Annotated[
        str | None,
        typer.Option("--markup", help="html: each line is HTML; tags stay around the aligned words.", metavar="FORMAT"),
    ] = None,
    document: Annotated[
        Path | None,
        typer.Option("--document", help="Translate a whole .txt, .html or .srt file.", metavar="FILE"),
    ] = None,
    engine: Engine = "native",
    show_search: Annotated[
        Path | None,
        typer.Option(
            "--show-search",
            help="Write the beam as a tree: a .html page or .json.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Translate text, files or standard input.

    Every input line gives one output line. An argument that is not an existing file is translated as text, unless it
    looks like a file name: no spaces, and an ending such as .txt or a path into an existing directory.
    """
    runs, files, overrides = split_arguments(arguments)
    wanted = _extras(extras)
    count = n_best or 1
    if mbr is not None and samples is None and (sampling or beam is None):
        samples = max(AMONG, count)
    drawn = sampling or samples is not None
    check_sampling_options(drawn, temperature, top_k, top_p, seed)
    if drawn and beam is not None:
        raise UsageError("--beam searches for the best output and --sample draws at random. Use one of them.")
    if drawn and mbr is None:
        samples, count = count_samples(n_best, samples)
    form = form or ("jsonl" if wanted else "tsv" if count > 1 else "text")
    _check_output(form, wanted, show_search, drawn=drawn, split=split)
    check_places(output, show_search)
    if output is not None and any(
        isinstance(file, Path) and file.exists() and output.exists() and file.samefile(output) for file in files
    ):
        raise UsageError(f"{output} is an input and would be overwritten. Name another file with -o.")

    _check_markup(markup, document, files, plain=form == "text" and count == 1 and show_search is None)
    special = (
        wanted,
        drawn,
        mbr,
        full_beam,
        coverage_penalty,
        diverse > 1,
        prefix,
        require,
        forbid,
        only,
        length,
        constraint,
        keep,
        split,
        show_search,
        markup,
        document,
    )
    if engine != "native" and form == "text" and count == 1 and len(runs) == 1 and not any(special):
        from regard.cli.plain_text import translate_plain_text

        if translate_plain_text(engine, runs[0], files, overrides, output, beam, length_penalty, split=split):
            return

    from regard.cli.line_input import chunks, progress
    from regard.cli.partial_output import writing
    from regard.search import Constraints, Search
    from regard.search.options import kept_kinds
    from regard.tasks.lengths import word_limits

    search = Search(
        beam=beam,
        count=count,
        full_beam=full_beam,
        length_penalty=length_penalty,
        coverage_penalty=coverage_penalty,
        groups=diverse,
        diversity=diversity,
        samples=samples or 0,
        temperature=temperature if temperature is not None else 1.0 if mbr is None else MBR_TEMPERATURE,
        top_k=top_k,
        top_p=top_p,
        seed=seed or 0,
        utility=mbr,
        constraints=Constraints(
            prefix=prefix,
            require=tuple(require or ()),
            forbid=tuple(read_phrases(forbid)) if forbid else (),
            only=tuple(read_phrases(only)) if only else None,
            words=None if length is None else word_limits(length, runs[0]),
            extra=dict(split_constraint(text) for text in constraint or ()),
        ),
        keep=kept_kinds(keep or []),
        split=False if show_search or wanted & {"alignment", "attention"} else split,
    )
    from regard.engines.choice import open_engine

    translator = open_engine(engine, runs, overrides, token_scores="scores" in wanted)
    if translator.config.task.input_kind().record and (markup is not None or document is not None):
        raise UsageError("--markup and --document translate texts, but this run reads records. Leave them out.")
    if document is not None:
        from regard.cli.markup import translate_file

        translate_file(translator, search, document, output)
        return
    rate = _rating(runs, overrides) if "confidence" in wanted else None
    shown: list[Shown] | None = [] if show_search else None
    call = [
        *map(str, runs),
        *map(str, files),
        *overrides,
        form,
        sorted(wanted),
        markup,
        mbr,
        engine,
        repr(replace(search, utility=None)),
    ]
    try:
        with (
            writing(output, json.dumps(call), 1 if form == "jsonl" else count) as (stream, done),
            progress(files) as advance,
        ):
            advance(done)
            given = _as_records(files) if translator.config.task.input_kind().record else files
            for chunk in chunks(given, done, translator.config.data.train.texts):
                _translate(translator, search, chunk, stream, "html" if markup else form, wanted, shown, rate)
                stream.flush()
                advance(len(chunk))
        for remark in translator.source.remarks():
            note(remark)
    finally:  # write the searches so far, even if a line cannot be translated
        if show_search is not None:
            _show(show_search, shown or [], translator, runs)


def _as_records(files: "Sequence[Given]") -> "list[Given]":
    """Return files and texts for a run that reads records: the rows of a table as one record a line."""
    from regard.data.record_files import TABLES, table_records

    return [
        "\n".join(table_records(str(file)))
        if isinstance(file, Path) and Path(file.name.removesuffix(".gz")).suffix.lower() in TABLES
        else file
        for file in files
    ]


def _extras(names: str | None) -> set[str]:
    wanted = {name.strip() for name in (names or "").split(",") if name.strip()}
    for name in sorted(wanted - set(EXTRAS)):
        raise UsageError(f"--with accepts {', '.join(EXTRAS)}, not `{name}`.")
    return wanted


def _check_output(form: str, wanted: set[str], show_search: Path | None, *, drawn: bool, split: bool | None) -> None:
    if form not in ("text", "tsv", "jsonl"):
        raise UsageError(f"--format is text, tsv or jsonl, not `{form}`.")
    if form == "text" and wanted:
        raise UsageError("--with needs more than plain text. Use --format jsonl or tsv.")
    if form == "tsv" and wanted & {"attention", "confidence"}:
        raise UsageError(
            "Attention and confidence are tables for each line, which tsv cannot hold. Use --format jsonl."
        )
    if split and wanted & {"alignment", "attention"}:
        raise UsageError("Alignment and attention need whole lines. Leave out --split.")
    if show_search is None:
        return
    if show_search.suffix not in (".html", ".json"):
        raise UsageError(f"--show-search writes .html or .json, not {show_search.name}.")
    if drawn or split:
        raise UsageError(f"--show-search shows a beam over whole lines. Leave out --{'split' if split else 'sample'}.")


def _check_markup(markup: str | None, document: Path | None, files: Sequence[object], *, plain: bool) -> None:
    if markup is None and document is None:
        return
    if markup not in (None, "html"):
        raise UsageError(f"--markup is html, not `{markup}`.")
    if not plain:
        raise UsageError("--markup and --document give plain outputs. Leave out --format, --with and --n-best.")
    if document is not None and (files or markup is not None):
        raise UsageError("--document translates one file. Leave out other texts, files and --markup.")


def _translate(
    translator: "TextGenerator",
    search: "Search",
    chunk: list[tuple[int, str]],
    stream: TextIO,
    form: str,
    wanted: set[str],
    shown: "list[Shown] | None",
    rate: "Rate | None" = None,
) -> None:
    """Translate a chunk of lines and write the outputs in order."""
    if form == "html":
        from regard.cli.markup import translate_lines

        stream.writelines(translate_lines(translator, search, [line for _, line in chunk]))
        return
    from regard.search import SearchTree
    from regard.search.formats import as_object, as_rows
    from regard.search.tree import Shown

    texts = [line for _, line in chunk]
    trees = [SearchTree() for _ in texts] if shown is not None else None
    try:
        found = translator.hypotheses(texts, search, trees=trees)
    except UsageError:
        raise
    except RegardError as error:  # write the lines before the bad one, and name it
        if len(chunk) == 1:
            raise RegardError(f"Line {chunk[0][0]:,}: {error}") from None
        for part in (chunk[: len(chunk) // 2], chunk[len(chunk) // 2 :]):
            _translate(translator, search, part, stream, form, wanted, shown, rate)
        return
    if shown is not None and trees is not None:
        whole = [Shown(*example) for example in zip(texts, trees, found, strict=True) if example[2]]
        shown += whole[: MOST_SHOWN - len(shown)]
    ratings = rate(texts, found) if rate else [{} for _ in texts]
    for (number, source), best, rating in zip(chunk, found, ratings, strict=True):
        explained = (
            [translator.explain(source, hypothesis) for hypothesis in best]
            if wanted & {"alignment", "attention"}
            else best
        )
        if form == "jsonl":
            tokenizers = translator.source.tokenizer, translator.tokenizer
            fields = as_object(number, source, explained, wanted, tokenizers, search.count)
            stream.write(json.dumps(fields | rating, ensure_ascii=False) + "\n")
        else:
            for row in as_rows(number, explained, search.count, wanted):
                stream.write((row[3] if form == "text" else "\t".join(row)) + "\n")


def _rating(runs: Sequence[Path], overrides: Sequence[str]) -> "Rate":
    """Return a function that rates the best hypotheses of texts."""
    if len(runs) > 1:
        raise UsageError("Confidence is that of a single run. Leave out the other runs, or `confidence`.")
    from regard.evaluation.confidence import Confidence, rate_best
    from regard.tasks.loaded import load_run

    Confidence.load(runs[0])
    loaded = load_run(runs[0], overrides, verb="translate")
    return lambda texts, lists: rate_best(loaded, runs[0], texts, lists)


def _show(path: Path, shown: "list[Shown]", translator: "TextGenerator", runs: list[Path]) -> None:
    """Write search trees as a page or as JSON."""
    from regard.foundation import durable
    from regard.pages import tree_page
    from regard.search.tree import tree_data

    names = translator.tokenizer.vocabulary
    content = tree_data(shown, lambda token: names[token])
    if path.suffix == ".html":
        durable.write(path, tree_page.render(content, run=", ".join(map(str, runs))))
    else:
        durable.write(path, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
