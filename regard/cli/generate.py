"""`regard generate`: text from a language model, from nothing or from its beginning."""

import json
import sys
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.drawing import Seed, Temperature, TopK, TopP, check_drawn

CHUNK = 64
"""Beginnings written on before any text is shown."""

EXAMPLES = """
\b
Examples:
  regard generate runs/language-model --sample
  regard generate runs/language-model --prompt "I saw a film" --sample --samples 3 --top-p 0.9 --seed 7
  regard generate runs/language-model --prompt "I saw a film" --beam 5
  regard generate runs/language-model --prompts beginnings.txt --sample --json > texts.jsonl
"""


def generate(
    run: Annotated[Path, typer.Argument(help="Directory of a trained language model.", metavar="RUN")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings as key.path=value.", metavar="[KEY=VALUE]...")
    ] = None,
    prompt: Annotated[
        list[str] | None, typer.Option("--prompt", help="How the text begins; may be repeated.", metavar="TEXT")
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option("--prompts", help="A file of beginnings, one a line.", metavar="FILE")
    ] = None,
    sampling: Annotated[bool, typer.Option("--sample", help="Draw at random from the model.")] = False,
    samples: Annotated[int | None, typer.Option("--samples", min=1, help="How many to draw.")] = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Look for the likeliest text; 1 is greedy.")] = None,
    max_length: Annotated[int | None, typer.Option("--max-length", min=1, help="Most tokens to write.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a text, with its log-probability.")] = False,
) -> None:
    """Generate texts with a language model, from a prompt or from nothing.

    Each text is one line and includes its prompt.
    """
    from regard.foundation.errors import UsageError
    from regard.runs.run import Run

    drawn = sampling or samples is not None
    check_drawn(drawn, temperature, top_k, top_p, seed)
    if drawn and beam is not None:
        raise UsageError("--beam looks for the likeliest text and --sample draws at random. Use one of them.")
    opened = Run.open(run)

    from regard.data.lines import read_lines
    from regard.foundation.display import bar
    from regard.search import Search
    from regard.tasks.loaded import load_run
    from regard.tasks.outputs.document import DocumentOutput

    begun = [*(prompt or []), *(read_lines(prompts) if prompts else [])]
    count = (samples or 1) if drawn else 1
    search = Search(
        beam=beam,
        count=count,
        samples=count if drawn else 0,
        temperature=1.0 if temperature is None else temperature,
        top_k=top_k,
        top_p=top_p,
        seed=seed or 0,
    )
    settings = [*(overrides or []), *([f"decoding.max_length={max_length}"] if max_length else [])]
    writer = load_run(opened, settings, verb="generate")
    output = writer.output
    assert isinstance(output, DocumentOutput)
    prompts_left = iter(begun or [""])
    done = 0
    with bar() as progress:
        while chunk := list(islice(prompts_left, CHUNK)):
            for start, found in zip(chunk, writer.hypotheses(chunk, search), strict=True):
                for one in found:
                    text = output.whole(start, one)
                    if as_json:
                        facts = {"prompt": start, "text": text, "log_prob": sum(one.log_probs), "ended": one.ended}
                        print(json.dumps(facts, ensure_ascii=False))
                    else:
                        print(text)
            sys.stdout.flush()
            done += len(chunk)
            if progress and len(begun) > CHUNK:
                progress("writing", done, len(begun))
