"""`regard generate`: text from a language model, with or without a prompt."""

import json
import sys
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.drawing import Seed, Temperature, TopK, TopP, check_sampling_options

CHUNK = 64
"""Prompts per batch of output."""

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
        list[str] | None, typer.Option("--prompt", help="Beginning of the text; may be repeated.", metavar="TEXT")
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option("--prompts", help="A file of prompts, one per line.", metavar="FILE")
    ] = None,
    sampling: Annotated[bool, typer.Option("--sample", help="Sample from the model.")] = False,
    samples: Annotated[int | None, typer.Option("--samples", min=1, help="Number of samples.")] = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Beam width; 1 is greedy.")] = None,
    max_length: Annotated[int | None, typer.Option("--max-length", min=1, help="Largest number of tokens.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per text, with its log-probability.")
    ] = False,
) -> None:
    """Generate texts with a language model, from a prompt or from nothing.

    Each text is one line and includes its prompt.
    """
    from regard.foundation.errors import UsageError
    from regard.runs.run import Run

    drawn = sampling or samples is not None
    check_sampling_options(drawn, temperature, top_k, top_p, seed)
    if drawn and beam is not None:
        raise UsageError("--beam searches for the most likely text and --sample draws at random. Use one of them.")
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
                for hypothesis in found:
                    text = output.whole(start, hypothesis)
                    if as_json:
                        facts = {
                            "prompt": start,
                            "text": text,
                            "log_prob": sum(hypothesis.log_probs),
                            "ended": hypothesis.ended,
                        }
                        print(json.dumps(facts, ensure_ascii=False))
                    else:
                        print(text)
            sys.stdout.flush()
            done += len(chunk)
            if progress and len(begun) > CHUNK:
                progress("writing", done, len(begun))
