"""How much each token that was read had to do with each token that was said: one matrix per method, one pane for all.

Axes: S source tokens, T target tokens; the prefix has T columns, the start symbol first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.evaluation.display import columns
from regard.inspection.drawing import CELL, COLOURS, INK, QUIET, blank, draw_map
from regard.text.specials import SPECIALS
from regard.trace import Side, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALTERNATIVES = 5
"""Tokens shown that might have been said at each step."""


@dataclass(frozen=True)
class Influence:
    """One method's answer. Amounts have a sign and a unit; shares are never negative and sum to one in each row."""

    name: str
    """What people call the method."""
    source: Tensor
    """T×S."""
    prefix: Tensor
    """T×T: row t may have something at columns 0 … t, the tokens that had been read."""
    signed: bool
    """Amounts (in nats) or shares."""
    by_word: tuple[Tensor, Tensor] | None = None
    """The same between words, where that is more than merging: target words × source words, × prefix words."""
    note: str = ""
    """How to read it."""
    splits: bool = True
    """Whether what it gives the source, against the prefix, means anything."""

    @property
    def source_share(self) -> Tensor:
        """What the source has of each row, sizes counted without their sign: T."""
        source, prefix = self.source.abs().sum(-1), self.prefix.abs().sum(-1)
        return source / (source + prefix).clamp(min=torch.finfo(source.dtype).tiny)

    def words(self, trace: Trace) -> tuple[Tensor, Tensor]:
        """Between words: target words × source words, and × prefix words.

        Columns are summed. So are the rows of amounts, as a word's log-probability is the sum of its tokens'; the rows
        of shares are averaged.
        """
        if self.by_word is not None:
            return self.by_word
        source, prefix = trace.source.summed(self.source), trace.inputs.summed(self.prefix)
        if self.signed:
            return trace.target.summed(source.T).T, trace.target.summed(prefix.T).T
        return trace.target.averaged(source), trace.target.averaged(prefix)


def pane(trace: Trace, methods: Sequence[tuple[str, Sequence[Influence]]], **more: Any) -> dict[str, Any]:
    """The data of the view `influence`: the sentence pair, what might have been said, and matrices by question.

    `methods` are (question, its matrices); `more` is added as it is.
    """
    return {
        "source": _side(trace.source),
        "target": _side(trace.target),
        "inputs": _side(trace.inputs),
        "probabilities": _rounded(trace.said.exp()),
        "alternatives": alternatives(trace),
        "questions": [
            {
                "name": question,
                "methods": [
                    {
                        "name": one.name,
                        "signed": one.signed,
                        "note": one.note,
                        "splits": one.splits,
                        "tokens": {"source": _rounded(one.source), "prefix": _rounded(one.prefix)},
                        "words": dict(zip(("source", "prefix"), map(_rounded, one.words(trace)), strict=True)),
                    }
                    for one in found
                ],
            }
            for question, found in methods
        ],
        **more,
    }


def alternatives(trace: Trace) -> list[list[list[Any]]]:
    """The likeliest tokens at each target position, with their probabilities; none where nobody knows their names."""
    if trace.tokenizer is None:
        return [[] for _ in trace.target.ids]
    best = trace.log_probabilities.exp().topk(min(ALTERNATIVES, trace.log_probabilities.shape[1]))
    return [
        [[token_text(trace, token), round(chance, 4)] for token, chance in zip(tokens, chances, strict=True)]
        for tokens, chances in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def token_text(trace: Trace, token: int) -> str:
    """A target token as people read it."""
    if trace.tokenizer is None:
        return SPECIALS[token] if token < len(SPECIALS) else str(token)
    return Side.of(trace.tokenizer, [token]).tokens[0]


def listing(trace: Trace, one: Influence, heads: Sequence[str] = (), cells: Sequence[Sequence[str]] = ()) -> str:
    """For each target token what had most to do with it on both sides; `cells` are more columns of it under `heads`."""
    rows = [["said", "P", *heads, "source", "prefix"]]
    more = cells or [[] for _ in trace.target.ids]
    for place, (token, chance) in enumerate(zip(trace.target.tokens, trace.said.exp().tolist(), strict=True)):
        source = _most(one.source[place], trace.source.tokens, 3, one.signed)
        prefix = _most(one.prefix[place, : place + 1], trace.inputs.tokens[: place + 1], 2, one.signed)
        rows.append([token, f"{chance:.2f}", *more[place], source, prefix])
    return columns(rows, right=range(1, 2 + len(heads)))


def draw_influences(
    trace: Trace, found: Sequence[Influence], shares: Tensor | None = None, flagged: Sequence[bool] = ()
) -> "Figure":
    """Matrices one below the other: the source to the left, the prefix to the right, and a bar of shares if given.

    Amounts are drawn by the largest of their row, shares by the largest of all.
    """
    rows = len(trace.target)
    left, right, gap, above, below = 1.0, 0.4, 0.25, 0.95, 0.25
    wide = [len(trace.source) * CELL, len(trace.inputs) * CELL, 1.0 if shares is not None else 0.0]
    width = left + sum(wide) + gap * 2 + right
    tall = rows * CELL
    height = len(found) * (tall + above + below)
    figure = blank(width, height)
    for number, one in enumerate(found):
        bottom = height - (number + 1) * (tall + above) - number * below
        values = torch.cat([one.source, one.prefix], dim=1)
        largest = values.abs().amax(-1, keepdim=True) if one.signed else values.abs().max()
        shown = torch.split(values / largest.clamp(min=1e-9), [len(trace.source), len(trace.inputs)], dim=1)
        start = left
        for place, side in enumerate((trace.source, trace.inputs)):
            axes = figure.add_axes((start / width, bottom / height, wide[place] / width, tall / height))
            draw_map(axes, shown[place], trace.target.tokens, side.tokens, signed=one.signed)
            if place:
                axes.set_yticks([])
            start += wide[place] + gap
        figure.text(0.01, (bottom + tall + above - 0.2) / height, one.name, fontsize=10, fontweight="bold", color=INK)
        if shares is not None:
            axes = figure.add_axes((start / width, bottom / height, wide[2] / width, tall / height))
            draw_shares(axes, shares, flagged)
    return figure


def draw_shares(axes: Any, shares: Tensor, flagged: Sequence[bool]) -> None:
    """A bar for each row, as long as the source's share; flagged ones are red."""
    inks = [COLOURS[1] if low else COLOURS[0] for low in (flagged or [False] * len(shares))]
    axes.barh(range(len(shares)), shares.tolist(), color=inks, height=0.6)
    axes.set_xlim(0, 1)
    axes.set_ylim(len(shares) - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xticks([0, 0.5, 1], ["0", "½", "1"])
    axes.xaxis.tick_top()
    axes.set_xlabel("source share", fontsize=8, color=QUIET)
    axes.tick_params(length=0, labelsize=8, labelcolor=QUIET)
    axes.spines[["top", "right", "bottom"]].set_visible(False)


def _most(values: Tensor, tokens: Sequence[str], count: int, signed: bool) -> str:
    """The largest of some values with their tokens."""
    places = values.abs().topk(min(count, len(values))).indices.tolist()
    form = "{} {:+.2f}" if signed else "{} {:.2f}"
    return "  ".join(form.format(tokens[place], values[place].item()) for place in places if values[place] != 0)


def _side(side: Side) -> dict[str, Any]:
    return {"tokens": side.tokens, "words": side.words, "wordTexts": side.word_texts, "special": side.special}


def _rounded(values: Tensor) -> list[Any]:
    """Four digits are more than an eye can see, and half the bytes."""
    rounded: list[Any] = (values.double() * 1e4).round().div(1e4).tolist()
    return rounded
