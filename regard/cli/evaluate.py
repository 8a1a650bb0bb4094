"""`regard evaluate`: score a run of any task, or the outputs of any system, against references."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from regard.evaluation.evaluation import Evaluation
    from regard.evaluation.judged import Judged
    from regard.runs.run import Run

EXAMPLES = """
\b
Examples:
  regard evaluate runs/mine                                    on the run's own test data
  regard evaluate runs/mine --source test.en --reference test.de -o results
  regard evaluate --hypotheses out.de --reference test.de --metrics bleu,ter,meteor
  regard evaluate --hypotheses out.de --reference a.de --reference b.de
  regard evaluate runs/sentiment --data dev.tsv                labels: accuracy, macro-F1, confusion, calibration
  regard evaluate runs/tagging --data test.conllu --json       tags: accuracy, F1 of each
  regard evaluate runs/sentiment --data dev.tsv --hypotheses answers.txt  outputs of regard predict or of another system
  regard evaluate runs/language-model --data test.txt          perplexity

\b
Metrics for texts: bleu, chrf, ter (by sacrebleu), meteor, cider, exact, f1, edits, tokens; with a run, perplexity.
"""

GROUPS = {
    "What is scored": ("data", "source", "reference", "hypotheses"),
    "How": ("metrics", "language", "beam"),
    "Output": ("output", "as_json"),
}
"""Groups of options in the help."""


def evaluate(
    run: Annotated[Path | None, typer.Argument(help="Directory of a trained run.", metavar="[RUN]")] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings as key.path=value.", metavar="[KEY=VALUE]...")
    ] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option("--data", help="Examples in the format of the run's training data, or .conllu, .jsonl."),
    ] = None,
    source: Annotated[Path | None, typer.Option("--source", help="Source sentences, one per line.")] = None,
    reference: Annotated[
        list[Path] | None, typer.Option("--reference", help="Reference translations or labels; may be repeated.")
    ] = None,
    hypotheses: Annotated[
        Path | None, typer.Option("--hypotheses", help="Outputs to score, instead of a run's.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            help="Metrics, separated by commas; by default bleu,chrf,exact, or exact,chrf for short targets.",
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            "--language", help="For METEOR: en, de, fr, es, ru or other; by default the ending of --reference."
        ),
    ] = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Beam width; 1 is greedy.")] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Write the scores (.json or .txt); a directory gets hypotheses.txt and scores.json.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of a table.")] = False,
) -> None:
    """Measure the quality of a run or of a file of outputs.

    Translations are scored with the given metrics and their signatures. Other tasks have their own scores: accuracy
    and macro-F1 of labels and tags, correlation of numbers, perplexity of texts.
    """
    from regard.cli.places import check_places, write_by_ending
    from regard.foundation.errors import UsageError
    from regard.runs.run import Run

    if output is not None and output.suffix.lower() in (".json", ".txt"):
        check_places(output)
    if run is None and hypotheses is None:
        raise UsageError("There is nothing to score. Name either a run or --hypotheses FILE.")
    if run is not None and (source is None) != (not reference):
        raise UsageError("--source and --reference belong together. Name both, or neither for the run's test data.")
    if run is None and data:
        raise UsageError("--data is read in the format of a run's own data. Name the run as well.")
    if data and (source is not None or reference):
        raise UsageError("--data holds sources and references. Leave out --source and --reference.")
    opened = None if run is None else Run.open(run)
    chosen = Chosen(opened, tuple(data or ()), source, tuple(reference or ()), hypotheses, tuple(overrides or ()))
    if opened is not None and opened.config.task.output != "text":
        if metrics is not None or language is not None or beam is not None:
            raise UsageError(
                f"{run} does not translate ({opened.config.task.arrow}), so it is scored by the metrics of its task. "
                "Leave out --metrics, --language and --beam."
            )
        found: Evaluation | Judged = _evaluate_answers(chosen)
    else:
        found = _evaluate_translations(chosen, metrics, language, beam)
    if output is not None and output.suffix.lower() in (".json", ".txt"):
        write_by_ending(output, found, {})
    elif output is not None:
        found.save(output)
    print(json.dumps(found.facts(), indent=2, ensure_ascii=False) if as_json else found)


@dataclass(frozen=True)
class Chosen:
    """The inputs that the user named."""

    run: "Run | None"
    data: tuple[Path, ...]
    source: Path | None
    reference: tuple[Path, ...]
    hypotheses: Path | None
    overrides: tuple[str, ...]


def _evaluate_translations(chosen: Chosen, metrics: str | None, language: str | None, beam: int | None) -> "Evaluation":
    """Score translations of a run, or of another system."""
    from regard.evaluation.evaluation import default_metrics, evaluate_run, evaluate_text
    from regard.evaluation.texts import read_aligned
    from regard.foundation.display import bar
    from regard.foundation.errors import UsageError
    from regard.metrics.scoring import headline_metrics, make

    names = [name.strip() for name in (metrics or "").split(",") if name.strip()]
    if metrics is not None and not names:
        raise UsageError("--metrics is empty. Name at least one, for example --metrics bleu,chrf.")
    names = list(dict.fromkeys(names))
    spoken_language = language or guess_language(list(chosen.reference))
    make([name for name in names if name != "perplexity"], spoken_language)
    if chosen.hypotheses is not None and chosen.run is None:
        if not chosen.reference:
            raise UsageError("There are no references. Name the correct translations with --reference FILE.")
        outputs, *right = read_aligned(chosen.hypotheses, *chosen.reference)
        right_answers = list(zip(*right, strict=True))
        return evaluate_text(outputs, right_answers, names or headline_metrics(right_answers), spoken_language)
    from regard.tasks.loaded import load_run

    assert chosen.run is not None
    sources, references = _pairs(chosen)
    if metrics is None:
        names = list(default_metrics(chosen.run.config, references))
    if chosen.hypotheses is not None:
        (outputs,) = read_aligned(chosen.hypotheses)
        return evaluate_text(outputs, references, names, spoken_language)
    translator = load_run(chosen.run, chosen.overrides, verb="translate")
    with bar() as progress:
        return evaluate_run(translator, sources, references, names, spoken_language, beam=beam, progress=progress)


def _pairs(chosen: Chosen) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return sources and references: those named, or the run's test data."""
    from regard.evaluation.texts import read_aligned

    assert chosen.run is not None
    if chosen.source is not None:
        sources, *right = read_aligned(chosen.source, *chosen.reference)
        return sources, list(zip(*right, strict=True))
    if not chosen.data:
        return own_pairs(chosen.run.directory)
    from regard.evaluation.evaluation import with_references
    from regard.evaluation.judged import read_examples
    from regard.tasks.loaded import load_task

    run = chosen.run
    pairs = read_examples(load_task(run, run.config), chosen.data)
    return with_references(run.config, pairs)


def _evaluate_answers(chosen: Chosen) -> "Evaluation | Judged":
    """Score the outputs of a run that does not translate, or given outputs in their place."""
    from regard.data.corpus import Pair
    from regard.evaluation.evaluation import evaluate_texts
    from regard.evaluation.judged import check_examples, judge_lines, judge_run, read_examples
    from regard.evaluation.texts import read_aligned, read_texts
    from regard.foundation.display import bar
    from regard.foundation.errors import UsageError
    from regard.tasks.loaded import load_run
    from regard.tasks.preparation import prepare
    from regard.training.baseline import stored_baseline

    assert chosen.run is not None
    baseline: dict[str, float] | None = None
    loaded = load_run(chosen.run, chosen.overrides)
    task, title = loaded.task, loaded.config.task.title
    if chosen.hypotheses is not None and not task.output.gives_answers:
        raise UsageError(f"{title} is scored by the probability of texts, so it has no --hypotheses. Leave them out.")
    if chosen.source is not None:
        if len(chosen.reference) > 1 or not task.output.gives_answers:
            raise UsageError(f"{title} has at most one reference for each source. Use --data FILE.")
        sources, right = read_aligned(chosen.source, *chosen.reference)
        given = [Pair(source, label) for source, label in zip(sources, right, strict=True)]
        pairs = check_examples(task, given, chosen.reference[0])
    elif chosen.data:
        pairs = read_examples(task, chosen.data)
    else:
        prepared = prepare(chosen.run.config, chosen.run.directory)
        pairs = prepared.test_pairs or prepared.validation_pairs
        part = "test" if prepared.test_pairs else "validation"
        baseline = stored_baseline(chosen.run.info, part)
    with bar() as progress:
        if chosen.hypotheses is not None:
            return judge_lines(task, read_texts(chosen.hypotheses), pairs)
        if loaded.config.task.output == "document":
            return evaluate_texts(loaded, [pair.source for pair in pairs], progress=progress)
        return replace(judge_run(task, loaded.model, pairs, progress=progress), baseline=baseline)


def guess_language(references: list[Path]) -> str:
    """Return the language of files such as `test.de` or `test.de.gz` by their ending, for METEOR."""
    from regard.metrics.meteor import LANGUAGES

    endings = [ending.removeprefix(".") for path in references for ending in path.suffixes]
    return next((ending for ending in endings if ending in LANGUAGES), "other")


def own_pairs(run: Path) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the test data of a run, or its validation data if it has none."""
    from regard.evaluation.evaluation import with_references
    from regard.runs.run import Run
    from regard.tasks.preparation import prepare

    config = Run.open(run).config
    prepared = prepare(config, run)
    return with_references(config, prepared.test_pairs or prepared.validation_pairs)
