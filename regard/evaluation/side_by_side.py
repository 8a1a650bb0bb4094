"""A comparison as a page to read: the scores, the picture, and what systems said, side by side."""

import difflib
from pathlib import Path

from regard.evaluation.comparison import Comparison, Sentence, Table
from regard.evaluation.length_picture import STYLE as PICTURE_STYLE
from regard.evaluation.length_picture import chart, colour
from regard.evaluation.page import escape, page
from regard.foundation import durable
from regard.metrics.scoring import label

SHOWN = 1000
"""Sentences on a page: those that differ most."""

STYLE = """
#bar { position: sticky; top: 0; z-index: 1; background: var(--paper); padding: .6rem 0; display: flex; gap: .6rem 1rem;
  flex-wrap: wrap; align-items: center; border-bottom: 1px solid var(--line); }
#bar label { display: flex; gap: .4rem; align-items: center; min-width: 0; }
#bar select { max-width: 100%; min-width: 0; }
#find { font: inherit; padding: .35rem .6rem; border-radius: .4rem; border: 1px solid var(--line); color: inherit;
  background: var(--tint); width: 12rem; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); gap: .8rem 1.2rem;
  margin-top: .8rem; }
.beside > div { border-left: 3px solid var(--line); padding-left: .7rem; }
.beside .who, .gain + .who { margin-top: 0; } .best { font-weight: 600; color: var(--ink); }
.card[hidden] { display: none; } .gain { float: right; font-size: .85rem; font-variant-numeric: tabular-nums; }
.up { color: var(--up); } .down { color: var(--down); }
.slices { display: flex; flex-wrap: wrap; gap: 0 2.5rem; } .slices > div { max-width: 100%; }
.slices td, th { white-space: nowrap; } td.quiet { font-size: inherit; }
:root { --up: #1d6f42; --down: #a3322d; }
@media (prefers-color-scheme: dark) { :root { --up: #7fd0a0; --down: #f09a95; } }
"""

SCRIPT = """
const list = document.getElementById('sentences'), order = document.getElementById('order');
const find = document.getElementById('find'), count = document.getElementById('count');
const cards = [...list.children];
const keys = {gain: card => -card.dataset.gain, loss: card => +card.dataset.gain, line: card => +card.dataset.line,
  worst: card => +card.dataset.score};
order.onchange = () => { const key = keys[order.value]; cards.sort((a, b) => key(a) - key(b)); list.append(...cards); };
find.oninput = () => {
  const wanted = find.value.toLowerCase();
  let shown = 0;
  for (const card of cards) {
    card.hidden = !card.textContent.toLowerCase().includes(wanted);
    shown += !card.hidden;
  }
  count.textContent = wanted ? shown + ' shown' : '';
};
"""


def write_page(comparison: Comparison, path: Path) -> None:
    """Write the comparison as one HTML file."""
    durable.write(path, render(comparison))


def render(comparison: Comparison) -> str:
    """The page."""
    names, last = comparison.systems, comparison.systems[-1]
    scores = {
        label(metric): {name: one[metric] for name, one in comparison.scores.items()}
        for metric in comparison.scores[names[0]].values
    }
    different = comparison.differing()
    shown = sorted(sorted(different, key=lambda one: -abs(one.gain))[:SHOWN], key=lambda one: -one.gain)
    cut = f" (the {SHOWN:,} that differ most)" if len(different) > SHOWN else ""
    parts = [
        f"<h1>{escape(' · '.join(names))}</h1>",
        _table(scores, comparison, "{:.2f}"),
        *(f"<p class=quiet>{escape(verdict)}</p>" for verdict in comparison.verdicts()),
        f"<h2>{escape(label(comparison.main))} by length of the {comparison.sliced_by}</h2>",
        chart(comparison),
        "<div class=slices>",
        *(
            f"<div><h2>{escape(title)}</h2>{_table(table, comparison, '{:.1f}')}</div>"
            for title, table in comparison.tables()
        ),
        "</div>",
        f"<h2>{len(different):,} of {len(comparison.sentences):,} sentences differ{cut}</h2>",
        "<p class=quiet>Marked: words that do not stand at their place in the reference.</p>",
        "<div id=bar><label>Order <select id=order>"
        f"<option value=gain>largest gain of {escape(last)}<option value=loss>largest loss of {escape(last)}"
        f"<option value=worst>worst of {escape(last)}<option value=line>as in the file</select></label>"
        "<label>Find <input id=find type=search autocomplete=off></label>"
        "<span id=count class=quiet role=status></span></div>",
        f"<div id=sentences>{''.join(map(_card, shown))}</div>",
        *(
            f"<p class=quiet>{escape(label(metric))}: {escape(signature)}</p>"
            for metric, signature in comparison.scores[names[0]].signatures.items()
        ),
    ]
    return page(" · ".join(names), "\n".join(parts), style=PICTURE_STYLE + STYLE, script=SCRIPT)


def _table(table: Table, comparison: Comparison, form: str) -> str:
    names, counted = comparison.systems, all(title in comparison.sizes for title in table)
    counted = counted and table is not comparison.words
    head = "".join(f"<th class=number>{escape(name)}" for name in names) + ("<th class=number>lines" if counted else "")
    rows = "".join(
        f"<tr><td>{escape(title)}"
        + "".join(f"<td class=number>{form.format(row[name])}" for name in names)
        + (f"<td class='number quiet'>{comparison.sizes[title]:,}" if counted else "")
        for title, row in table.items()
    )
    return f"<div class=scroll><table><tr><th>{head}{rows}</table></div>"


def _card(one: Sentence) -> str:
    best = max(one.scores.values())
    outputs = "".join(
        f'<div style="border-color:{colour(place)}"><div class=who>{escape(name)} · '
        f"<span{' class=best' if one.scores[name] == best else ''}>{one.scores[name]:.1f} chrF</span></div>"
        f"<div dir=auto>{marked(output, one.reference) or '<span class=quiet>(nothing)</span>'}</div></div>"
        for place, (name, output) in enumerate(one.outputs.items())
    )
    gain = f"<span class='gain {'up' if one.gain > 0 else 'down' if one.gain < 0 else 'quiet'}'>{one.gain:+.1f}</span>"
    source = f"<div class=who>source</div><div dir=auto>{escape(one.source)}</div>"
    reference = f"<div class=who>reference</div><div dir=auto>{escape(one.reference)}</div>"
    last = list(one.scores.values())[-1]
    facts = f'data-gain="{one.gain:.4f}" data-line="{one.number}" data-score="{last:.4f}"'
    return (
        f"<div class=card {facts}>{gain}<div class=who>line {one.number:,}</div>{source if one.source else ''}"
        f"{reference}<div class=beside>{outputs}</div></div>"
    )


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
