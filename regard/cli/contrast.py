"""`regard contrast`: contrastive suites (is the correct target more probable?) and word-sense suites."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.evaluation.contrast import Contrast
    from regard.evaluation.senses import Senses

EXAMPLES = """
\b
Examples:
  regard contrast runs/mine suite.tsv
  regard contrast runs/mine suites/*.tsv.gz --per-token --json
  regard contrast runs/mine suite.tsv --control     without the bias towards short or common targets
  regard contrast runs/mine senses.jsonl            good and bad words counted in the translations
  regard contrast runs/mine en-de.key.txt --source en-de.text.txt           the same, in MuCoW's own files

\b
A suite is tab-separated (source, correct, wrong, more wrong ones…; or a header line with source, correct, wrong,
category) or JSON lines with these fields. A word-sense suite has source, good, bad and category instead.
"""


def contrast(
    run: Annotated[Path, typer.Argument(help="Directory of a trained run.", metavar="RUN")],
    suites: Annotated[
        list[Path], typer.Argument(help="Files of items; the name of a file is a category.", metavar="SUITE...")
    ],
    per_token: Annotated[
        bool, typer.Option("--per-token", help="Compare means per token, so that length does not count.")
    ] = False,
    control: Annotated[
        bool,
        typer.Option(
            "--control",
            help="Also score targets with the source of another item, to measure what the right source adds.",
        ),
    ] = False,
    source: Annotated[
        Path | None,
        typer.Option("--source", help="Source sentences of a MuCoW key file, one per line.", metavar="FILE"),
    ] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Beam width of word-sense suites.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Every item with its result, the worst first (.tsv), or the table (.json, .txt).",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Test a model on contrastive suites: is the correct target more probable than the wrong one?

    Suites with a key of word senses count correct and wrong words in translations instead. Results are by category.
    """
    from regard.cli.places import check_ending, check_places, write_by_ending
    from regard.evaluation.contrast import Item, by_model, read_suite, warn_of_equals, warn_of_ids
    from regard.evaluation.contrast import contrast as ask
    from regard.evaluation.senses import SenseItem, count_senses, read_key
    from regard.evaluation.texts import translate_lines
    from regard.foundation import durable
    from regard.foundation.display import bar
    from regard.foundation.errors import UsageError
    from regard.tasks.loaded import load_run

    check_places(output)
    check_ending(output, (".tsv", ".json", ".txt"))
    if source is not None and len(suites) != 1:
        raise UsageError(f"--source belongs to one MuCoW key file, but {len(suites)} suites are named. Name one.")
    items = (
        read_key(suites[0], source) if source is not None else [item for path in suites for item in read_suite(path)]
    )
    scored = [item for item in items if isinstance(item, Item)]
    senses = [item for item in items if isinstance(item, SenseItem)]
    if scored and senses:
        raise UsageError(
            "Some suites have right and wrong targets, others good and bad words. They are measured in different ways. "
            "Run regard contrast once for each kind."
        )
    if senses and (per_token or control):
        raise UsageError(
            "--per-token and --control compare probabilities, but this suite counts words in translations. Leave them "
            "out."
        )
    if scored and beam is not None:
        raise UsageError("--beam has no effect on right and wrong targets: nothing is translated. Leave it out.")
    warnings = [warning for warning in (warn_of_ids(scored or senses), warn_of_equals(scored)) if warning]
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    translator = load_run(run, verb="translate")
    found: Contrast | Senses
    with bar() as progress:
        if senses:
            sources = [item.source for item in senses]
            found = count_senses(senses, translate_lines(translator, sources, beam=beam, progress=progress))
            lines = ["\t".join(" ".join(cell.split()) for cell in row) for row in found.rows()]
        else:
            found = ask(scored, by_model(translator, per_token=per_token, progress=progress), control=control)
            rows = sorted(zip(found.margins, found.items, strict=True), key=lambda row: row[0])
            lines = ["\t".join(("margin", "category", "source", "correct", "wrong"))]
            lines += [
                f"{m:.4f}\t{item.category}\t{item.source}\t{item.correct}\t" + "\t".join(item.wrong) for m, item in rows
            ]
    if output is not None:
        write_by_ending(output, found, {".tsv": lambda path: durable.write(path, "\n".join(lines) + "\n")})
    facts = {**found.facts(), "warnings": warnings}
    print(json.dumps(facts, indent=2, ensure_ascii=False) if as_json else found)
