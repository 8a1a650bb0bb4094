// Word alignment: one pair at a time, its words joined by lines (a word that is picked shows its own only), or, where they
// are too many for a screen, as a grid with a square for each link.
import { choice, controls, el, formatNumber, heading, hint, legend, roving, scroller, svg, table } from "./kit.js";

export function show(root, data) {
  const gold = data.pairs.some((pair) => pair.sure);
  const filled = data.pairs.map((pair, place) => ({ ...pair, place })).filter((pair) => pair.source.length && pair.target.length);
  if (!filled.length) { root.append(el("p", { class: "quiet" }, "No pair has words on both sides.")); return; }
  const KINDS = gold
    ? { right: ["found, sure", "var(--accent)"], possible: ["found, possible", "var(--align-possible)"], wrong: ["found, not in gold", "var(--cell-minus)"], missed: ["sure, not found", "var(--quiet)"] }
    : { right: ["found", "var(--accent)"] };
  const hidden = new Set();
  let at = 0, order = filled, picked = null, lines = [], words = { source: [], target: [] }, form = null;
  const MANY = 40;  // words of a pair that lines can still be followed between

  function linked(pair) {
    if (!gold) return pair.links.map(([s, t]) => ({ s, t, kind: "right" }));
    const has = (some) => new Set(some.map(String)), found = has(pair.links), sure = has(pair.sure), possible = has(pair.possible);
    const kind = (link) => (sure.has(String(link)) ? "right" : possible.has(String(link)) ? "possible" : "wrong");
    return [...pair.sure.filter((link) => !found.has(String(link))).map(([s, t]) => ({ s, t, kind: "missed" })),
      ...pair.links.map(([s, t]) => ({ s, t, kind: kind([s, t]) }))];
  }
  function isolate(side = null, place = null, lock = false) {
    if (lock) picked = picked && picked.side === side && picked.place === place ? null : { side, place };
    const now = !lock && side !== null ? { side, place } : picked;
    const mine = (link) => !now || (now.side === "source" ? link.s === now.place : link.t === now.place);
    for (const link of lines) {
      link.line.style.opacity = mine(link) ? 1 : 0.08;
      link.line.setAttribute("visibility", hidden.has(link.kind) ? "hidden" : "visible");
    }
    for (const which of ["source", "target"]) words[which].forEach((word, number) => {
      const near = !now || (now.side === which && now.place === number) || lines.some((link) => mine(link) && !hidden.has(link.kind) && number === (which === "source" ? link.s : link.t));
      word.style.opacity = near ? 1 : 0.35;
      word.classList.toggle("picked", Boolean(picked && picked.side === which && picked.place === number));
    });
  }
  const stage = el("div", { class: "align-stage" });
  const summary = el("span", { class: "quiet" });
  const formOf = (pair) => form || (Math.max(pair.source.length, pair.target.length) > MANY ? "grid" : "lines");
  function show() {
    const pair = order[at], links = pair.links.length;
    picked = null;
    summary.textContent = `pair ${pair.place + 1} of ${data.pairs.length}: ${links} link${links === 1 ? "" : "s"}` + (gold ? `, AER ${formatNumber(100 * pair.aer, 1)}` : "");
    forms.choose(formOf(pair));
    if (formOf(pair) === "grid") grid(pair); else join(pair);
  }
  /** A square for each link: target words down, source words across. */
  function grid(pair) {
    lines = []; words = { source: [], target: [] };
    const across = pair.source.length, down = pair.target.length, left = 110, above = 90;
    const size = Math.max(8, Math.min(18, Math.floor((document.body.clientWidth - left - 60) / across), Math.floor(900 / down)));
    const font = Math.max(9, Math.min(12, size - 1)), wide = across * size, tall = down * size;
    const cut = (word) => (word.length > 16 ? `${word.slice(0, 15)}…` : word);
    const picture = svg("svg", { class: "align-grid", width: left + wide + 50, height: above + tall + 2, role: "img",
      "aria-label": `links, ${down} target words down and ${across} source words across` });
    const cross = [svg("rect", { class: "cross", height: size, width: wide, x: left, visibility: "hidden" }), svg("rect", { class: "cross", width: size, height: tall, y: above, visibility: "hidden" })];
    picture.append(svg("rect", { class: "frame", x: left, y: above, width: wide, height: tall }), ...cross,
      ...pair.target.map((word, t) => svg("text", { x: left - 5, y: above + (t + 0.5) * size, "font-size": font, "text-anchor": "end", "dominant-baseline": "central" }, cut(word))),
      ...pair.source.map((word, s) => svg("text", { "font-size": font, transform: `translate(${left + (s + 0.6) * size} ${above - 5}) rotate(-60)` }, cut(word))),
      ...linked(pair).filter((link) => !hidden.has(link.kind)).map((link) => svg("rect", { class: `align-${link.kind}`, x: left + link.s * size + 1, y: above + link.t * size + 1,
        width: size - 2, height: size - 2, stroke: KINDS[link.kind][1], fill: link.kind === "missed" ? "none" : KINDS[link.kind][1] })));
    const kinds = new Map(linked(pair).map((link) => [`${link.s} ${link.t}`, KINDS[link.kind][0]]));
    const leave = () => { hint(null); cross.forEach((line) => line.setAttribute("visibility", "hidden")); };
    picture.addEventListener("mouseleave", leave);
    picture.addEventListener("mousemove", (event) => {
      const box = picture.getBoundingClientRect();
      const s = Math.floor((event.clientX - box.left - left) / size), t = Math.floor((event.clientY - box.top - above) / size);
      if (s < 0 || t < 0 || s >= across || t >= down) { leave(); return; }
      cross.forEach((line) => line.setAttribute("visibility", "visible"));
      cross[0].setAttribute("y", above + t * size); cross[1].setAttribute("x", left + s * size);
      const kind = kinds.get(`${s} ${t}`);
      hint(`${pair.source[s]} – ${pair.target[t]}${kind ? `: ${kind}` : ""}`, event);
    });
    stage.replaceChildren(scroller("links", picture));
  }
  /** The words of both sides, with lines between them. */
  function join(pair) {
    const made = (side) => pair[side].map((word, place) => el("span", { class: "token", role: "button", "aria-label": `${word}, ${side} word ${place + 1}`,
      onmouseenter: () => isolate(side, place), onmouseleave: () => isolate(), onclick: () => isolate(side, place, true),
      onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); isolate(side, place, true); } } }, word));
    words = { source: made("source"), target: made("target") };
    const rows = el("div", { class: "align-words" }, el("div", { class: "align-source" }, words.source), el("div", { class: "align-target" }, words.target));
    const picture = svg("svg", { "aria-hidden": "true" });
    const board = el("div", { class: "align-board" }, picture, rows);
    stage.replaceChildren(scroller("links", board));
    board.classList.remove("columns");
    if (rows.scrollWidth > stage.clientWidth) board.classList.add("columns");
    place(board, picture, pair);
    roving(words.source); roving(words.target);
    isolate();
  }
  function place(board, picture, pair) {
    const frame = board.getBoundingClientRect(), down = board.classList.contains("columns");
    picture.setAttribute("width", board.scrollWidth); picture.setAttribute("height", board.scrollHeight);
    const end = (word, source) => {
      const box = word.getBoundingClientRect();
      return down ? [(source ? box.right : box.left) - frame.left, (box.top + box.bottom) / 2 - frame.top]
        : [(box.left + box.right) / 2 - frame.left, (source ? box.bottom : box.top) - frame.top];
    };
    lines = linked(pair).map((link) => {
      const [x1, y1] = end(words.source[link.s], true), [x2, y2] = end(words.target[link.t], false);
      const line = svg("line", { x1, y1, x2, y2, stroke: KINDS[link.kind][1], "stroke-width": 2, "stroke-linecap": "round",
        "stroke-dasharray": link.kind === "missed" ? "4 4" : null, class: `align-${link.kind}` });
      picture.append(line);
      return { ...link, line };
    });
  }
  function go(far) { at = (at + far + order.length) % order.length; list.value = String(at); show(); }
  const list = el("select", { "aria-label": "pair", onchange: () => { at = Number(list.value); show(); } });
  function fillList() {
    list.replaceChildren(...order.map((pair, number) => el("option", { value: number }, `${pair.place + 1}. ${pair.source.join(" ").slice(0, 60)}`)));
    list.value = String(at);
  }
  const parts = [el("span", {}, el("button", { type: "button", "aria-label": "previous pair", onclick: () => go(-1) }, "‹"), " ", list, " ",
    el("button", { type: "button", "aria-label": "next pair", onclick: () => go(1) }, "›"))];
  const forms = choice("as", [["lines", "lines"], ["grid", "grid"]], "lines", (value) => { form = value; show(); });
  parts.push(forms);
  if (gold) {
    parts.push(choice("order", [["given", "as given"], ["worst", "worst first"]], "given", (value) => {
      order = value === "given" ? filled : [...filled].sort((a, b) => b.aer - a.aer);
      at = 0; fillList(); show();
    }));
  }
  root.append(controls(...parts, summary), stage,
  legend(Object.values(KINDS).map(([name]) => name), Object.values(KINDS).map(([, ink]) => ink), (number, on) => {
    const kind = Object.keys(KINDS)[number];
    if (on) hidden.delete(kind); else hidden.add(kind);
    if (formOf(order[at]) === "grid") grid(order[at]); else isolate();
  }));
  if (gold) {
    const range = (scores) => (scores.aer_95 ? `${formatNumber(100 * scores.aer_95[0], 1)}–${formatNumber(100 * scores.aer_95[1], 1)}` : "–");
    const figures = (scores) => [100 * scores.aer, range(scores), 100 * scores.precision, 100 * scores.recall, scores.found];
    const rows = data.tried.map((reading) => [reading.run, reading.layer === null ? "all" : String(reading.layer), reading.reading, ...figures(reading.scores)]);
    rows.push(["result", "–", data.combining, ...figures(data.scores)], ["diagonal", "–", "–", ...figures(data.diagonal)]);
    root.append(heading(root, {}, "All that was tried"), table(["run", "layer", "row", "AER", "95 %", "precision", "recall", "links"], rows,
      { show: (value, column) => (typeof value === "number" ? formatNumber(value, column === 7 ? 0 : 1) : value) }));
  }
  fillList();
  show();
  addEventListener("resize", show);
}
