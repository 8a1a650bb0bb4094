// Where the model looks: a large map or lines of one head, one layer or the mean, next to the grid of all heads.
// Whatever is shown is computed here from the weights of single heads, by the rules that the page states.
import { PALETTE, choice, colour, el, formatNumber, heading, hint, mix, onTheme, roving, scroller, shader, tint, toggle, unpack } from "./kit.js";
import { MANY, heatmap, key, largest, scalingChoice, scalingNote, thumbnail } from "./heatmap.js";

export function show(root, data) {
  const KINDS = { picture: "To the picture", source: "To the source", between: "Between the texts", encoder: "Inside the source", places: "Inside the picture", decoder: "Inside the target" };
  const FAINT = 0.01;  // lines below this weight are not drawn
  const CURVE = 0.55;  // most weights are small
  const kinds = Object.keys(KINDS).filter((kind) => data.attention.some((attention) => attention.kind === kind));
  const attentions = Object.fromEntries(kinds.map((kind) => [kind,
    data.attention.filter((attention) => attention.kind === kind).sort((a, b) => a.layer - b.layer)]));
  const opened = new Map();
  const weightsOf = (attention) => { if (!opened.has(attention)) opened.set(attention, unpack(attention.weights)); return opened.get(attention); };

  // --- what is shown ---
  const state = { kind: data.start.kind, layer: data.start.layer, heads: null, words: data.start.words, special: true, perRow: null };
  const ways = { source: "map", picture: "map", between: "map", encoder: "lines", places: "map", decoder: "lines" };
  const reading = { source: "written", decoder: "read" };
  let locked = null, seen = null, preview = null;  // {row} or {column}; {layer, heads}

  const attentionAt = (layer) => attentions[state.kind].find((attention) => attention.layer === layer);
  const headCount = (layer) => weightsOf(attentionAt(layer)).length;
  const allHeads = (layer) => Array.from({ length: headCount(layer) }, (_, head) => head);
  function sides() {
    if (state.kind === "picture") return [data.target, data.places];
    if (state.kind === "places") return [data.places, data.places];
    if (state.kind === "encoder" || state.kind === "between") return [data.source, data.source];
    const read = reading[state.kind] === "read" ? data.inputs : data.target;
    return [read, state.kind === "source" ? data.source : data.inputs];
  }
  /** Names and whether each is special, by token or by word. */
  function places(side) {
    if (!state.words) return { names: side.tokens, special: side.special };
    const special = [];
    side.words.forEach((word, place) => { special[word] = side.special[place]; });
    return { names: side.wordTexts, special };
  }
  /** Weights rows × columns as the switches want them: what words are given is summed, what they give is averaged. */
  function shaped(weights) {
    const [rowSide, columnSide] = sides();
    const [rows, columns] = [places(rowSide), places(columnSide)];
    let values = weights;
    if (state.words) {
      const counts = new Float32Array(rows.names.length);
      values = rows.names.map(() => new Float32Array(columns.names.length));
      weights.forEach((row, r) => {
        counts[rowSide.words[r]] += 1;
        row.forEach((value, c) => { values[rowSide.words[r]][columnSide.words[c]] += value; });
      });
      values.forEach((row, r) => row.forEach((_, c) => { row[c] /= counts[r]; }));
    }
    if (state.special) return values;
    const kept = columns.special.map((special, c) => (special ? -1 : c)).filter((c) => c >= 0);
    return values.filter((_, r) => !rows.special[r]).map((row) => Float32Array.from(kept, (c) => row[c]));
  }
  const shownNames = (side) => { const { names, special } = places(side); return names.filter((_, place) => state.special || !special[place]); };
  function mean(maps) {
    if (maps.length === 1) return maps[0];
    return maps[0].map((row, r) => {
      const sum = new Float32Array(row.length);
      for (const map of maps) for (let c = 0; c < sum.length; c++) sum[c] += map[r][c] / maps.length;
      return sum;
    });
  }
  /** The single heads of a choice: [{head, weights}]; those of all layers together where the layer is the mean. */
  function chosen({ layer, heads }) {
    if (layer === null) return attentions[state.kind].flatMap((attention) => weightsOf(attention).map((weights) => ({ head: null, weights })));
    return (heads || allHeads(layer)).map((head) => ({ head, weights: weightsOf(attentionAt(layer))[head] }));
  }
  const nameOf = ({ layer, heads }) => {
    const layers = attentions[state.kind];
    if (layer === null) return "Mean of all layers and heads";
    const where = layers.length > 1 ? `Layer ${layer}` : "";
    const which = !heads || heads.length === headCount(layer) ? (headCount(layer) > 1 ? "mean of all heads" : "the only head")
      : heads.length === 1 ? `head ${heads[0]}` : `mean of heads ${heads.join(", ")}`;
    const text = [where, which].filter(Boolean).join(", ");
    return text[0].toUpperCase() + text.slice(1);
  };

  // --- the parts of the page ---
  const tabs = kinds.map((kind) => el("button", { type: "button", role: "tab", class: "tab", onclick: () => change({ kind, layer: null, heads: null }, true) }, KINDS[kind]));
  roving(tabs);
  const bar = el("div", { class: "controls" }), chips = el("div", { class: "legend chips" });
  const title = heading(root, { class: "what" }), path = el("div", { class: "quiet path" }), readout = el("div", { class: "readout", role: "status" });
  const stage = el("div", { class: "stage" }), grid = el("div", { class: "heads" }), notes = el("p", { class: "quiet notes" });
  const keyPlace = el("div"), frame = el("div", { class: "looking" }, el("div", { class: "top" }, title, path, readout), grid, el("div", { class: "large" }, chips, stage, keyPlace, notes));
  const textOf = (side) => side.wordTexts.filter((_, word) => !side.special[side.words.indexOf(word)]).join(" ");
  root.append(
    el("div", { class: "pair" }, [["input", data.source], ["output", data.target]].flatMap(([name, side]) => [
      el("span", { class: "quiet" }, name), scroller(name, textOf(side) || "(nothing)")])),
    kinds.length > 1 ? el("div", { role: "tablist", class: "tabs", "aria-label": "Which attention" }, tabs) : "",
    bar, frame);
  root.addEventListener("keydown", (event) => { if (event.key === "Escape") { locked = null; look(null); } });

  let picture = null;  // what stands on the stage: {redraw(), focus()}
  let layerChoice = null;
  let values = [], names = [[], []], single = [];

  function change(what, afresh = false) {
    Object.assign(state, what);
    preview = null;
    if (afresh) { locked = null; seen = null; }
    if (attentions[state.kind].length === 1) state.layer = attentions[state.kind][0].layer;
    show(afresh);
  }
  function compute() {
    const now = preview || state;
    single = chosen(now).map(({ head, weights }) => ({ head, values: shaped(weights) }));
    if (now.layer === null) single = [{ head: null, values: mean(single.map((head) => head.values)) }];
    values = mean(single.map((head) => head.values));
    title.textContent = nameOf(now);
    path.textContent = now.layer === null ? KINDS[state.kind].toLowerCase() : attentionAt(now.layer).name;
  }
  /** Whether each row has its own colour scale; long rows do unless the reader chose otherwise. */
  const perRow = () => state.perRow ?? names[1].length > MANY;
  /** Draw everything; `afresh` when rows, columns or the kind of picture have changed. */
  function show(afresh) {
    tabs.forEach((tab, place) => tab.setAttribute("aria-selected", String(kinds[place] === state.kind)));
    if (afresh) names = sides().map(shownNames);
    compute();
    if (afresh) {
      frame.classList.toggle("short", Math.max(names[0].length, names[1].length) <= MANY);
      putControls(); putGrid();
    }
    if (!preview) { layerChoice.choose(state.layer); putChips(); putNotes(); }  // nothing may move under the pointer
    if (afresh || !picture) {
      stage.replaceChildren();
      picture = !names[0].length || !names[1].length ? nothing() : ways[state.kind] === "map" ? putMap() : putLines();
    } else picture.redraw();
    markGrid();
    tell();
  }
  function nothing() {
    stage.append(el("p", { class: "quiet" }, "Nothing is left when special tokens are hidden."));
    return { redraw() {}, focus() {} };
  }
  function putControls() {
    const layers = attentions[state.kind].map((attention) => [attention.layer, String(attention.layer)]);
    const parts = [choice("Show", [["map", "map"], ["lines", "lines"]], ways[state.kind], (way) => { ways[state.kind] = way; change({}, true); })];
    layerChoice = choice("Layer", [[null, "mean"], ...layers], state.layer, (layer) => change({ layer, heads: null }));
    if (layers.length > 1) parts.push(layerChoice);
    parts.push(choice("By", [[false, "token"], [true, "word"]], state.words, (words) => change({ words }, true)));
    if (reading[state.kind] && data.inputs.tokens.length) parts.push(choice("A row is the token", [["written", "being written"], ["read", "just read"]],
      reading[state.kind], (way) => { reading[state.kind] = way; change({}, true); }));
    parts.push(toggle("special tokens", state.special, (special) => change({ special }, true)));
    if (ways[state.kind] === "map") parts.push(scalingChoice(perRow(), (chosen) => change({ perRow: chosen }, true)));
    bar.replaceChildren(...parts);
    keyPlace.replaceChildren(key({ curve: CURVE, perRow: ways[state.kind] === "map" && perRow(), unit: "weight" }));
  }

  // --- heads: chips that switch them, and the grid of all ---
  const lighter = () => matchMedia("(prefers-color-scheme: dark)").matches;
  function ink(head, count) {
    if (head === null) return colour("--accent");
    const hex = count > PALETTE.length ? null : PALETTE[head % PALETTE.length];
    if (!hex) return `hsl(${Math.round((360 * head) / count)} 60% ${lighter() ? 68 : 40}%)`;
    return lighter() ? mix(hex, "#ffffff", 0.35) : hex;
  }
  function putChips() {
    const layer = state.layer;
    chips.hidden = attentions[state.kind].every((attention) => weightsOf(attention).length < 2);
    chips.hidden ||= layer === null || headCount(layer) < 2;
    if (chips.hidden) { chips.replaceChildren(); return; }
    const on = new Set(state.heads || allHeads(layer)), count = headCount(layer);
    if (chips.children.length !== count) {
      chips.replaceChildren(...allHeads(layer).map((head) => el("button", { type: "button", title: "Click: switch this head. Double click: this head alone.",
        onclick: (event) => { if (event.detail < 2) before = state.heads; flip(head); },
        ondblclick: () => change({ heads: String(before) === String(head) ? null : [head] }) })));
    }
    [...chips.children].forEach((chip, head) => {
      chip.replaceChildren(el("i", { style: `background:${ink(head, count)}` }), `head ${head}`);
      chip.setAttribute("aria-pressed", String(on.has(head)));
    });
  }
  let before = null;  // the heads that were on when a double click began
  function flip(head) {
    const now = state.heads || allHeads(state.layer);
    const next = now.includes(head) ? now.filter((number) => number !== head) : [...now, head].sort((a, b) => a - b);
    change({ heads: next.length === headCount(state.layer) || !next.length ? null : next });  // with none there is nothing to see
  }
  let tiles = [];
  function putGrid() {
    const all = attentions[state.kind], widest = Math.max(...all.map((attention) => weightsOf(attention).length));
    tiles = [];
    grid.hidden = all.length === 1 && widest === 1;
    if (grid.hidden || !names[0].length || !names[1].length) { grid.replaceChildren(); return; }
    const meanColumn = widest > 1;
    const narrow = root.clientWidth < 700, room = narrow ? root.clientWidth : 0.38 * root.clientWidth;
    const side = Math.max(24, Math.min(narrow ? 36 : widest > 8 ? 44 : widest > 4 ? 58 : 76, Math.floor((room - 56) / (widest + 1)) - 6));
    const tall = Math.round(side * Math.min(1.6, Math.max(0.6, names[0].length / names[1].length)));
    const tile = (layer, heads, label, maps) => {
      const made = el("button", { type: "button", class: "tile", "aria-label": label, style: `width:${side}px;height:${tall}px`,
        onclick: () => { hint(null); change({ layer, heads }); },
        onmouseenter: () => { preview = { layer, heads }; show(false); },
        onmousemove: (event) => hint(label, event),
        onmouseleave: () => { hint(null); if (preview) { preview = null; show(false); } } });
      tiles.push({ made, layer, heads, maps });
      return made;
    };
    const rows = all.map((attention) => {
      const heads = weightsOf(attention);
      return [el("span", { class: "quiet" }, all.length > 1 ? `layer ${attention.layer}` : ""),
        ...heads.map((weights, head) => tile(attention.layer, meanColumn ? [head] : null, `layer ${attention.layer}, head ${head}`, [weights])),
        ...Array.from({ length: widest - heads.length }, () => el("span")),
        meanColumn ? tile(attention.layer, null, `layer ${attention.layer}, mean of all heads`, heads) : null];
    });
    const top = [el("span"), ...Array.from({ length: widest }, (_, head) => el("span", { class: "quiet" }, side < 40 ? String(head) : `head ${head}`)),
      meanColumn ? el("span", { class: "quiet" }, "mean") : null];
    const whole = all.length > 1 ? el("button", { type: "button", class: "all", onclick: () => change({ layer: null, heads: null }) }, "mean of all layers and heads") : null;
    if (whole) tiles.push({ made: whole, layer: null, heads: null });
    grid.replaceChildren(heading(root, {}, "Every head"),
      el("div", {}, el("div", { class: "grid", style: `grid-template-columns:auto repeat(${widest + (meanColumn ? 1 : 0)},${side}px)` },
        [top, ...rows].flat().filter(Boolean))), whole || "");
    roving(tiles.map((tile) => tile.made), widest + (meanColumn ? 1 : 0));
    fillTiles(tiles.filter((tile) => tile.maps), side);
  }
  /** Small maps are drawn row by row after the large one, so that the page answers at once. */
  function fillTiles(waiting, side) {
    const until = performance.now() + 12;
    while (waiting.length && performance.now() < until) {
      const { made, maps } = waiting.shift();
      made.replaceChildren(thumbnail(shaped(mean(maps)), { side: side - 6, curve: CURVE, perRow: perRow() }));
    }
    const still = tiles;
    if (waiting.length) setTimeout(() => { if (tiles === still) fillTiles(waiting, side); });
  }
  function markGrid() {
    const heads = state.layer !== null && state.heads && state.heads.length === headCount(state.layer) ? null : state.heads;
    tiles.forEach((tile) => tile.made.setAttribute("aria-pressed", String(tile.layer === state.layer && String(tile.heads) === String(heads))));
  }

  // --- where one word looks, in words ---
  const focus = () => seen || locked;
  function look(what) { seen = what; picture.focus(); tell(); }
  function lock(what) {
    locked = locked && locked.row === what.row && locked.column === what.column ? null : what;
    look(seen);
  }
  function tell() {
    const at = focus();
    if (!at || (at.row ?? at.column) >= names[at.row === undefined ? 1 : 0].length) {
      readout.replaceChildren(el("span", { class: "quiet" }, "Point at a word to see where it looks; a click holds it, Escape lets go."));
      return;
    }
    const byRow = at.row !== undefined;
    const given = byRow ? [...values[at.row]] : values.map((row) => row[at.column]);
    const others = names[byRow ? 1 : 0];
    const best = given.map((value, place) => [value, place]).sort((a, b) => b[0] - a[0]).slice(0, root.clientWidth < 500 ? 3 : 5).filter(([value]) => value > 0);
    const hidden = byRow && !state.special ? Math.max(0, 1 - given.reduce((sum, value) => sum + value, 0)) : 0;
    readout.replaceChildren(el("b", {}, names[byRow ? 0 : 1][byRow ? at.row : at.column]), byRow ? " looks at " : " is looked at by ",
      ...best.map(([value, place]) => el("span", { class: "given" }, `${others[place]} `, el("span", { class: "quiet" }, formatNumber(value, 3)), " ")),
      hidden >= 0.0005 ? el("span", { class: "quiet given" }, `hidden tokens ${formatNumber(hidden, 3)}`) : "",
      locked && !seen ? el("span", { class: "quiet" }, " (held)") : "");
  }
  const pair = (r, c) => {
    const text = `${names[0][r]} → ${names[1][c]}: ${formatNumber(values[r][c], 3)}`;
    return single.length > 1 ? `${text}\n${single.map((head) => `head ${head.head}  ${formatNumber(head.values[r][c], 3)}`).join("\n")}` : text;
  };

  // --- the map ---
  const roomAcross = () => (root.clientWidth < 700 ? root.clientWidth : root.clientWidth - (grid.hidden ? 0 : grid.offsetWidth + 36));
  function putMap() {
    const map = heatmap({ rows: names[0], columns: names[1], values, curve: CURVE, perRow: perRow(), room: roomAcross(), hover: pair, label: `${KINDS[state.kind]}, row looks at column`,
      over: (row) => look({ row }), out: () => look(null), pick: (row) => lock({ row }),
      overName: (row, column) => look(row === null ? { column } : { row }),
      pickName: (row, column) => lock(row === null ? { column } : { row }) });
    stage.append(map.element);
    const mark = () => { const at = focus() || {}; map.mark(at.row ?? null, at.column ?? null); };
    mark();
    return { redraw() { map.update(values); }, focus: mark };
  }

  // --- the lines ---
  function putLines() {
    const most = Math.max(names[0].length, names[1].length);
    const high = Math.max(13, Math.min(26, Math.floor(900 / most))), font = Math.max(10, Math.min(15, high - 4));
    const list = (side) => names[side].map((name, place) => {
      const what = side ? { column: place } : { row: place };
      return el("button", { type: "button", title: name, style: `height:${high}px;line-height:${high}px`,
        onmouseenter: () => { if (!(locked && (side ? locked.row : locked.column) !== undefined)) look(what); },
        onmousemove: (event) => {
          if (locked && side && locked.row !== undefined) hint(pair(locked.row, place), event);
          if (locked && !side && locked.column !== undefined) hint(pair(place, locked.column), event);
        },
        onmouseleave: () => { hint(null); look(null); },
        onfocus: () => look(what), onblur: () => look(null),
        onclick: () => lock(what) }, name);
    });
    const [left, right] = [list(0), list(1)];
    roving(left); roving(right);
    const canvas = el("canvas", { role: "img", "aria-label": "lines from each token on the left to those it looks at" });
    const middle = el("div", { class: "between" }, canvas);
    stage.append(el("div", { class: "lines", style: `font-size:${font}px` }, el("div", { role: "group", "aria-label": "tokens that look" }, left), middle, el("div", { role: "group", "aria-label": "tokens that are looked at" }, right)));
    const tall = most * high, pen = canvas.getContext("2d");
    function draw() {
      const ratio = window.devicePixelRatio || 1, wide = middle.clientWidth || 240;
      canvas.width = Math.ceil(wide * ratio); canvas.height = Math.ceil(tall * ratio);
      canvas.style.width = `${wide}px`; canvas.style.height = `${tall}px`;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      const at = focus(), { layer } = preview || state, count = layer === null ? 1 : headCount(layer);
      const shown = single.flatMap((head) => (at && at.row !== undefined ? [head.values[at.row]] : head.values));
      const strongest = perRow() ? Math.max(FAINT, ...shown.map(largest)) : 1;
      const apart = single.length > 1 ? Math.min(3, (high - 4) / single.length) : 0;
      single.forEach((head, index) => {
        const off = (index - (single.length - 1) / 2) * apart;
        pen.strokeStyle = ink(head.head, count);
        head.values.forEach((row, r) => {
          if (at && at.row !== undefined && at.row !== r) return;
          row.forEach((value, c) => {
            if (value < FAINT || (at && at.column !== undefined && at.column !== c)) return;
            const share = value / strongest;
            pen.globalAlpha = Math.min(1, at ? 0.12 + share : share * 0.9);
            pen.lineWidth = Math.max(0.5, share * Math.min(6, high * 0.35));
            pen.beginPath();
            pen.moveTo(0, (r + 0.5) * high + off);
            pen.lineTo(wide, (c + 0.5) * high + off);
            pen.stroke();
          });
        });
      });
      const shadeOf = shader(false, CURVE);
      const shade = (items, given) => items.forEach((item, place) => tint(item, given && given[place] >= FAINT ? shadeOf(given[place]) : null));
      shade(right, at && at.row !== undefined ? values[at.row] : null);
      shade(left, at && at.column !== undefined ? values.map((row) => row[at.column]) : null);
      left.forEach((item, place) => item.classList.toggle("picked", Boolean(at) && at.row === place));
      right.forEach((item, place) => item.classList.toggle("picked", Boolean(at) && at.column === place));
      [[left, "row"], [right, "column"]].forEach(([items, key]) => items.forEach((item, place) => item.setAttribute("aria-pressed", String(Boolean(locked) && locked[key] === place))));
    }
    onTheme(canvas, () => { putChips(); draw(); });
    new ResizeObserver(() => { if (Math.ceil(middle.clientWidth) !== Math.round(parseFloat(canvas.style.width))) draw(); }).observe(middle);
    draw();
    return { redraw: draw, focus: draw };
  }

  function putNotes() {
    const parts = [];
    if (ways[state.kind] === "lines") parts.push(`Left looks at right; thickness and opacity are the weight${perRow() ? ", relative to the strongest line shown" : ""}; lines below ${FAINT} are not drawn.`);
    if (ways[state.kind] === "lines" && state.layer === null && !grid.hidden) parts.push("Choose a layer to see its heads in colours of their own.");
    else parts.push(scalingNote(perRow()));
    if (state.kind === "source") parts.push(reading.source === "read"
      ? "A row belongs to the token that the decoder had just read when it looked." : "A row belongs to the token that was written after looking.");
    if (state.kind === "decoder") parts.push(reading.decoder === "read"
      ? "A row belongs to the token just read; it can look at itself and at what came before." : "A row belongs to the token that was written after looking.");
    if (state.words) parts.push("A word is given the sum of what its tokens are given, and gives the mean of what they give.");
    if (!state.special) parts.push("Rows are not renormalised: what a row gave to hidden tokens is missing from it.");
    notes.textContent = parts.join(" ");
  }
  if (data.start.head !== null) state.heads = [data.start.head];
  change({}, true);
}
