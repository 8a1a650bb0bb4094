// A beam search as a tree: time runs to the right, and the best continuation of a path stays on its line.
import { choice, controls, el, formatNumber, roving, svg } from "./kit.js";

const BOX = 26, ROW = 46, GAP = 34, PADDING = 10;  // height of a box and of a row, space between columns, space next to a text
const FATES = {
  chosen: "in the result", ended: "ended, but another path scored higher", lived: "led to a path that ended", died: "fell out of the beam: other paths scored higher",
};
const ENDS = { end: "ended by the model", length: "cut at the length limit", repetition: "cut where it began to repeat itself" };
const ORDER = { chosen: 0, ended: 1, lived: 1, died: 2 };

export function show(root, data) {
  const nodes = data.nodes, parents = new Set(nodes.map((node) => node.parent));
  const every = nodes.map((_, place) => place);
  const sets = {
    results: every.filter((place) => nodes[place].fate === "chosen"),
    beam: every.filter((place) => nodes[place].fate !== "died" || parents.has(place)),  // a path that went on was in the beam
    all: every,
  };
  const branches = sets.beam.length > new Set(sets.beam.map((place) => nodes[place].parent)).size;
  const stage = el("div", { class: "tree-stage", role: "group", "aria-label": "search tree" });
  const readout = el("p", { class: "tree-readout quiet", role: "status" });
  const idle = "Point at a box to follow its path; arrow keys go from box to box.";
  const start = branches ? "beam" : "all";

  root.classList.add("tree");
  root.append(
    el("ol", {}, data.hypotheses.map((one) => el("li", {}, one.text || "(nothing)", " ",
      el("span", { class: "quiet" }, `score ${formatNumber(one.score, 3)}, ${ENDS[one.ended]}`)))),
    controls(choice("Show", [["results", "results"], ["beam", "all that was in the beam"], ["all", "also candidates left out"]], start, draw)),
    el("div", { class: "legend" }, Object.entries(FATES).map(([fate, meaning]) => el("span", {}, el("i", { class: fate }), meaning))),
    readout, stage);
  draw(start);

  function draw(which) {
    const places = sets[which], drawn = layout(nodes, places);
    const boxes = new Map(), lines = new Map();
    for (const place of places) {
      const node = nodes[place], { x, y, width } = drawn.at.get(place), before = drawn.at.get(node.parent);
      if (before) {
        const from = before.x + before.width, bend = (from + x) / 2, [high, low] = [before.y + BOX / 2, y + BOX / 2];
        lines.set(place, svg("path", { class: node.fate, d: `M${from} ${high}C${bend} ${high} ${bend} ${low} ${x} ${low}` }));
      }
      const box = svg("g", { class: node.fate, role: "img", "data-node": place, "data-score": formatNumber(node.score, 3),
        "aria-label": `${node.token}, score ${formatNumber(node.score, 3)}, ${FATES[node.fate]}` },
      svg("rect", { x, y: y + 1, width, height: BOX - 2, rx: 12 }), svg("text", { class: "token", x: x + width / 2, y: y + 18 }, node.token),
      svg("text", { class: "score", x: x + width / 2, y: y + 38 }, formatNumber(node.score, 2)));
      box.addEventListener("focus", () => follow(place));
      boxes.set(place, box);
    }
    /** Mark the path to a node and tell its numbers; without a node, none. */
    function follow(last) {
      for (const one of stage.querySelectorAll(".way")) one.classList.remove("way");
      if (last === null) { readout.textContent = idle; return; }
      const words = [];
      for (let place = last; place >= 0; place = nodes[place].parent) {
        boxes.get(place)?.classList.add("way");
        lines.get(place)?.classList.add("way");
        words.unshift(nodes[place].token);
      }
      const node = nodes[last];
      readout.textContent = `${words.join(" ")} · score ${formatNumber(node.score, 3)} · ${data.ctc ? "of this token, with CTC," : "log-probability of this token"} ${formatNumber(node.log_prob, 3)}, `
        + `of the path ${formatNumber(node.total, 3)} · ${FATES[node.fate]}`;
    }
    const under = (event) => { const box = event.target.closest("g"); return box ? Number(box.dataset.node) : null; };
    const picture = svg("svg", { width: drawn.width + 4, height: drawn.height, onmouseover: (event) => follow(under(event)), onmouseleave: () => follow(null),
      onclick: (event) => follow(under(event)) }, [...lines.values()], [...boxes.values()]);
    roving([...boxes.values()]);
    stage.replaceChildren(picture);
    follow(null);
  }
}

/** Where each of some nodes stands: {at: Map of place → {x, y, width}, width, height}. */
function layout(nodes, places) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "13px ui-monospace, monospace";
  const columns = new Map(), children = new Map(), widths = [];
  for (const place of places) {  // parents come before their children
    const column = nodes[place].parent < 0 ? 0 : columns.get(nodes[place].parent) + 1;
    columns.set(place, column);
    if (!children.has(nodes[place].parent)) children.set(nodes[place].parent, []);
    children.get(nodes[place].parent).push(place);
    widths[column] = Math.max(widths[column] || 52, Math.ceil(pen.measureText(nodes[place].token).width) + 2 * PADDING);
  }
  const lefts = widths.map((_, column) => widths.slice(0, column).reduce((sum, width) => sum + width + GAP, 0));
  const rows = assignRows(nodes, columns, children);
  const at = new Map(places.map((place) => [place, { x: lefts[columns.get(place)], y: rows.get(place) * ROW, width: widths[columns.get(place)] }]));
  return { at, width: widths.reduce((sum, width) => sum + width + GAP, 0), height: (Math.max(-1, ...rows.values()) + 1) * ROW };
}
/**
 * The row of each node: a path stays on the row of its best continuation; what branches off goes below it. The latest branch
 * comes first, each to the nearest row that is free from its parent's column to its own end, so that short paths stand next to
 * where they broke off.
 */
function assignRows(nodes, columns, children) {
  const bestFirst = (places) => [...places].sort((a, b) => ORDER[nodes[a].fate] - ORDER[nodes[b].fate] || nodes[b].total - nodes[a].total);
  const rows = new Map(), taken = new Set();
  const waiting = bestFirst(children.get(-1) || []).reverse();  // a stack: the next is at its end
  while (waiting.length) {
    const line = [waiting.pop()], branches = [];  // the earliest branch first, at one place the worst first
    for (let next = bestFirst(children.get(line.at(-1)) || []); next.length; next = bestFirst(children.get(line.at(-1)) || [])) {
      branches.push(...next.slice(1).reverse());
      line.push(next[0]);
    }
    const parent = nodes[line[0]].parent, first = Math.max(columns.get(line[0]) - 1, 0), last = columns.get(line.at(-1));
    const isFree = (row) => { for (let column = first; column <= last; column++) if (taken.has(`${row} ${column}`)) return false; return true; };
    let row = parent < 0 ? 0 : rows.get(parent) + 1;
    while (!isFree(row)) row++;
    for (const place of line) rows.set(place, row);
    for (let column = first; column <= last; column++) taken.add(`${row} ${column}`);
    waiting.push(...branches);
  }
  return rows;
}
