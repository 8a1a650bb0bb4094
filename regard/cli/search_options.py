"""Options of search, the same for every verb that translates."""

from pathlib import Path
from typing import Annotated

import typer

from regard.foundation.errors import UsageError

Beam = Annotated[int | None, typer.Option("--beam", min=1, help="Beam width; 1 is greedy.")]
FullBeam = Annotated[
    bool,
    typer.Option("--full-beam", help="Finished outputs leave the beam, which finds better ones but is slower."),
]
LengthPenalty = Annotated[
    float | None,
    typer.Option("--length-penalty", min=0, help="Divide scores by length to this power."),
]
CoveragePenalty = Annotated[
    float,
    typer.Option("--coverage-penalty", min=0, help="Penalty for unattended source words."),
]
Diverse = Annotated[int, typer.Option("--diverse", min=1, help="Number of groups of a diverse beam search.")]
Diversity = Annotated[float, typer.Option("--diversity", min=0, help="Diversity penalty between groups.")]
Sampling = Annotated[bool, typer.Option("--sample", help="Sample outputs from the model.")]
Samples = Annotated[int | None, typer.Option("--samples", min=1, help="Number of samples per line.")]
Mbr = Annotated[
    str | None,
    typer.Option(
        "--mbr",
        help="Choose among samples (with --beam: its outputs): chrf, rouge, meteor:de…",
        metavar="METRIC",
    ),
]
Prefix = Annotated[
    str | None,
    typer.Option("--prefix", help="Outputs begin with this text.", metavar="TEXT"),
]
Require = Annotated[
    list[str] | None,
    typer.Option("--require", help="Every output contains this text; may be repeated.", metavar="TEXT"),
]
Forbid = Annotated[
    Path | None,
    typer.Option(
        "--forbid",
        help="Outputs contain no phrase of this file (cat* is any ending).",
        metavar="FILE",
    ),
]
Only = Annotated[
    Path | None,
    typer.Option("--only", help="Outputs are lines of this file.", metavar="FILE"),
]
Length = Annotated[
    str | None,
    typer.Option(
        "--length",
        help="Number of words of every output, or short: the length of the shortest quarter in training.",
        metavar="N|short",
    ),
]
Constraint = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint", help="A constraint of an extension, with its value; may be repeated.", metavar="NAME=VALUE"
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        help="Keep unchanged: urls, numbers, placeholders, or a regular expression.",
        metavar="KIND",
    ),
]
Split = Annotated[
    bool | None,
    typer.Option(
        "--split/--no-split",
        help="Split lines into sentences; by default only those that are too long for the model.",
    ),
]
Engine = Annotated[
    str,
    typer.Option("--engine", help="native, ctranslate2, ctranslate2-int8, or auto.", metavar="NAME"),
]


def split_constraint(constraint: str) -> tuple[str, str]:
    """Return the name and the value of a constraint."""
    name, equals, value = constraint.partition("=")
    if not equals:
        raise UsageError(f"--constraint is NAME=VALUE, but `{constraint}` has no `=`.")
    return name, value


def read_phrases(path: Path) -> list[str]:
    """Return the lines of a file that are not empty."""
    from regard.data.lines import read_lines

    return [line.strip() for line in read_lines(path) if line.strip()]
