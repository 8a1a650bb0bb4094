"""Search trees as one web page that needs nothing else: paths from left to right, what was chosen, what died."""

from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

from regard.search.hypothesis import Hypothesis
from regard.search.tree import SearchTree
from regard.text.specials import EOS

ROW, GAP, LETTER, PADDING = 30, 34, 8.2, 10

STYLE = """
:root { --paper:#fff; --ink:#1f2a44; --faint:#7c879c; --line:#c8d0de; --chosen:#16305f; --ended:#3f6fbf;
        --lived:#dfe8f6 }
@media (prefers-color-scheme: dark) {
  :root { --paper:#12161f; --ink:#e8ecf4; --faint:#8e99ad; --line:#3b465a; --chosen:#9dbcf2; --ended:#4d79c4;
          --lived:#27324a } }
body { font:15px/1.5 system-ui,sans-serif; color:var(--ink); background:var(--paper); margin:2rem }
h1 { font-size:1.25rem } h2 { font-size:1rem; margin:2rem 0 .3rem } p { margin:.2rem 0; color:var(--faint) }
ol { margin:.3rem 0 .8rem; padding-left:1.6rem } .score { color:var(--faint); font-size:13px }
.tree { overflow-x:auto; border:1px solid var(--line); border-radius:8px; padding:12px }
.key span { margin-right:1.2rem } .key i { display:inline-block; width:26px; height:12px; border-radius:6px;
  margin-right:6px; vertical-align:-1px; border:1px solid var(--line) }
.key .chosen { background:var(--chosen) } .key .ended { background:var(--ended) }
.key .lived { background:var(--lived) }
text { font:13px ui-monospace,monospace; fill:var(--ink); text-anchor:middle }
text.total { font-size:10px; fill:var(--faint) }
path { fill:none; stroke:var(--line); stroke-width:1.2 } path.chosen { stroke:var(--chosen); stroke-width:2.5 }
rect { fill:var(--lived); stroke:none } .chosen rect { fill:var(--chosen) } .chosen text.token { fill:var(--paper) }
.ended rect { fill:var(--ended) } .ended text.token { fill:#fff }
.died rect { fill:none; stroke:var(--line); stroke-dasharray:3 3 } .died text.token { fill:var(--faint) }
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
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Beam search</title>'
        f"<style>{STYLE}</style><h1>What the beam looked at</h1>"
        "<p>Each box is one token; below it stands the log-probability of the path up to there.</p>"
        f'<p class="key">{key}</p>{"".join(parts)}</html>\n'
    )


def _section(number: int, shown: Shown, readable: Callable[[int], str]) -> str:
    given = "".join(
        f'<li>{escape(one.text)} <span class="score">score {one.score:.3f}, ended by {one.ended}</span></li>'
        for one in shown.found
    )
    drawing = _drawing(shown.tree, readable)
    return f'<h2>{number}. {escape(shown.source)}</h2><ol>{given}</ol><div class="tree">{drawing}</div>'


def _drawing(tree: SearchTree, readable: Callable[[int], str]) -> str:
    """The tree as SVG: time runs to the right, the best continuation of a path stays on its line."""
    nodes = tree.nodes
    labels = ["↵" if node.token == EOS else readable(node.token) for node in nodes]
    depths: list[int] = []
    children: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        depths.append(0 if node.parent < 0 else depths[node.parent] + 1)
        children.setdefault(node.parent, []).append(place)
    rows = _rows(tree, depths, children)
    widths = [0.0] * (max(depths, default=-1) + 1)
    for label, depth in zip(labels, depths, strict=True):
        widths[depth] = max(widths[depth], len(label) * LETTER + 2 * PADDING, 44)
    lefts = [sum(widths[:depth]) + GAP * depth for depth in range(len(widths))]
    drawn = []
    for place, node in enumerate(nodes):
        if node.parent >= 0:
            before = depths[node.parent]
            x, y = lefts[before] + widths[before], rows[node.parent] * 1.5 * ROW + ROW / 2
            end, low = lefts[depths[place]], rows[place] * 1.5 * ROW + ROW / 2
            bend = (x + end) / 2
            drawn.append(f'<path class="{node.fate}" d="M{x:.0f} {y:.0f}C{bend:.0f} {y:.0f} {bend:.0f} {low:.0f} ')
            drawn.append(f'{end:.0f} {low:.0f}"/>')
    for place, node in enumerate(nodes):
        x, y, width = lefts[depths[place]], rows[place] * 1.5 * ROW, widths[depths[place]]
        drawn.append(
            f'<g class="{node.fate}"><title>{escape(labels[place])}: log-probability {node.log_prob:.3f}, '
            f'path {node.total:.3f}</title><rect x="{x:.0f}" y="{y + 3:.0f}" width="{width:.0f}" height="{ROW - 6}" '
            f'rx="12"/><text class="token" x="{x + width / 2:.0f}" y="{y + 20:.0f}">{escape(labels[place])}</text>'
            f'<text class="total" x="{x + width / 2:.0f}" y="{y + 38:.0f}">{node.total:.2f}</text></g>'
        )
    across, down = (lefts[-1] + widths[-1] if lefts else 0), (max(rows, default=-1) + 1) * 1.5 * ROW
    return f'<svg width="{across + 4:.0f}" height="{down + 4:.0f}" role="img">{"".join(drawn)}</svg>'


def _rows(tree: SearchTree, depths: list[int], children: dict[int, list[int]]) -> list[int]:
    """The row of each node: a path stays on the row of its best continuation, others take the next that is free."""
    order = {"chosen": 0, "ended": 1, "lived": 1, "died": 2}

    def best_first(places: list[int]) -> list[int]:
        return sorted(places, key=lambda place: (order[tree.nodes[place].fate], -tree.nodes[place].total))

    rows = [0] * len(tree.nodes)
    taken: set[tuple[int, int]] = set()
    waiting = best_first(children.get(-1, []))
    while waiting:
        line = [waiting.pop(0)]
        beside: list[int] = []
        while below := best_first(children.get(line[-1], [])):
            line.append(below[0])
            beside += below[1:]
        parent = tree.nodes[line[0]].parent
        row = rows[parent] + 1 if parent >= 0 else 0
        columns = range(depths[line[0]] - (parent >= 0), depths[line[-1]] + 1)
        while any((row, column) in taken for column in columns):
            row += 1
        taken |= {(row, column) for column in columns}
        for place in line:
            rows[place] = row
        waiting += best_first(beside)
    return rows
