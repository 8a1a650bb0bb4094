"""The logit lens (nostalgebraist, 2020): reads the states of every layer as if it were the last one.

Axes: L layers, B batch (one row for each layer), T target tokens, D width, V vocabulary.
"""

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.foundation.errors import UsageError
from regard.inspection.analyses.lens.result import Lens
from regard.inspection.states import DECODER_LAYERS, end_of_text, layer_name
from regard.nn import taps
from regard.nn.taps import Write
from regard.tasks.trace import Trace
from regard.text.normalising import WORD_START
from regard.text.specials import SPECIALS

LOOKS = re.compile(r"looks\.\d+\.states")
"""The taps after each look at a picture; models that have them answer from these states."""

READING = re.compile(rf"encoder\.(body\.)?(layers\.\d+\.states|states(\.\d+)?)|{LOOKS.pattern}")
"""The taps after each layer of a model without a decoder."""

CONTEXT = "decoder.source_attention.output"
"""The context vector of a recurrent decoder, which its output layer reads together with the state."""

LOGITS = 4_000_000
"""Logits held at a time (16 MB): a long text in a large vocabulary needs no more memory than that."""


INSIDE = re.compile(r"(en|de)coder\.layers\.\d+\.after_(source_)?attention")
"""The taps inside each Transformer layer, between its blocks."""


def lens(trace: Trace, words: int = 5, *, inside: bool = False) -> Lens:
    """Read every layer of a trace as if it were the last: the likeliest `words` of each, and the output word.

    With `inside`, the residual stream after each attention of a Transformer layer is read too.

    Each layer's states replace those of the last one in the real model, and all else is unchanged, so whatever
    comes between the last layer and the words is applied to all layers alike.
    """
    model, length = trace.model, len(trace.target)
    if trace.numeric:
        raise UsageError(
            "An estimate is one number and has no rank among others: regard inspect attribute explains it."
        )
    layers = READING if trace.reads_only else DECODER_LAYERS
    names = [name for name in trace.activations if layers.fullmatch(name)]
    names = [name for name in names if LOOKS.fullmatch(name)] or names
    if inside:
        end = names[-1].partition(".")[0]
        between = [name for name in trace.activations if INSIDE.fullmatch(name) and name.startswith(f"{end}.")]
        if not between:
            raise UsageError("Only Transformer layers have states between their blocks. Leave out --inside.")
        names = [name for name in trace.activations if name in names or name in between]
    write = {names[-1]: _in_turn(torch.stack([trace.activations[name] for name in names]))}
    if CONTEXT in trace.activations:
        write[CONTEXT] = _in_turn(trace.activations[CONTEXT].expand(len(names), -1, -1))
    source, inputs = trace.tensors(len(names))  # L×S (or L×3×H×W) and L×T
    targets = torch.tensor(trace.target.ids, device=model.device).repeat(len(names))  # LT
    ranks, probabilities, top = [], [], []
    with torch.no_grad():
        with taps.watch(model, write=write):
            states = model.outputs(source, inputs).flatten(0, 1)  # LT×E
        _check_read(trace, names)
        part = max(1, LOGITS // trace.log_probabilities.shape[1])
        for some, word in zip(torch.split(states, part), torch.split(targets, part), strict=True):
            shares = model.scores(some).softmax(-1)  # N×V
            own = shares.gather(1, word[:, None])  # N×1
            ranks.append(1 + (shares > own).sum(1))
            probabilities.append(own[:, 0])
            best = shares.topk(min(words, shares.shape[1]))
            for shown, values in zip(best.indices.tolist(), best.values.tolist(), strict=True):
                top.append([(_text(token_id, trace), value) for token_id, value in zip(shown, values, strict=True)])
    return Lens(
        trace.source,
        trace.target,
        torch.cat(ranks).view(-1, length).cpu(),
        torch.cat(probabilities).view(-1, length).cpu(),
        [top[start : start + length] for start in range(0, len(top), length)],
        [layer_name(name) for name in names],
    )


def _in_turn(values: Tensor) -> Write:
    """Put values L×T×D in place, all at once or, inside a recurrence, position by position."""
    done = 0

    def write(was: Tensor) -> Tensor:
        nonlocal done
        start, done = done, done + was.shape[1]
        return values[:, start:done].to(was)

    return write


def _check_read(trace: Trace, names: Sequence[str]) -> None:
    """Refuse a model whose answer does not depend on the states of its last layer."""
    if not trace.reads_only:
        return
    without = trace.again({names[-1]: torch.zeros_like})
    if torch.equal(without.log_probabilities, trace.log_probabilities):
        remedy = ": use regard inspect attribute or probe" if end_of_text(trace.model) else ""
        raise UsageError(
            "The answer of this model does not come from the states of its layers, but from the last state of a "
            f"recurrence{remedy}."
        )


def _text(token: int, trace: Trace) -> str:
    """A label, or a token as people read it; its number, where there is no tokenizer."""
    if trace.labels is not None:
        return trace.labels[token]
    tokenizer = trace.tokenizer
    if tokenizer is None or token < len(SPECIALS):
        return SPECIALS[token] if token < len(SPECIALS) else str(token)
    return tokenizer.vocabulary[token].removeprefix(WORD_START) or "␣"
