"""Runs that nobody has trained: random weights with their tokenizers, for laws of formats and engines."""

import torch

from regard.config.loading import from_mapping
from regard.foundation.weights import weights_of
from regard.models import build
from regard.runs.run import Run
from regard.tasks.preparation import prepare


def random_run(directory, model, tokenizer="words", target=None, corpus=None):
    """A run with random weights, as if it had been trained."""
    made_up = {"generate": "copy", "size": 300, "symbols": 12, "max_length": 6}
    settings = {
        "data": {"train": corpus or made_up, "held_out": 20},
        "text": {"tokenizer": {"kind": tokenizer}, **({"target": {"kind": target}} if target else {})},
        "model": {"width": 32, **model},
    }
    config = from_mapping(settings)
    run = Run.create(directory, config)
    prepared = prepare(config, directory)
    torch.manual_seed(0)
    made = build(config.model, prepared.task.input.tokenizer.size, prepared.task.output.tokenizer.size)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    sides = {"source": prepared.task.input.tokenizer, "target": prepared.task.output.tokenizer}
    run.note(tokenizers={side: {"fingerprint": each.fingerprint} for side, each in sides.items()}, status="finished")
    run.save_weights(weights_of(made))
    return run


def run_of_two_texts(directory, model=None):
    """The same, whose sources are a context and a question."""
    lines = [f"a b c {a}\td {b}\t{b} {a}" for a in "abcdef" for b in "abcdef"]
    (directory.parent / "asked.tsv").write_text("".join(f"{line}\n" for line in lines * 2))
    corpus = {"tsv": str(directory.parent / "asked.tsv"), "second_column": 2, "target_column": 3}
    return random_run(directory, model or {}, corpus=corpus)
