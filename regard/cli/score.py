"""`regard score`: what a run thinks of given targets."""

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
"""


def score(
    run: Annotated[Path, typer.Argument(help="Directory of a trained run.")],
    source: Annotated[Path, typer.Option("--source", help="Source sentences, one a line.")],
    target: Annotated[Path, typer.Option("--target", help="Their targets, one a line.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings as key.path=value.", metavar="[KEY=VALUE]...")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON, with every token and every position.")] = False,
) -> None:
    """Print log-probability and perplexity (per token) of each target, and of all of them on standard error."""
    import regard
    from regard.evaluation.display import bar
    from regard.evaluation.likelihood import by_position, likelihoods, position_line, total
    from regard.evaluation.texts import read_aligned

    sources, targets = read_aligned(source, target)
    translator = regard.load(run, overrides or [])
    with bar() as progress:
        found = likelihoods(translator, sources, targets, progress=progress)
    whole, positions = total(found), by_position(found)
    if as_json:
        facts = {
            "total": whole.facts(),
            "sentences": [total([one]).facts() | {"log_probs": one.log_probs} for one in found],
            "positions": [asdict(one) for one in positions],
        }
        print(json.dumps(facts, ensure_ascii=False))
        return
    for one in found:
        print(f"{one.log_prob:.4f}\t{total([one]).per_token:.4f}")
    sys.stdout.flush()
    bits = math.log2(whole.per_character)
    print(
        f"{whole.sentences:,} targets: log-probability {whole.log_prob:,.2f}; perplexity {whole.per_token:.3f} per "
        f"token ({whole.tokens:,}), {whole.per_word:.3f} per word ({whole.words:,}), {whole.per_character:.4f} per "
        f"character ({whole.characters:,}; {bits:.3f} bits). Ends of lines are counted.\n"
        f"Perplexity per token by position: {position_line(positions)}.",
        file=sys.stderr,
    )
