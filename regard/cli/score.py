"""`regard score`: the probability of given targets."""

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """
\b
Examples:
  regard score runs/mine --source test.en --target test.de
  regard score runs/mine --source test.en --target test.de --json > scores.json
  regard score runs/language-model --target test.txt
"""


def score(
    run: Annotated[Path, typer.Argument(help="Directory of a trained run.", metavar="RUN")],
    target: Annotated[Path, typer.Option("--target", help="Targets, or texts for a language model, one per line.")],
    source: Annotated[
        Path | None, typer.Option("--source", help="Their sources, one per line; a language model has none.")
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings as key.path=value.", metavar="[KEY=VALUE]...")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, with every token and every position.")] = False,
) -> None:
    """Print the log-probability and perplexity of given targets.

    Perplexity is per token; the total over all targets goes to standard error.
    """
    from regard.evaluation.likelihood import by_position, likelihoods, position_line, total
    from regard.evaluation.texts import read_aligned
    from regard.foundation.display import bar
    from regard.foundation.errors import UsageError
    from regard.runs.run import Run
    from regard.tasks.loaded import load_run

    if Run.open(run).config.task.output == "document":
        if source is not None:
            raise UsageError(f"{run} is a language model, which has no source. Leave out --source.")
        from regard.evaluation.perplexity import text_likelihoods

        (targets,) = read_aligned(target)
        writer = load_run(run, overrides or [])
        with bar() as progress:
            found = text_likelihoods(writer, targets, progress=progress)
    else:
        if source is None:
            raise UsageError("The sources of the targets are missing. Name them with --source FILE.")
        sources, targets = read_aligned(source, target)
        translator = load_run(run, overrides or [], verb="translate")
        with bar() as progress:
            found = likelihoods(translator, sources, targets, progress=progress)
    whole, positions = total(found), by_position(found)
    if as_json:
        facts = {
            "total": whole.facts(),
            "sentences": [total([likelihood]).facts() | {"log_probs": likelihood.log_probs} for likelihood in found],
            "positions": [asdict(position) for position in positions],
        }
        print(json.dumps(facts, ensure_ascii=False))
        return
    for likelihood in found:
        print(f"{likelihood.log_prob:.4f}\t{total([likelihood]).per_token:.4f}")
    sys.stdout.flush()
    bits = math.log2(whole.per_character)
    print(
        f"{whole.sentences:,} targets: log-probability {whole.log_prob:,.2f}; perplexity {whole.per_token:.3f} per "
        f"token ({whole.tokens:,}), {whole.per_word:.3f} per word ({whole.words:,}), {whole.per_character:.4f} per "
        f"character ({whole.characters:,}; {bits:.3f} bits). Ends of lines are counted.\n"
        f"Perplexity per token by position: {position_line(positions)}.",
        file=sys.stderr,
    )
