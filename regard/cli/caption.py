"""`regard caption`: captions for images."""

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.drawing import Seed, Temperature, TopK, TopP, check_sampling_options, count_samples
from regard.foundation.display import escape_cell
from regard.foundation.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.inspection.analyses.attention.looks import Look
    from regard.search import Hypothesis, Search
    from regard.tasks.loaded import LoadedRun

CHUNK = 64
"""Images per batch of output."""
MOST_SHOWN = 200
"""Largest number of images on one page."""

EXAMPLES = """
\b
Examples:
  regard caption runs/captions picture.png
  regard caption runs/captions *.png -o page.html              where it looked, word by word
  regard caption runs/captions picture.png -o strip.png        the same as a picture
  regard caption runs/captions *.png --format jsonl > captions.jsonl
  regard caption runs/captions picture.png --beam 5 --n-best 3
  regard caption runs/captions picture.png --sample --samples 5 --temperature 0.8 --seed 7
  regard caption runs/captions "shapes: red circle 0 0, blue star 2 1"
"""

GROUPS = {
    "Input and output": ("output", "form"),
    "Beam search": ("beam", "n_best", "length_penalty", "coverage_penalty"),
    "Sampling": ("sampling", "samples", "temperature", "top_k", "top_p", "seed"),
    "Constraints": ("prefix", "require", "forbid"),
}
"""Groups of options in the help."""


def caption(
    run: Annotated[Path, typer.Argument(help="Directory of a trained run that captions pictures.", metavar="RUN")],
    pictures: Annotated[
        list[str],
        typer.Argument(
            help="Pictures: PNG, JPEG, GIF, BMP or WebP files, paths into zip files, or scenes as text.",
            metavar="PICTURE...",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write a page (.html), picture (.png, .svg, .pdf), .json or .txt.", metavar="FILE"
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="text (a line per picture), tsv (picture, rank, score, caption) or jsonl.",
            metavar="FORMAT",
        ),
    ] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Beam width; 1 is greedy.")] = None,
    n_best: Annotated[
        int | None, typer.Option("--n-best", min=1, help="Number of different captions per picture, best first.")
    ] = None,
    length_penalty: Annotated[
        float | None, typer.Option("--length-penalty", min=0, help="Divide scores by length to this power.")
    ] = None,
    coverage_penalty: Annotated[
        float, typer.Option("--coverage-penalty", min=0, help="Penalty for unattended image regions.")
    ] = 0.0,
    sampling: Annotated[bool, typer.Option("--sample", help="Sample captions from the model.")] = False,
    samples: Annotated[int | None, typer.Option("--samples", min=1, help="Number of samples per picture.")] = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    prefix: Annotated[
        str | None, typer.Option("--prefix", help="Captions begin with this text.", metavar="TEXT")
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option("--require", help="Every caption contains this text; may be repeated.", metavar="TEXT"),
    ] = None,
    forbid: Annotated[
        Path | None,
        typer.Option("--forbid", help="Captions contain no phrase of this file (cat* is any ending).", metavar="FILE"),
    ] = None,
) -> None:
    """Write captions for images.

    Every image gives one line; -o page.html shows where the model looked for each word.
    """
    from regard.cli.inspect.output import check

    sampling_used = sampling or samples is not None
    check_sampling_options(sampling_used, temperature, top_k, top_p, seed)
    if sampling_used and beam is not None:
        raise UsageError("--beam searches for the best caption and --sample draws at random. Use one of them.")
    if form not in (None, "text", "tsv", "jsonl"):
        raise UsageError(f"--format is text, tsv or jsonl, not `{form}`.")
    if output is not None and form is not None:
        raise UsageError(f"The ending of {output} determines the format. Leave out --format.")
    check(output)
    if output is not None and len(pictures) > MOST_SHOWN:
        raise UsageError(f"{len(pictures):,} pictures are too many for one page. Name at most {MOST_SHOWN}.")

    from regard.runs.run import Run

    opened = Run.open(run)
    from regard.data.lines import read_lines
    from regard.search import Constraints, Search
    from regard.tasks.loaded import load_run

    draws, count = count_samples(n_best, samples) if sampling_used else (0, n_best or 1)
    search = Search(
        beam=beam,
        count=count,
        length_penalty=length_penalty,
        coverage_penalty=coverage_penalty,
        samples=draws,
        temperature=1.0 if temperature is None else temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed or 0,
        constraints=Constraints(
            prefix=prefix,
            require=tuple(require or ()),
            forbid=tuple(line.strip() for line in read_lines(forbid) if line.strip()) if forbid else (),
        ),
    )
    captioner = load_run(opened, verb="caption")
    form = form or ("tsv" if count > 1 else "text")
    looks: list[Look] = []
    failed = 0
    try:
        for name, best in _caption_images(captioner, pictures, search):
            if isinstance(best, RegardError):
                failed += 1
                print(f"error: {best}", file=sys.stderr)
                if output is None:
                    print(_format_failure(name, best, form, count))
            elif output is not None:
                looks.append(_look(captioner, name, best))
            else:
                print(_format_captions(name, best, form, count))
                sys.stdout.flush()
    finally:  # show what has been captioned, even after an error
        if output is not None and looks:
            from regard.cli.inspect.output import show
            from regard.inspection.analyses.attention.looks import Looks

            show(Looks(looks), output, as_json=False, run=run)
    if failed:
        raise RegardError(
            f"{failed:,} {'picture' if failed == 1 else 'pictures'} could not be captioned. See the errors above."
        )


def _caption_images(
    captioner: "LoadedRun", pictures: list[str], search: "Search"
) -> "Iterator[tuple[str, list[Hypothesis] | RegardError]]":
    """Yield images with their captions, best first, or with the error that prevented them."""
    from regard.foundation.display import bar
    from regard.tasks.bad_inputs import answer_each

    waiting, done = iter(pictures), 0
    with bar() as progress:
        while chunk := list(islice(waiting, CHUNK)):
            found = answer_each(lambda names: captioner.hypotheses(names, search), chunk)
            yield from zip(chunk, found, strict=True)
            done += len(chunk)
            if progress and len(pictures) > CHUNK:
                progress("captioning", done, len(pictures))


def _format_failure(name: str, error: RegardError, form: str, count: int) -> str:
    """Return the output line of an image that cannot be read; its JSON has the same fields as the others."""
    if form == "jsonl":
        nothing: dict[str, Any] = {"caption": None, "score": None, "confidence": None, "ended": None}
        others: dict[str, Any] = {"others": []} if count > 1 else {}
        return json.dumps({"picture": name, **nothing, **others, "error": str(error)}, ensure_ascii=False)
    return "" if form == "text" else f"{escape_cell(name)}\t\t\t"


def _look(captioner: "LoadedRun", name: str, best: "list[Hypothesis]") -> "Look":
    from regard.inspection.analyses.attention.looks import Look

    trace = captioner.trace_hypothesis(name, best[0])
    return Look.of(trace, [(hypothesis.text, hypothesis.score) for hypothesis in best[1:]])


def _format_captions(name: str, best: "list[Hypothesis]", form: str, count: int) -> str:
    """Return the captions of an image as text, table rows or a JSON object."""
    if form == "jsonl":
        entries: list[dict[str, Any]] = [
            {
                "caption": hypothesis.text,
                "score": round(hypothesis.score, 6),
                "confidence": round(hypothesis.confidence, 6),
                "ended": hypothesis.ended,
            }
            for hypothesis in best
        ]
        others = {"others": entries[1:]} if count > 1 else {}
        return json.dumps({"picture": name, **entries[0], **others}, ensure_ascii=False)
    texts = [" ".join(hypothesis.text.split()) for hypothesis in best]
    if form == "text":
        return "\n".join(texts)
    rows = zip(best, texts, strict=True)
    return "\n".join(
        f"{escape_cell(name)}\t{rank}\t{hypothesis.score:.4f}\t{text}"
        for rank, (hypothesis, text) in enumerate(rows, start=1)
    )
