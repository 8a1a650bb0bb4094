// What all views share. No library, no network: elements, controls, tables, heat maps, charts.
const VIEWS = {};
/** Register a view: `show(root, data)` fills an element. */
function view(name, show) { VIEWS[name] = show; }
/** Fill every panel of the page. */
function showAll(panels) {
  const sections = document.querySelectorAll("section.panel > .view");
  panels.forEach((panel, place) => {
    try {
      VIEWS[panel.view](sections[place], panel.data);
    } catch (error) {  // the other panels can still be read
      console.error(error);
      sections[place].append(el("p", { class: "quiet" }, `This part cannot be shown: ${error.message}`));
    }
  });
  document.body.dataset.ready = "true";
}
/**
 * What Python's `page.pack(tensor)` packed (four digits a number), as nested arrays whose innermost are typed: a tensor of
 * shape [2, 3, 4] becomes two arrays of three Float32Arrays of four.
 */
function unpack({ shape, packed }) {
  const bytes = atob(packed), whole = new Float32Array(bytes.length / 2);
  for (let place = 0; place < whole.length; place++) {
    whole[place] = ((bytes.charCodeAt(2 * place) | (bytes.charCodeAt(2 * place + 1) << 8)) << 16 >> 16) / 10000;
  }
  let parts = [];
  const last = shape[shape.length - 1];
  for (let at = 0; last && at < whole.length; at += last) parts.push(whole.subarray(at, at + last));
  for (const size of shape.slice(1, -1).reverse()) {
    parts = Array.from({ length: parts.length / size }, (_, place) => parts.slice(place * size, (place + 1) * size));
  }
  return parts;
}

/** An element; text given as a child is text, never HTML. `on…` attributes are listeners. */
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  return fill(made, attributes, children);
}
/** An SVG element. */
function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}
function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

// --- hints that follow the pointer ---
const TIP = el("div", { id: "tip", role: "status", hidden: true });
document.body.append(TIP);
function hint(text, event) {
  if (!text) { TIP.hidden = true; return; }
  TIP.textContent = text;
  TIP.hidden = false;
  const box = TIP.getBoundingClientRect();
  TIP.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  TIP.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
}

// --- controls ---
/** A row of controls. */
function controls(...parts) { return el("div", { class: "controls" }, parts); }
/**
 * Buttons of which one is pressed (a list to pull down, if there are many): `options` are [value, text].
 * What it returns has `choose(value)`, which shows another choice without telling `changed`.
 */
function choice(name, options, chosen, changed) {
  if (options.length > 7) {
    const list = el("select", { "aria-label": name, onchange: () => changed(options[list.selectedIndex][0]) },
      options.map(([value, text]) => el("option", { selected: value === chosen }, text)));
    const made = el("label", {}, el("span", { class: "name" }, name), list);
    made.choose = (value) => { list.selectedIndex = options.findIndex(([one]) => one === value); };
    return made;
  }
  const buttons = options.map(([value, text]) => el("button", {
    type: "button", "aria-pressed": String(value === chosen), onclick: (event) => {
      buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === event.currentTarget)));
      changed(value);
    } }, text));
  const made = el("span", { class: "choice", role: "group", "aria-label": name }, el("span", { class: "name" }, name), el("span", {}, buttons));
  made.choose = (value) => buttons.forEach((one, place) => one.setAttribute("aria-pressed", String(options[place][0] === value)));
  return made;
}
/** Arrow keys, Home and End go from one element to the next (Tab stops once for all); `step` elements up and down. */
function roving(elements, step = 1) {
  elements.forEach((one, place) => {
    one.tabIndex = place ? -1 : 0;
    one.addEventListener("focus", () => elements.forEach((other) => { other.tabIndex = other === one ? 0 : -1; }));
    one.addEventListener("keydown", (event) => {
      const far = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -step, ArrowDown: step, Home: -place, End: elements.length - 1 - place }[event.key];
      if (far === undefined || !elements[place + far]) return;
      event.preventDefault();
      elements[place + far].focus();
    });
  });
}
/** A box to tick. */
function toggle(name, on, changed) {
  const box = el("input", { type: "checkbox", checked: on, onchange: () => changed(box.checked) });
  return el("label", {}, box, name);
}
/** A slider with its value beside it. */
function slider(name, low, high, step, at, changed, show = (value) => value) {
  const said = el("output", {}, show(at));
  const range = el("input", { type: "range", min: low, max: high, step, value: at, "aria-label": name,
    oninput: () => { said.textContent = show(Number(range.value)); changed(Number(range.value)); } });
  return el("label", {}, el("span", { class: "name" }, name), range, said);
}

// --- colours ---
function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
const PALETTE = ["#2f5fae", "#c0504d", "#4f8f5b", "#e0a030", "#7a5ea8", "#3a9ea5", "#b0608f", "#7f7f3f"];
function parts(hex) { return [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16)); }
function mix(from, to, share) {
  const [a, b] = [parts(from), parts(to)];
  return `rgb(${a.map((value, place) => Math.round(value + (b[place] - value) * share)).join(",")})`;
}
/** The colour of a weight from 0 to 1; with `signed`, from −1 to 1. */
function shade(value, signed = false) {
  const full = signed ? (value < 0 ? "--cell-minus" : "--cell-plus") : "--cell-1";
  return mix(colour("--cell-0"), colour(full), Math.min(1, Math.abs(value)) ** 0.8);
}
/** The same for many values: 256 shades of a colour are mixed once. A smaller `curve` shows small values better. */
function shader(signed = false, curve = 0.8) {
  const zero = colour("--cell-0");
  const ramp = (full) => Array.from({ length: 256 }, (_, step) => mix(zero, full, (step / 255) ** curve));
  const over = ramp(colour(signed ? "--cell-plus" : "--cell-1")), under = signed ? ramp(colour("--cell-minus")) : over;
  return (value) => (value < 0 ? under : over)[Math.round(Math.min(1, Math.abs(value)) * 255)];
}
/** Values (rows of numbers, null for an empty cell) as a picture with one dot for each, ready to be drawn at any size. */
function bitmap(values, top = 1, signed = false, curve = 0.8) {
  const rows = values.length, columns = rows ? values[0].length : 0;
  const made = document.createElement("canvas");
  made.width = Math.max(1, columns); made.height = Math.max(1, rows);
  const pen = made.getContext("2d", { willReadFrequently: true }), dots = pen.createImageData(made.width, made.height);
  const [zero, over, under] = ["--cell-0", signed ? "--cell-plus" : "--cell-1", "--cell-minus"].map((name) => parts(colour(name)));
  for (let r = 0, place = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++, place += 4) {
      const value = values[r][c];
      if (value === null || value === undefined || Number.isNaN(value)) continue;
      const share = Math.min(1, Math.abs(value / (top || 1))) ** curve, full = signed && value < 0 ? under : over;
      for (let part = 0; part < 3; part++) dots.data[place + part] = zero[part] + (full[part] - zero[part]) * share;
      dots.data[place + 3] = 255;
    }
  }
  pen.putImageData(dots, 0, 0);
  return made;
}
/** `paint()` is called whenever the page turns dark or light, as long as the canvas lives. */
const PAINTERS = new Set();
function onTheme(canvas, paint) { canvas.paint = paint; PAINTERS.add(new WeakRef(canvas)); }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => PAINTERS.forEach((one) => {
  if (one.deref()) one.deref().paint(); else PAINTERS.delete(one);
}));
/** A bar that says what the colours of a map mean, from 0 (or −top) to top; `curve` as in the map. */
function scale(top = 1, signed = false, curve = 0.8) {
  const bar = el("canvas", { width: 120, height: 10, "aria-hidden": "true" });
  const paint = () => {
    const pen = bar.getContext("2d"), shadeOf = shader(signed, curve);
    for (let x = 0; x < 120; x++) { pen.fillStyle = shadeOf(signed ? (x / 119) * 2 - 1 : x / 119); pen.fillRect(x, 0, 1, 10); }
  };
  onTheme(bar, paint);
  paint();
  return el("span", { class: "scale" }, say(signed ? -top : 0), bar, say(top));
}
/** A number for people: 0.04, 12.3, 1,234. */
function say(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : Number(value).toFixed(digits);
}

// --- heat maps ---
/**
 * A matrix on a canvas, with names along both sides; fast at hundreds of tokens. Arrow keys move from cell to cell.
 * options: rows, columns (names), values[row][column] (arrays or typed arrays), top (value of the full colour, default 1),
 * signed, hover(row, column) → text of the hint, pick(row, column), over(row, column) and out() as the pointer or the keys
 * move, size (of a cell in pixels), names (false: no labels), emphasis(row, column) → whether a cell is framed,
 * curve (how fast colours darken, default 0.8), label (what the map is, for those who listen), overName(row, column) and
 * pickName(row, column) for a name along the side (one of the two is null), room (pixels across, default the page's).
 * Returns { element, canvas, update(values, top), mark(row, column) }.
 */
function heatmap(options) {
  const { rows, columns, pick, signed = false, names = true, curve = 0.8 } = options;
  let { values, top = 1 } = options;
  let marked = [null, null], cursor = null;
  const room = options.room || document.body.clientWidth;
  const size = options.size || Math.max(11, Math.min(26, Math.floor(900 / Math.max(rows.length, columns.length)),
    Math.floor((room - 100) / Math.max(1, columns.length))));
  const font = Math.max(9, Math.min(13, size - 2));
  const canvas = el("canvas", { role: "img", tabindex: 0,
    "aria-label": `${options.label || "map"}: ${rows.length} rows, ${columns.length} columns; arrow keys read the cells` });
  const pen = canvas.getContext("2d");
  const written = `${font}px system-ui, sans-serif`;
  pen.font = written;
  const widest = (texts) => Math.max(...texts.map((one) => pen.measureText(one).width), 0);
  const longest = Math.min(widest(columns), 160), left = names ? Math.ceil(Math.min(widest(rows), 160)) + 8 : 0;
  const slanted = names && longest > size - 2;
  const above = names ? (slanted ? Math.ceil(longest * 0.87) + 12 : font + 8) : 0;
  const beyond = names && slanted ? Math.ceil(Math.max(0, ...columns.map((one, c) =>
    Math.min(pen.measureText(one).width, 160) * 0.5 + font - (columns.length - c - 0.5) * size))) + 2 : 1;
  const wide = left + columns.length * size + beyond, high = above + rows.length * size + 1;
  const gap = size > 8 ? 1 : 0;
  const sheet = document.createElement("canvas");  // the cells and the names; marks are drawn over it

  function fresh() {
    const ratio = window.devicePixelRatio || 1;
    for (const one of [canvas, sheet]) { one.width = Math.ceil(wide * ratio); one.height = Math.ceil(high * ratio); }
    canvas.style.width = `${wide}px`; canvas.style.height = `${high}px`;
    const ground = sheet.getContext("2d");
    ground.setTransform(ratio, 0, 0, ratio, 0, 0);
    const ink = colour("--ink"), broad = columns.length * size, tall = rows.length * size;
    ground.imageSmoothingEnabled = false;
    if (rows.length && columns.length) ground.drawImage(bitmap(values, top, signed, curve), left, above, broad, tall);
    for (let c = 1; gap && c <= columns.length; c++) ground.clearRect(left + c * size - gap, above, gap, tall);
    for (let r = 1; gap && r <= rows.length; r++) ground.clearRect(left, above + r * size - gap, broad, gap);
    ground.strokeStyle = colour("--line");
    ground.strokeRect(left - 0.5, above - 0.5, columns.length * size + 1 - gap, rows.length * size + 1 - gap);
    if (options.emphasis) {
      ground.strokeStyle = colour("--accent");
      values.forEach((row, r) => row.forEach((_, c) => {
        if (options.emphasis(r, c)) ground.strokeRect(left + c * size + 0.5, above + r * size + 0.5, size - 2, size - 2);
      }));
    }
    if (names) { rows.forEach((_, r) => nameRow(ground, r, ink)); columns.forEach((_, c) => nameColumn(ground, c, ink)); }
    paint();
  }
  function nameRow(on, r, ink) {
    on.font = written; on.fillStyle = ink; on.textBaseline = "middle"; on.textAlign = "right";
    on.fillText(rows[r], left - 5, above + (r + 0.5) * size, 160);
  }
  function nameColumn(on, c, ink) {
    on.save();
    on.font = written; on.fillStyle = ink;
    on.translate(left + (c + 0.5) * size, above - 6);
    if (slanted) { on.rotate(-Math.PI / 3); on.textAlign = "left"; on.textBaseline = "middle"; }
    else { on.textAlign = "center"; on.textBaseline = "bottom"; on.translate(0, 4); }
    on.fillText(columns[c], 0, 0, 160);
    on.restore();
  }
  function paint() {
    const ratio = window.devicePixelRatio || 1;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(sheet, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.strokeStyle = colour("--accent");
    const [row, column] = marked;
    if (row !== null) pen.strokeRect(left - 0.5, above + row * size - 0.5, columns.length * size, size);
    if (column !== null) pen.strokeRect(left + column * size - 0.5, above - 0.5, size, rows.length * size);
    if (cursor) {
      pen.lineWidth = 2;
      pen.strokeRect(left + cursor[1] * size - 0.5, above + cursor[0] * size - 0.5, size, size);
      pen.lineWidth = 1;
    }
    if (!names) return;
    const accent = colour("--accent");
    for (const r of new Set([row, cursor && cursor[0]])) if (r !== null) nameRow(pen, r, accent);
    for (const c of new Set([column, cursor && cursor[1]])) if (c !== null) nameColumn(pen, c, accent);
  }
  function at(event) {
    const box = canvas.getBoundingClientRect();
    const c = Math.floor((event.clientX - box.left - left) / size), r = Math.floor((event.clientY - box.top - above) / size);
    return r >= 0 && r < rows.length && c >= 0 && c < columns.length ? [r, c] : null;
  }
  /** The name under the pointer: [row, null], [null, column] or null. */
  function nameAt(event) {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const lean = slanted ? Math.max(0, above - 6 - y) * 0.577 : 0;
    const r = Math.floor((y - above) / size), c = Math.floor((x - left - lean) / size);
    if (names && x < left && r >= 0 && r < rows.length) return [r, null];
    return names && y < above && c >= 0 && c < columns.length ? [null, c] : null;
  }
  let named = null;
  function goName(name) {
    if (String(name) === String(named)) return;
    named = name;
    if (name && options.overName) options.overName(...name);
    if (!name && options.out) options.out();
  }
  function go(cell, place) {
    const moved = String(cell) !== String(cursor);
    cursor = cell;
    if (moved) paint();
    if (moved && cell && options.over) options.over(...cell);
    if (moved && !cell && options.out) options.out();
    hint(cell && (options.hover ? options.hover(...cell) : `${rows[cell[0]]} → ${columns[cell[1]]}: ${say(values[cell[0]][cell[1]], 3)}`), place);
  }
  canvas.addEventListener("mousemove", (event) => {
    const cell = at(event), name = cell ? null : nameAt(event);
    canvas.style.cursor = (cell && pick) || (name && options.pickName) ? "pointer" : "default";
    if (cell) named = null;
    go(cell, event);
    if (!cell) goName(name);
  });
  canvas.addEventListener("mouseleave", () => { go(null); goName(null); });
  canvas.addEventListener("blur", () => go(null));
  canvas.addEventListener("click", (event) => {
    const cell = at(event), name = nameAt(event);
    if (cell && pick) pick(...cell);
    if (!cell && name && options.pickName) options.pickName(...name);
  });
  canvas.addEventListener("keydown", (event) => {
    if ((event.key === "Enter" || event.key === " ") && cursor && pick) { event.preventDefault(); pick(...cursor); return; }
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [];
    if (down === undefined || !rows.length || !columns.length) return;
    event.preventDefault();
    const [r, c] = cursor || [-down, -right];
    const next = [Math.max(0, Math.min(rows.length - 1, r + down)), Math.max(0, Math.min(columns.length - 1, c + right))];
    const box = canvas.getBoundingClientRect();
    go(next, { clientX: box.left + left + (next[1] + 0.5) * size, clientY: box.top + above + (next[0] + 0.5) * size });
  });
  onTheme(canvas, fresh);
  fresh();
  return {
    element: el("div", { class: "scroll" }, canvas), canvas,
    update(newer, newTop = top) { values = newer; top = newTop; fresh(); },
    mark(row = null, column = null) { marked = [row, column]; paint(); },
  };
}
/** A matrix as a picture of at most `side` pixels, without names; where cells share a pixel it shows the largest. */
function thumbnail(values, options = {}) {
  const { side = 64, top = 1, signed = false, curve = 0.8 } = options;
  const rows = values.length, columns = rows ? values[0].length : 0;
  const high = Math.max(1, Math.min(rows, side)), wide = Math.max(1, Math.min(columns, side));
  const canvas = el("canvas", { class: "thumbnail", width: wide, height: high, "aria-hidden": "true" });
  let largest = values;
  if (high < rows || wide < columns) {
    largest = Array.from({ length: high }, () => new Float32Array(wide));
    for (let r = 0; r < rows; r++) {
      const into = largest[Math.floor((r * high) / rows)];
      for (let c = 0; c < columns; c++) {
        const place = Math.floor((c * wide) / columns);
        if (Math.abs(values[r][c]) > Math.abs(into[place])) into[place] = values[r][c];
      }
    }
  }
  const paint = () => canvas.getContext("2d", { willReadFrequently: true }).drawImage(bitmap(largest, top, signed, curve), 0, 0);
  onTheme(canvas, paint);
  paint();
  return canvas;
}

// --- tables and charts ---
/** A table that sorts by a click on its head; numbers stand right. rows: arrays of text or numbers. */
function table(head, rows, options = {}) {
  const body = el("tbody");
  const show = options.show || ((value) => (typeof value === "number" ? say(value) : value ?? "–"));
  const put = (sorted) => body.replaceChildren(...sorted.map((row) => el("tr", {},
    row.map((value, place) => el("td", { class: typeof value === "number" ? "number" : null }, String(show(value, place)))))));
  const heads = head.map((name, place) => el("th", {
    scope: "col", tabindex: 0, class: rows.length && typeof rows[0][place] === "number" ? "number" : null,
    onclick: (event) => {
      const rising = event.currentTarget.getAttribute("aria-sort") === "descending";
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      event.currentTarget.setAttribute("aria-sort", rising ? "ascending" : "descending");
      const sorted = [...rows].sort((a, b) => (a[place] > b[place] ? 1 : a[place] < b[place] ? -1 : 0));
      put(rising ? sorted : sorted.reverse());
    },
    onkeydown: (event) => { if (event.key === "Enter") event.currentTarget.click(); },
  }, name));
  put(rows);
  return el("div", { class: "scroll" }, el("table", { class: "sortable" }, el("thead", {}, el("tr", {}, heads)), body));
}
/** Names and colours; a click switches a name off and on where `switched(place, on)` is given. */
function legend(names, colours = PALETTE, switched = null) {
  return el("div", { class: "legend" }, names.map((name, place) => {
    const square = el("i", { style: `background:${colours[place % colours.length]}` });
    if (!switched) return el("span", {}, square, name);
    const button = el("button", { type: "button", "aria-pressed": "true", onclick: () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on)); button.style.opacity = on ? 1 : 0.35;
      switched(place, on);
    } }, square, name);
    return button;
  }));
}
/**
 * Curves over named places. options: names (of the x places), series: [{name, values, dashed}], label (of y),
 * low, high. Points show their value on hover; the legend switches curves.
 */
function curves(options) {
  const { names, series, label = "" } = options;
  const all = series.flatMap((one) => one.values).filter((value) => value !== null && value !== undefined);
  const low = options.low ?? Math.min(0, ...all), high = options.high ?? Math.max(...all) * 1.05;
  const wide = 720, tall = 320, left = 52, below = 34, above = 14, right = 16;
  const x = (place) => left + (names.length < 2 ? (wide - left - right) / 2 : (place * (wide - left - right)) / (names.length - 1));
  const y = (value) => above + (1 - (value - low) / (high - low || 1)) * (tall - above - below);
  const picture = svg("svg", { viewBox: `0 0 ${wide} ${tall}`, style: `width:100%;max-width:${wide}px;height:auto`, role: "img", "aria-label": label });
  for (let step = 0; step <= 4; step++) {
    const value = low + ((high - low) * step) / 4;
    picture.append(svg("line", { class: "axis", x1: left, x2: wide - right, y1: y(value), y2: y(value) }),
      svg("text", { class: "quiet", x: left - 8, y: y(value) + 4, "text-anchor": "end" }, say(value, high - low < 3 ? 2 : 0)));
  }
  names.forEach((name, place) => picture.append(svg("text", { class: "quiet", x: x(place), y: tall - 12, "text-anchor": "middle" }, name)));
  const groups = series.map((one, number) => {
    const ink = one.colour || PALETTE[number % PALETTE.length];
    const points = one.values.map((value, place) => [value, place]).filter(([value]) => value !== null && value !== undefined);
    const ends = (place) => one.ends?.[place] ?? null;
    const band = points.filter(([, place]) => ends(place));
    const edge = (side) => band.map(([, place]) => `${x(place)},${y(Math.min(high, Math.max(low, ends(place)[side])))}`);
    const group = svg("g", {}, band.length > 1 ? svg("polygon", { class: "band", points: [...edge(0), ...edge(1).reverse()].join(" "), fill: ink, opacity: 0.13 }) : null,
      svg("polyline", { points: points.map(([value, place]) => `${x(place)},${y(value)}`).join(" "),
      fill: "none", stroke: ink, "stroke-width": 2, "stroke-dasharray": one.dashed ? "5 4" : null }),
    points.map(([value, place]) => svg("circle", { cx: x(place), cy: y(value), r: 4, fill: ink,
      onmousemove: (event) => hint(`${one.name}, ${names[place]}: ${say(value, 3)}${ends(place) ? ` (95 %: ${say(ends(place)[0], 3)} to ${say(ends(place)[1], 3)})` : ""}`, event), onmouseleave: () => hint(null) })));
    picture.append(group);
    return group;
  });
  return el("div", {}, label ? el("div", { class: "quiet" }, label) : null, picture,
    legend(series.map((one) => one.name), series.map((one, n) => one.colour || PALETTE[n % PALETTE.length]),
      (place, on) => groups[place].setAttribute("visibility", on ? "visible" : "hidden")));
}
/** Tokens in a row, tinted by values from 0 to 1 (or −1 to 1): a click or Enter picks one. */
function tokens(names, options = {}) {
  const spans = names.map((name, place) => el("span", { class: "token", tabindex: options.pick ? 0 : null,
    onclick: () => options.pick && options.pick(place),
    onkeydown: (event) => { if (event.key === "Enter" && options.pick) options.pick(place); },
    onmouseenter: (event) => { if (options.over) options.over(place, event); },
    onmousemove: (event) => { if (options.hover) hint(options.hover(place), event); },
    onmouseleave: () => { hint(null); if (options.out) options.out(place); } }, name));
  return {
    element: el("div", { class: "tokens" }, spans),
    tint(values, signed = false) {
      const shadeOf = shader(signed);
      spans.forEach((span, place) => {
        const value = values ? values[place] : null;
        span.style.background = value === null || value === undefined ? "" : shadeOf(value);
        span.style.color = value !== null && value !== undefined && Math.abs(value) > 0.45 ? "var(--paper)" : "";
      });
    },
    mark(place) { spans.forEach((span, other) => span.classList.toggle("picked", other === place)); },
  };
}
