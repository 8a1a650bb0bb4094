"""How much each input token influenced each output token: one matrix per method, one set of data for all.

Axes: S source tokens, T target tokens; the prefix has T columns, the start symbol first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.foundation.display import columns
from regard.inspection.drawing import CELL, COLOURS, INK, KEY, LINE, QUIET, draw_key, draw_map, label_height, new_figure
from regard.inspection.gain import Gain
from regard.inspection.plain_data import rounded, rounded_number, side_data
from regard.tasks.trace import Side, Trace
from regard.text.specials import SPECIALS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALTERNATIVES = 5
"""How many alternatives are shown at each output position."""


@dataclass(frozen=True)
class Influence:
    """One method's answer. Amounts have a sign and a unit; shares are never negative and sum to one in each row."""

    name: str
    """The name of the method."""
    source: Tensor
    """T×S."""
    prefix: Tensor
    """T×T: row t has values at columns 0 … t, the tokens that had been read."""
    signed: bool
    """Amounts (in nats) or shares."""
    by_word: tuple[Tensor, Tensor] | None = None
    """The same between words, where that is more than merging: target words × source words, × prefix words."""
    note: str = ""
    """How to read it."""
    splits: bool = True
    """Whether the share of the source, against the prefix, is meaningful."""

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


def influence_data(
    trace: Trace, gain: Gain, methods: Sequence[tuple[str, Sequence[Influence]]], **more: Any
) -> dict[str, Any]:
    """Return the data of the view `influence`: the sentence pair, alternatives, and matrices by question.

    `methods` are (question, its matrices); `more` is added as it is.
    """
    return {
        "source": side_data(trace.source),
        "target": side_data(trace.target),
        "inputs": side_data(trace.inputs),
        "probabilities": rounded(trace.target_log_probs.exp()),
        "alternatives": alternatives(trace),
        "gain": gain.to_json(),
        "questions": [
            {
                "name": question,
                "methods": [
                    {
                        "name": influence.name,
                        "signed": influence.signed,
                        "note": influence.note,
                        "splits": influence.splits,
                        "tokens": {"source": rounded(influence.source), "prefix": rounded(influence.prefix)},
                        "words": dict(zip(("source", "prefix"), map(rounded, influence.words(trace)), strict=True)),
                    }
                    for influence in found
                ],
            }
            for question, found in methods
        ],
        **more,
    }


def alternatives(trace: Trace) -> list[list[list[Any]]]:
    """Return the likeliest tokens at each target position with their probabilities; empty without a tokenizer."""
    if trace.tokenizer is None:
        return [[] for _ in trace.target.ids]
    best = trace.log_probabilities.exp().topk(min(ALTERNATIVES, trace.log_probabilities.shape[1]))
    return [
        [[token_text(trace, token), rounded_number(chance)] for token, chance in zip(tokens, chances, strict=True)]
        for tokens, chances in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]


def token_text(trace: Trace, token: int) -> str:
    """A target token as people read it."""
    if trace.tokenizer is None:
        return SPECIALS[token] if token < len(SPECIALS) else str(token)
    return Side.of(trace.tokenizer, [token]).tokens[0]


def influence_table(
    trace: Trace, gain: Gain, influence: Influence, heads: Sequence[str] = (), cells: Sequence[Sequence[str]] = ()
) -> str:
    """Return a table: for each target token its probability, its gain, and the strongest influences of both sides.

    `cells` are further columns under `heads`. A note below explains ▾.
    """
    rows = [["word", "P", "gain ", *heads, "source", "prefix"]]
    more = cells or [[] for _ in trace.target.ids]
    tokens = zip(
        trace.target.tokens, trace.target_log_probs.exp().tolist(), gain.tokens.tolist(), gain.flagged, strict=True
    )
    for index, (token, chance, gained, low) in enumerate(tokens):
        source = _strongest(influence.source[index], trace.source.tokens, 3, influence.signed)
        prefix = _strongest(influence.prefix[index, : index + 1], trace.inputs.tokens[: index + 1], 2, influence.signed)
        rows.append([token, f"{chance:.2f}", f"{gained:+.2f}{'▾' if low else ' '}", *more[index], source, prefix])
    return f"{columns(rows, right=range(1, 3 + len(heads)))}\n\n{_gain_note(gain)}"


def _gain_note(gain: Gain) -> str:
    """Return the note about the gain below a table."""
    low = [text for text, unsupported in zip(gain.target.word_texts, gain.unsupported, strict=True) if unsupported]
    if not low:
        return "gain: nats by which a token is likelier with its source than with a blank one; no word is below zero."
    some = ", ".join(low[:5]) + (" …" if len(low) > 5 else "")
    return f"▾ less likely with its source than with a blank one (gain, in nats, of the whole word): {some}."


def draw_influences(trace: Trace, gain: Gain, found: Sequence[Influence], shares: Tensor | None = None) -> "Figure":
    """Matrices one below the other: the source to the left, the prefix to the right, then shares if given, and gains.

    Amounts are drawn by the largest of their row, shares by the largest of all.
    """
    rows, sides = len(trace.target), (trace.source, trace.inputs)
    left, right, gap, heading = 1.0, 0.4, 0.25, 0.35
    above = max(label_height(side.tokens) for side in sides) + heading
    wide = [len(side) * CELL for side in sides]
    bars = [("gain, nats", gain.tokens, gain.flagged)]
    if shares is not None:
        bars.insert(0, ("source share", shares, [False] * rows))
    width = left + sum(wide) + gap * 2 + right + len(bars) * (BAR + gap)
    tall = rows * CELL
    below = 0.25 * any(gain.flagged)
    height = len(found) * (tall + above) + KEY + 0.25 + below
    figure = new_figure(width, height)
    for number, influence in enumerate(found):
        bottom = height - (number + 1) * (tall + above)
        values = torch.cat([influence.source, influence.prefix], dim=1)
        largest = values.abs().amax(-1, keepdim=True) if influence.signed else values.abs().max()
        shown = torch.split(values / largest.clamp(min=1e-9), [len(trace.source), len(trace.inputs)], dim=1)
        start = left
        for index, side in enumerate(sides):
            axes = figure.add_axes((start / width, bottom / height, wide[index] / width, tall / height))
            draw_map(axes, shown[index], trace.target.tokens, side.tokens, signed=influence.signed)
            if index:
                axes.set_yticks([])
            axes.set_xlabel(("source", "prefix")[index], fontsize=8, color=QUIET)
            start += wide[index] + gap
        figure.text(
            0.01, (bottom + tall + above - 0.25) / height, influence.name, fontsize=10, fontweight="bold", color=INK
        )
        for name, lengths, flagged in bars if number == 0 else []:
            axes = figure.add_axes((start / width, bottom / height, BAR / width, tall / height))
            draw_bars(axes, name, lengths, flagged)
            start += BAR + gap
    if found[0].signed:
        ends, signed = ("−1: against it", "+1: for it, as the largest of its row"), True
    else:
        most = torch.cat([found[0].source, found[0].prefix], dim=1).max().item()
        ends, signed = ("0", f"{most:.2f} of the row"), False
    draw_key(figure, left + 0.6 * signed, *ends, signed=signed, bottom=0.12 + below)
    if any(gain.flagged):
        note = "red bars: words less likely with their source than with a blank one"
        figure.text(left / width, 0.12 / height, note, fontsize=8, color=COLOURS[1], va="center")
    return figure


BAR = 1.0
"""Inches of a bar at its longest."""


def draw_bars(axes: "Axes", name: str, lengths: Tensor, flagged: Sequence[bool]) -> None:
    """A bar for each row; flagged ones are red."""
    inks = [COLOURS[1] if low else COLOURS[0] for low in flagged]
    axes.barh(range(len(lengths)), lengths.tolist(), color=inks, height=0.6)
    least, most = min(0.0, lengths.min().item()), max(1.0, lengths.max().item())
    axes.set_xlim(least, most)
    axes.set_ylim(len(lengths) - 0.5, -0.5)
    axes.axvline(0, color=LINE, linewidth=0.8)
    axes.set_yticks([])
    ticks = [0, 0.5, 1] if most == 1 else [0, most]
    axes.set_xticks(ticks, [f"{tick:.0f}" if tick != 0.5 else "½" for tick in ticks])
    axes.xaxis.tick_top()
    axes.set_xlabel(name, fontsize=8, color=QUIET)
    axes.tick_params(length=0, labelsize=8, labelcolor=QUIET)
    axes.spines[:].set_visible(False)


def _strongest(values: Tensor, tokens: Sequence[str], count: int, signed: bool) -> str:
    """The largest of some values with their tokens."""
    places = values.abs().topk(min(count, len(values))).indices.tolist()
    form = "{} {:+.2f}" if signed else "{} {:.2f}"
    return "  ".join(
        form.format(tokens[position], values[position].item()) for position in places if values[position] != 0
    )
