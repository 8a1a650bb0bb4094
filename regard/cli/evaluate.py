"""`regard evaluate`: a run, or any system's output, against references."""

import json
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
\b
Examples:
  regard evaluate runs/mine                                    on the run's own test data
  regard evaluate runs/mine --source test.en --reference test.de -o results
  regard evaluate --hypotheses out.de --reference test.de --metrics bleu,ter,meteor
  regard evaluate --hypotheses out.de --reference a.de --reference b.de

\b
Metrics: bleu, chrf, ter (by sacrebleu), meteor, cider, exact, edits, tokens; with a run, perplexity.
"""

GROUPS = {
    "What is scored": ("source", "reference", "hypotheses"),
    "How": ("metrics", "language", "beam"),
    "Output": ("output", "as_json"),
}
"""How help groups the options."""


def evaluate(
    run: Annotated[Path | None, typer.Argument(help="Directory of a trained run.", metavar="[RUN]")] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings as key.path=value.", metavar="[KEY=VALUE]...")
    ] = None,
    source: Annotated[Path | None, typer.Option("--source", help="Source sentences, one a line.")] = None,
    reference: Annotated[
        list[Path] | None, typer.Option("--reference", help="Their translations; repeat it for several.")
    ] = None,
    hypotheses: Annotated[
        Path | None, typer.Option("--hypotheses", help="Outputs to score, instead of a run's.")
    ] = None,
    metrics: Annotated[str, typer.Option("--metrics", help="Which, with commas between.")] = "bleu,chrf,exact",
    language: Annotated[
        str | None,
        typer.Option("--language", help="For METEOR: en, de, fr, es, ru or other; by default how --reference ends."),
    ] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Beam width; 1 is greedy.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Directory for hypotheses.txt and scores.json.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Score translations: one path from a model to a number, with the signature that makes it comparable."""
    from regard.errors import UsageError
    from regard.evaluation.display import bar
    from regard.evaluation.evaluation import evaluate_run, evaluate_text
    from regard.evaluation.metrics import make
    from regard.evaluation.texts import read_aligned

    if (run is None) == (hypotheses is None):
        raise UsageError("What is to be scored? Name either a run or --hypotheses FILE.")
    names = list(dict.fromkeys(name.strip() for name in metrics.split(",") if name.strip()))
    if not names:
        raise UsageError("Which metrics? Name at least one, for example --metrics bleu,chrf.")
    given = reference or []
    spoken = language or spoken_in(given)
    make([name for name in names if name != "perplexity"], spoken)
    if hypotheses is not None:
        if not given:
            raise UsageError("Against what? Name the right translations with --reference FILE.")
        outputs, *right = read_aligned(hypotheses, *given)
        found = evaluate_text(outputs, list(zip(*right, strict=True)), names, spoken)
    else:
        import regard

        assert run is not None
        if (source is None) != (not given):
            raise UsageError("--source and --reference belong together: name both, or neither for the run's test data.")
        if source is None:
            sources, references = own_pairs(run)
        else:
            sources, *right = read_aligned(source, *given)
            references = list(zip(*right, strict=True))
        translator = regard.load(run, overrides or [])
        with bar() as progress:
            found = evaluate_run(translator, sources, references, names, spoken, beam=beam, progress=progress)
    if output is not None:
        found.save(output)
    print(json.dumps(found.facts(), indent=2, ensure_ascii=False) if as_json else found)


def spoken_in(references: list[Path]) -> str:
    """The language of files such as `test.de` or `test.de.gz`, for METEOR."""
    from regard.evaluation.meteor import LANGUAGES

    endings = [ending.removeprefix(".") for path in references for ending in path.suffixes]
    return next((ending for ending in endings if ending in LANGUAGES), "other")


def own_pairs(run: Path) -> tuple[list[str], list[tuple[str, ...]]]:
    """The test data of a run, or what it kept for validation if it has none."""
    from regard.data.prepare import prepare
    from regard.run import Run

    prepared = prepare(Run.open(run).config, run)
    pairs = prepared.test_pairs or prepared.validation_pairs
    return [pair.source for pair in pairs], [(pair.target,) for pair in pairs]
