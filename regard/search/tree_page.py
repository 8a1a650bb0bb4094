"""A search as a page of its own that needs nothing else: paths from left to right, what was chosen, what died."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple

from regard.search.hypothesis import Hypothesis
from regard.search.tree import SearchTree
from regard.text.specials import EOS

BOX, ROW, GAP, LETTER, PADDING = 26, 44, 34, 8.2, 10
"""Height of a box, of a row, space between columns, width of a letter, space beside the text of a box."""

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1f2a44; --faint: #667085; --line: #c8d0de; --chosen: #16305f;
  --ended: #3f6fbf; --lived: #dfe8f6; --tint: #f4f7fc; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161f; --ink: #e8ecf4; --faint: #99a4b8; --line: #3b465a;
  --chosen: #9dbcf2; --ended: #4d79c4; --lived: #27324a; --tint: #1a2130; } }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0; padding: 1.2rem;
  overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: .4rem 0; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .3rem; }
p { margin: .3rem 0; } .faint, .score { color: var(--faint); font-size: .9rem; }
ol { margin: .3rem 0 .8rem; padding-left: 1.6rem; }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; color: var(--faint); font-size: .9rem; margin: .6rem 0; }
.key i { display: inline-block; width: 26px; height: 12px; border-radius: 6px; margin-right: 6px; }
.key .chosen { background: var(--chosen); } .key .ended { background: var(--ended); }
.key .lived { background: var(--lived); } .key .died { border: 1px dashed var(--faint); }
.tree { overflow-x: auto; border: 1px solid var(--line); border-radius: .6rem; padding: 12px; }
.told { position: sticky; top: 0; background: var(--paper); padding: .4rem 0; min-height: 2.3rem; font-size: .9rem; }
svg { display: block; } #fallen:not(:checked) ~ section .all, #fallen:checked ~ section .few { display: none; }
text { font: 13px ui-monospace, monospace; fill: var(--ink); text-anchor: middle; pointer-events: none; }
text.total { font-size: 10px; fill: var(--faint); }
path { fill: none; stroke: var(--line); stroke-width: 1.2; } path.chosen { stroke: var(--chosen); stroke-width: 2.5; }
rect { fill: var(--lived); stroke: none; } .chosen rect { fill: var(--chosen); }
.chosen text.token { fill: var(--paper); } .ended rect { fill: var(--ended); } .ended text.token { fill: #fff; }
.died rect { fill: var(--paper); stroke: var(--line); stroke-dasharray: 3 3; } .died text.token { fill: var(--faint); }
g { cursor: default; } g.way rect { stroke: #e0902b; stroke-width: 2.5; stroke-dasharray: none; }
path.way { stroke: #e0902b; stroke-width: 2.5; }
"""

SCRIPT = """
for (const drawing of document.querySelectorAll('svg')) {
  const told = drawing.closest('section').querySelector('.told'), idle = told.textContent;
  const boxes = new Map([...drawing.querySelectorAll('g')].map(box => [box.dataset.node, box]));
  const lines = new Map([...drawing.querySelectorAll('path')].map(line => [line.dataset.node, line]));
  const show = last => {
    for (const old of drawing.querySelectorAll('.way')) old.classList.remove('way');
    const words = [];
    for (let box = last; box; box = boxes.get(box.dataset.parent)) {
      box.classList.add('way');
      lines.get(box.dataset.node)?.classList.add('way');
      words.unshift(box.querySelector('.token').textContent);
    }
    told.textContent = last
      ? words.join(' ') + ' \\u00b7 this token ' + last.dataset.own + ', the path ' + last.dataset.total : idle;
  };
  drawing.onmouseover = event => show(event.target.closest('g'));
  drawing.onmouseleave = () => show(null);
  drawing.onclick = event => show(event.target.closest('g'));
  drawing.addEventListener('focusin', event => show(event.target.closest('g')));
}
"""


class Shown(NamedTuple):
    """One sentence's search."""

    source: str
    tree: SearchTree
    found: Sequence[Hypothesis]


def tree_page(searches: Sequence[Shown], readable: Callable[[int], str]) -> str:
    """The page of some searches; `readable` is how a token is written."""
    parts = [_section(number, shown, readable) for number, shown in enumerate(searches, start=1)]
    key = "".join(
        f'<span><i class="{fate}"></i>{says}</span>'
        for fate, says in (
            ("chosen", "given"),
            ("ended", "ended, but not among the best"),
            ("lived", "lived for a while on the way to one that ended"),
            ("died", "fell out of the beam"),
        )
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Beam search</title>'
        f"<style>{STYLE}</style></head><body><h1>What the beam looked at</h1>"
        '<p class="faint">Each box is one token; below it stands the log-probability of the path up to there.</p>'
        f'<p class="key">{key}</p><input type="checkbox" id="fallen"> '
        f'<label for="fallen">Show what fell out of the beam</label>{"".join(parts)}'
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def tree_data(searches: Sequence[Shown], readable: Callable[[int], str]) -> list[dict[str, Any]]:
    """The same as plain data."""
    return [
        {
            "source": one.source,
            "hypotheses": [{"text": each.text, "score": each.score, "ended": each.ended} for each in one.found],
            "nodes": one.tree.to_json(readable),
        }
        for one in searches
    ]


def _section(number: int, shown: Shown, readable: Callable[[int], str]) -> str:
    given = "".join(
        f'<li>{escape(one.text)} <span class="score">score {one.score:.3f}, ended by {one.ended}</span></li>'
        for one in shown.found
    )
    every = range(len(shown.tree.nodes))
    few = [place for place in every if shown.tree.nodes[place].fate != "died"]
    return (
        f'<section><h2>{number}. {escape(shown.source)}</h2><ol>{given}</ol><p class="told faint">'
        "Point at a box to follow its path.</p>"
        f'<div class="tree few">{_drawing(shown.tree, few, readable)}</div>'
        f'<div class="tree all">{_drawing(shown.tree, every, readable)}</div></section>'
    )


def _drawing(tree: SearchTree, places: Sequence[int], readable: Callable[[int], str]) -> str:
    """Some nodes of the tree as SVG: time runs to the right, the best continuation of a path stays on its line."""
    nodes = tree.nodes
    labels = {place: "↵" if nodes[place].token == EOS else readable(nodes[place].token) for place in places}
    columns: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for place in places:  # a node stands behind its parent
        parent = nodes[place].parent
        columns[place] = 0 if parent < 0 else columns[parent] + 1
        children.setdefault(parent, []).append(place)
    rows = _rows(tree, columns, children)
    widths = [0.0] * (max(columns.values(), default=-1) + 1)
    for place, label in labels.items():
        widths[columns[place]] = max(widths[columns[place]], len(label) * LETTER + 2 * PADDING, 44)
    lefts = [sum(widths[:column]) + GAP * column for column in range(len(widths))]
    lines, boxes = [], []
    for place in places:
        node, left, top, width = nodes[place], lefts[columns[place]], rows[place] * ROW, widths[columns[place]]
        if node.parent >= 0:
            before = columns[node.parent]
            x, y, end, low = lefts[before] + widths[before], rows[node.parent] * ROW + BOX / 2, left, top + BOX / 2
            bend = (x + end) / 2
            lines.append(
                f'<path class="{node.fate}" data-node="{place}" d="M{x:.0f} {y:.0f}C{bend:.0f} {y:.0f} {bend:.0f} '
                f'{low:.0f} {end:.0f} {low:.0f}"/>'
            )
        boxes.append(
            f'<g class="{node.fate}" data-node="{place}" data-parent="{node.parent}" data-own="{node.log_prob:.3f}" '
            f'data-total="{node.total:.3f}"><title>{escape(labels[place])}: log-probability {node.log_prob:.3f}, path '
            f'{node.total:.3f}</title><rect x="{left:.0f}" y="{top + 1:.0f}" width="{width:.0f}" height="{BOX - 2}" '
            f'rx="12"/><text class="token" x="{left + width / 2:.0f}" y="{top + 18:.0f}">{escape(labels[place])}</text>'
            f'<text class="total" x="{left + width / 2:.0f}" y="{top + 36:.0f}">{node.total:.2f}</text></g>'
        )
    across, down = (lefts[-1] + widths[-1] if lefts else 0), (max(rows.values(), default=-1) + 1) * ROW
    return f'<svg width="{across + 4:.0f}" height="{down:.0f}">{"".join(lines)}{"".join(boxes)}</svg>'


def _rows(tree: SearchTree, columns: dict[int, int], children: dict[int, list[int]]) -> dict[int, int]:
    """The row of each node: a path stays on the row of its best continuation; what branches off goes below it.

    The latest branch comes first, each to the nearest row that is free from its parent's column to its own end, so that
    short ends stand beside where they broke off.
    """
    order = {"chosen": 0, "ended": 1, "lived": 1, "died": 2}

    def best_first(places: list[int]) -> list[int]:
        return sorted(places, key=lambda place: (order[tree.nodes[place].fate], -tree.nodes[place].total))

    rows: dict[int, int] = {}
    taken: set[tuple[int, int]] = set()
    waiting = best_first(children.get(-1, []))[::-1]  # a stack: the next is at its end
    while waiting:
        line = [waiting.pop()]
        beside: list[int] = []  # the earliest branch first, of one place the worst first
        while below := best_first(children.get(line[-1], [])):
            beside += below[:0:-1]
            line.append(below[0])
        first = columns[line[0]]
        span = range(max(first - 1, 0), columns[line[-1]] + 1)  # with the column in which its parent stands
        parent = tree.nodes[line[0]].parent
        row = 0 if parent < 0 else rows[parent] + 1
        while any((row, column) in taken for column in span):
            row += 1
        rows |= dict.fromkeys(line, row)
        taken |= {(row, column) for column in span}
        waiting += beside
    return rows
