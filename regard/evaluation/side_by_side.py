"""A comparison as a page to read, and as the picture that made attention famous: scores by length."""

import base64
import difflib
import importlib.util
import io
from pathlib import Path
from typing import Any

from regard import durable
from regard.errors import RegardError
from regard.evaluation.comparison import Comparison, Sentence, Table
from regard.evaluation.metrics import METRICS
from regard.evaluation.page import escape, page

INK, GRID = "#333333", "#e3e3e3"
COLOURS = ("#9db8d2", "#c0504d", "#1f4e79", "#e0a030", "#4f8f5b", "#7a5195")
SHOWN = 1000
"""Sentences on a page: those that differ most."""

SCRIPT = """
const list = document.getElementById('sentences'), order = document.getElementById('order');
const cards = [...list.children];
const keys = {gain: card => -card.dataset.gain, loss: card => +card.dataset.gain, line: card => +card.dataset.line,
  worst: card => +card.dataset.score};
order.onchange = () => { const key = keys[order.value]; cards.sort((a, b) => key(a) - key(b)); list.append(...cards); };
"""


def write_page(comparison: Comparison, path: Path) -> None:
    """Write the comparison as one HTML file, with the picture where matplotlib is installed."""
    durable.write(path, render(comparison))


def render(comparison: Comparison) -> str:
    """The page."""
    names, last = comparison.systems, comparison.systems[-1]
    scores = {
        METRICS[metric].label: {name: one[metric] for name, one in comparison.scores.items()}
        for metric in comparison.scores[names[0]].values
    }
    different = comparison.differing()
    shown = sorted(sorted(different, key=lambda one: -abs(one.gain))[:SHOWN], key=lambda one: -one.gain)
    parts = [
        f"<h1>{escape(' · '.join(names))}</h1>",
        _table(scores, names, "{:.2f}"),
        *(f"<p class=quiet>{escape(verdict)}</p>" for verdict in comparison.verdicts()),
    ]
    if importlib.util.find_spec("matplotlib"):
        encoded = base64.b64encode(_png(comparison)).decode()
        parts.append(f'<p><img alt="scores by length" src="data:image/png;base64,{encoded}"></p>')
    for title, table in comparison.tables():
        parts += [f"<h2>{escape(title)}</h2>", _table(table, names, "{:.1f}")]
    cut = f" (the {SHOWN:,} that differ most)" if len(different) > SHOWN else ""
    parts += [
        f"<h2>{len(different):,} of {len(comparison.sentences):,} sentences differ{cut}</h2>",
        "<p><label>Order: <select id=order>"
        f"<option value=gain>largest gain of {escape(last)}<option value=loss>largest loss of {escape(last)}"
        f"<option value=worst>worst of {escape(last)}<option value=line>as in the file</select></label></p>",
        f"<div id=sentences>{''.join(_card(one) for one in shown)}</div>",
        *(
            f"<p class=quiet>{METRICS[metric].label}: {escape(signature)}</p>"
            for metric, signature in comparison.scores[names[0]].signatures.items()
        ),
    ]
    return page(" · ".join(names), "\n".join(parts), script=SCRIPT)


def draw_by_length(comparison: Comparison, path: Path) -> None:
    """Draw the score of each system by the length of the source, as a PNG file."""
    if importlib.util.find_spec("matplotlib") is None:
        raise RegardError('Pictures need matplotlib. Install it with: pip install "regard[plots]"')
    durable.write(path, _png(comparison))


def _png(comparison: Comparison) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.8), dpi=144, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    bins = list(comparison.lengths)
    for place, system in enumerate(comparison.systems):
        values = [comparison.lengths[name][system] for name in bins]
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(values, color=colour, linewidth=2, marker="o", markersize=4, label=system.replace("$", r"\$"))
    axes.set_xticks(range(len(bins)), [f"{name}\n({comparison.sizes[name]:,})" for name in bins])
    axes.set_title(
        f"{METRICS[comparison.main].label} by length of the source", loc="left", fontsize=11, fontweight="bold"
    )
    axes.set_xlabel("words in the source (sentences)", fontsize=8, color=INK)
    axes.set_ylim(bottom=0)
    _plain(axes)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRID)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=8, length=0)
    axes.legend(frameon=False, fontsize=8, labelcolor=INK)


def _table(table: Table, names: list[str], form: str) -> str:
    head = "".join(f"<th class=number>{escape(name)}" for name in names)
    rows = "".join(
        f"<tr><td>{escape(title)}" + "".join(f"<td class=number>{form.format(row[name])}" for name in names)
        for title, row in table.items()
    )
    return f"<div class=scroll><table><tr><th>{head}{rows}</table></div>"


def _card(one: Sentence) -> str:
    outputs = "".join(
        f"<div class=who>{escape(name)} · {one.scores[name]:.1f} chrF</div>"
        f"<div dir=auto>{marked(output, one.reference)}</div>"
        for name, output in one.outputs.items()
    )
    source = f"<div class=who>source · line {one.number}</div><div dir=auto>{escape(one.source)}</div>"
    reference = f"<div class=who>reference</div><div dir=auto>{escape(one.reference)}</div>"
    last = list(one.scores.values())[-1]
    facts = f'data-gain="{one.gain:.4f}" data-line="{one.number}" data-score="{last:.4f}"'
    return f"<div class=card {facts}>{source if one.source else ''}{reference}{outputs}</div>"


def marked(output: str, reference: str) -> str:
    """An output as HTML, with the words marked that are not at their place in the reference."""
    said, wanted = output.split(), reference.split()
    same = {
        place
        for block in difflib.SequenceMatcher(None, said, wanted, autojunk=False).get_matching_blocks()
        for place in range(block.a, block.a + block.size)
    }
    return " ".join(
        escape(word) if place in same else f"<mark>{escape(word)}</mark>" for place, word in enumerate(said)
    )
