"""`regard calibrate`: fit the confidence of a translation run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.foundation.errors import UsageError

if TYPE_CHECKING:
    from regard.runs.run import Run

EXAMPLES = """
\b
Examples:
  regard calibrate runs/en-de                                       on its own test data
  regard calibrate runs/en-de --source dev.en --target dev.de       on other data that it was not trained on
  regard translate runs/en-de in.txt --with confidence              then: how sure it is of each sentence and word
"""


def calibrate(
    run: Annotated[Path, typer.Argument(help="Directory of a trained translation run.", metavar="RUN")],
    source: Annotated[Path | None, typer.Option("--source", help="Sources, one per line.", metavar="FILE")] = None,
    target: Annotated[Path | None, typer.Option("--target", help="Their references.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Fit a calibrated probability that a translation is good, and that each of its words is right.

    The data must not be training data. The fit is stored in the run as confidence.json, and its figures are measured by
    cross-validation.
    """
    from dataclasses import asdict

    from regard.evaluation.confidence import fit_confidence
    from regard.evaluation.texts import read_aligned
    from regard.foundation.display import bar
    from regard.runs.run import Run
    from regard.tasks.loaded import load_run

    if (source is None) != (target is None):
        raise UsageError("Give both --source and --target, or neither to use the run's own test data.")
    opened = Run.open(run)
    translator = load_run(opened, verb="translate")
    references: Sequence[str | Sequence[str]]
    if source is not None and target is not None:
        sources, references = read_aligned(source, target)
    else:
        sources, references = _own_pairs(opened)
    with bar() as progress:
        found = fit_confidence(translator, sources, references, progress)
    found.save(opened.directory)
    if as_json:
        print(json.dumps(asdict(found)))
        return
    for name, fit in (("sentences", found.sentence), ("words", found.word)):
        constant = fit.base * (1 - fit.base)
        print(
            f"{fit.count:,} {name}, {fit.base:.1%} good: AUC {fit.auc:.3f}, Brier score {fit.brier:.4f} "
            f"(constant: {constant:.4f}), cross-validated"
        )
    print(f"A sentence is good if its chrF is at least {found.good:g}; a word, if the reference has it in that order.")


def _own_pairs(run: "Run") -> tuple[list[str], Sequence[str | Sequence[str]]]:
    """Return the sources and references of a run's test data, or of its validation data if it has no test data."""
    from regard.data.corpus import group_references
    from regard.foundation.display import note
    from regard.tasks.preparation import is_prepared, prepare

    if not is_prepared(run.directory):
        raise UsageError(f"{run.directory} no longer has its data. Give --source and --target.")
    prepared = prepare(run.load_config(), run.directory)
    pairs = prepared.test_pairs
    if not pairs:
        note("The run has no test data; its validation data is used, on which the checkpoint was chosen.")
        pairs = prepared.validation_pairs
    if prepared.task.config.task.several_references:
        return group_references(pairs)
    return [pair.source for pair in pairs], [pair.target for pair in pairs]
