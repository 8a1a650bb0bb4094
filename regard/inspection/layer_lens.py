"""What each layer would have said: the logit lens (nostalgebraist, 2020), of decoders and of encoders that answer.

Axes: L layers, B batch (one row for each layer), T target tokens, D width, V vocabulary.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.foundation.display import columns
from regard.foundation.errors import UsageError
from regard.inspection.drawing import INK, KEY, QUIET, blank, draw_key, draw_map, labels
from regard.inspection.page import Panel
from regard.inspection.result import Result
from regard.nn import taps
from regard.nn.taps import Write
from regard.tasks.trace import Side, Trace
from regard.text.normalising import WORD_START
from regard.text.specials import SPECIALS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAYERS = re.compile(r"decoder\.(layers\.\d+\.states|states\.\d+)")
"""The taps behind each decoder layer, of any decoder."""

LOOKS = re.compile(r"looks\.\d+\.states")
"""The taps behind each look at a picture: where there are any, the answer comes from these."""

READING = re.compile(rf"encoder\.(layers\.\d+\.states|states(\.\d+)?)|{LOOKS.pattern}")
"""The taps behind each layer of a model that only reads."""

CONTEXT = "decoder.source_attention.output"
"""What a recurrent decoder found in the source, which its output layer reads beside the state."""

LOGITS = 4_000_000
"""Logits held at a time (16 MB): a long text in a large vocabulary needs no more memory than that."""


@dataclass(frozen=True)
class Lens(Result):
    """For every decoder layer and target position: the rank and probability of the word said, and the likeliest words.

        P_l = softmax(W · readout(h_l) + b)

    where `readout` is all that stands between the last layer and the output layer (final norm, projection; for a
    recurrent decoder also what it found in the source); of the last layer, P_L is the model's own distribution.
    """

    source: Side
    target: Side
    ranks: Tensor
    """L×T: of the word that was said, from 1."""
    probabilities: Tensor
    """L×T: of the word that was said."""
    top: list[list[list[tuple[str, float]]]]
    """For each layer and position its own likeliest words with their probabilities, best first."""

    @property
    def title(self) -> str:
        """The heading of the page."""
        return "What each layer would have said"

    @property
    def decided(self) -> list[int | None]:
        """For each position the first layer (from 0) from which on the word said stays first; none, if it is not."""
        first = (self.ranks == 1).tolist()
        found: list[int | None] = []
        for place in range(len(self.target)):
            layer = len(first)
            while layer > 0 and first[layer - 1][place]:
                layer -= 1
            found.append(None if layer == len(first) else layer)
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain data: everything by layer, then by position."""
        return {
            "source": self.source.tokens,
            "target": self.target.tokens,
            "special": self.target.special,
            "decided": self.decided,
            "layers": [
                {
                    "ranks": ranks,
                    "probabilities": [round(one, 6) for one in probabilities],
                    "top": [[[word, round(share, 6)] for word, share in words] for words in top],
                }
                for ranks, probabilities, top in zip(
                    self.ranks.tolist(), self.probabilities.tolist(), self.top, strict=True
                )
            ],
        }

    def __str__(self) -> str:
        """A row for each word said: each layer's own first word, and the rank of the word said where it is another."""
        rows = [["said", *(f"layer {layer}" for layer in range(len(self.top))), "first from"]]
        for place, (token, decided) in enumerate(zip(self.target.tokens, self.decided, strict=True)):
            cells = []
            for layer, words in enumerate(self.top):
                rank, share = int(self.ranks[layer, place]), float(self.probabilities[layer, place])
                cells.append(f"{words[place][0][0]} {share:.2f}" if rank == 1 else f"{words[place][0][0]} (#{rank:,})")
            rows.append([token, *cells, "–" if decided is None else f"layer {decided}"])
        return columns(rows)

    def draw(self) -> "Figure":
        """Target tokens down, layers across; dark where the word said is likely, with each layer's own first word."""
        layers, length = self.ranks.shape
        wide, tall = 1.15 * layers, 0.27 * length
        width, height = wide + 1.6, tall + 0.8 + KEY
        figure = blank(width, height, self.title)
        axes = figure.add_axes((1.3 / width, KEY / height, wide / width, tall / height))
        names = [f"layer {layer}" for layer in range(layers)]
        draw_map(axes, self.probabilities.T, self.target.tokens, names)
        axes.tick_params(axis="x", labelrotation=0)
        for label in axes.get_xticklabels():
            label.set(ha="center", rotation_mode="default")
        for layer, words in enumerate(self.top):
            for place in range(length):
                said = float(self.probabilities[layer, place])
                ink = INK if int(self.ranks[layer, place]) == 1 else QUIET
                word = labels([words[place][0][0]])[0]
                word = word if len(word) <= 13 else f"{word[:12]}…"
                axes.text(
                    layer, place, word, ha="center", va="center", fontsize=8, color="white" if said > 0.55 else ink
                )
        draw_key(figure, 1.3, "0", "1: the layer's probability of the word said")
        return figure

    def panels(self) -> list[Panel]:
        """A table of words by layers; a click opens one of them."""
        note = (
            "Each row is a token, or a label, that was said, each column a layer. A cell holds the layer's own first "
            "word, had the output layer read it right there; it is filled where the word that was said is likely, and "
            "# is that word's rank where another is first. The last layer is the model itself."
        )
        return [Panel("lens", self.to_json(), note=note)]


def lens(trace: Trace, words: int = 5) -> Lens:
    """Read every layer of a trace as if it were the last: the likeliest `words` of each, and the word said.

    Each layer's states take the place of the last one's in the real model, all else as it was, so that whatever
    stands between the last layer and the words is applied to all alike.
    """
    model, length = trace.model, len(trace.target)
    if trace.numeric:
        raise UsageError("An estimate is one number, and has no rank among others: regard inspect attribute asks why.")
    names = [name for name in trace.activations if (READING if trace.reads_only else LAYERS).fullmatch(name)]
    names = [name for name in names if LOOKS.fullmatch(name)] or names
    write = {names[-1]: _in_turn(torch.stack([trace.activations[name] for name in names]))}
    if CONTEXT in trace.activations:
        write[CONTEXT] = _in_turn(trace.activations[CONTEXT].expand(len(names), -1, -1))
    source, inputs = trace.tensors(len(names))  # L×S (or L×3×H×W) and L×T
    said = torch.tensor(trace.target.ids, device=model.device).repeat(len(names))  # LT
    ranks, probabilities, top = [], [], []
    with torch.no_grad():
        with taps.watch(model, write=write):
            states = model.outputs(source, inputs).flatten(0, 1)  # LT×E
        _check_read(trace, names)
        part = max(1, LOGITS // trace.log_probabilities.shape[1])
        for some, word in zip(torch.split(states, part), torch.split(said, part), strict=True):
            shares = model.scores(some).softmax(-1)  # N×V
            own = shares.gather(1, word[:, None])  # N×1
            ranks.append(1 + (shares > own).sum(1))
            probabilities.append(own[:, 0])
            best = shares.topk(min(words, shares.shape[1]))
            for shown, values in zip(best.indices.tolist(), best.values.tolist(), strict=True):
                top.append([(_text(one, trace), value) for one, value in zip(shown, values, strict=True)])
    return Lens(
        trace.source,
        trace.target,
        torch.cat(ranks).view(-1, length).cpu(),
        torch.cat(probabilities).view(-1, length).cpu(),
        [top[start : start + length] for start in range(0, len(top), length)],
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
    """Refuse a model whose answer does not go through the states of its last layer."""
    if not trace.reads_only:
        return
    without = trace.again({names[-1]: torch.zeros_like})
    if torch.equal(without.log_probabilities, trace.log_probabilities):
        raise UsageError(
            "The answer of this model is not read off the states of its layers, but off the last state of a "
            "recurrence: regard inspect attribute and probe look into it."
        )


def _text(token: int, trace: Trace) -> str:
    """A label, or a token as people read it; its number, where there is no tokenizer."""
    if trace.labels is not None:
        return trace.labels[token]
    tokenizer = trace.tokenizer
    if tokenizer is None or token < len(SPECIALS):
        return SPECIALS[token] if token < len(SPECIALS) else str(token)
    return tokenizer.vocabulary[token].removeprefix(WORD_START) or "␣"
