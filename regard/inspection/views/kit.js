// What all views share. No library, no network: elements, controls, tables, heat maps, charts.
const VIEWS = {};
/** Register a view: `show(root, data)` fills an element. */
function view(name, show) { VIEWS[name] = show; }
/** Fill every panel of the page. */
function showAll(panels) {
  const sections = document.querySelectorAll("section.panel > .view");
  panels.forEach((panel, place) => VIEWS[panel.view](sections[place], panel.data));
  document.body.dataset.ready = "true";
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
/** Buttons of which one is pressed (a list to pull down, if there are many): `options` are [value, text]. */
function choice(name, options, chosen, changed) {
  if (options.length > 7) {
    const list = el("select", { "aria-label": name, onchange: () => changed(options[list.selectedIndex][0]) },
      options.map(([value, text]) => el("option", { selected: value === chosen }, text)));
    return el("label", {}, el("span", { class: "name" }, name), list);
  }
  const buttons = options.map(([value, text]) => el("button", {
    type: "button", "aria-pressed": String(value === chosen), onclick: (event) => {
      buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === event.currentTarget)));
      changed(value);
    } }, text));
  return el("span", { class: "choice", role: "group", "aria-label": name }, el("span", { class: "name" }, name), el("span", {}, buttons));
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
  const size = Math.min(1, Math.abs(value)) ** 0.8;
  return mix(colour("--cell-0"), colour(signed ? (value < 0 ? "--cell-minus" : "--cell-plus") : "--cell-1"), size);
}
/** The same for many values: colours are looked up once. */
function shader(signed = false) {
  const [zero, full, minus, plus] = ["--cell-0", "--cell-1", "--cell-minus", "--cell-plus"].map(colour);
  return (value) => mix(zero, signed ? (value < 0 ? minus : plus) : full, Math.min(1, Math.abs(value)) ** 0.8);
}
/** A number for people: 0.04, 12.3, 1,234. */
function say(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : Number(value).toFixed(digits);
}

// --- heat maps ---
/**
 * A matrix on a canvas, with names along both sides; fast at hundreds of tokens.
 * options: rows, columns (names), values[row][column], top (value of the full colour, default 1), signed,
 * hover(row, column) → text of the hint, pick(row, column), size (of a cell in pixels), names (false: no labels),
 * emphasis(row, column) → whether a cell is framed.
 * Returns { element, update(values), mark(row, column) }.
 */
function heatmap(options) {
  const { rows, columns, pick, signed = false, names = true } = options;
  let { values, top = 1 } = options;
  let marked = [null, null];
  const size = options.size || Math.max(11, Math.min(26, Math.floor(900 / Math.max(rows.length, columns.length))));
  const font = Math.max(9, Math.min(13, size - 2));
  const canvas = el("canvas", { role: "img", tabindex: pick ? 0 : null, "aria-label": `map of ${rows.length} by ${columns.length}` });
  const pen = canvas.getContext("2d");
  const written = `${font}px system-ui, sans-serif`;
  pen.font = written;
  const slanted = names && Math.max(...columns.map((one) => pen.measureText(one).width), 0) > size - 2;
  const left = names ? Math.ceil(Math.max(...rows.map((one) => pen.measureText(one).width), 0)) + 8 : 0;
  const longest = Math.max(...columns.map((one) => pen.measureText(one).width), 0);
  const above = names ? (slanted ? Math.ceil(longest * 0.87) + 12 : font + 8) : 0;
  const beyond = names && slanted ? Math.ceil(Math.max(0, pen.measureText(columns[columns.length - 1] || "").width * 0.5 - size / 2)) + 4 : 1;
  const wide = left + columns.length * size + beyond, high = above + rows.length * size + 1;

  function paint() {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.ceil(wide * ratio); canvas.height = Math.ceil(high * ratio);
    canvas.style.width = `${wide}px`; canvas.style.height = `${high}px`;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    const shadeOf = shader(signed), ink = colour("--ink"), quiet = colour("--quiet"), accent = colour("--accent");
    const gap = size > 8 ? 1 : 0;
    values.forEach((row, r) => row.forEach((value, c) => {
      if (value === null || value === undefined) return;
      pen.fillStyle = shadeOf(top ? value / top : 0);
      pen.fillRect(left + c * size, above + r * size, size - gap, size - gap);
    }));
    pen.strokeStyle = colour("--line");
    pen.strokeRect(left - 0.5, above - 0.5, columns.length * size + 1 - gap, rows.length * size + 1 - gap);
    if (options.emphasis) {
      pen.strokeStyle = accent;
      values.forEach((row, r) => row.forEach((_, c) => {
        if (options.emphasis(r, c)) pen.strokeRect(left + c * size + 0.5, above + r * size + 0.5, size - 2, size - 2);
      }));
    }
    if (marked[0] !== null || marked[1] !== null) {
      pen.strokeStyle = accent;
      if (marked[0] !== null) pen.strokeRect(left - 0.5, above + marked[0] * size - 0.5, columns.length * size, size);
      if (marked[1] !== null) pen.strokeRect(left + marked[1] * size - 0.5, above - 0.5, size, rows.length * size);
    }
    if (!names) return;
    pen.font = written; pen.textBaseline = "middle"; pen.textAlign = "right";
    rows.forEach((name, r) => { pen.fillStyle = marked[0] === r ? accent : ink; pen.fillText(name, left - 5, above + (r + 0.5) * size); });
    columns.forEach((name, c) => {
      pen.fillStyle = marked[1] === c ? accent : ink;
      pen.save();
      pen.translate(left + (c + 0.5) * size, above - 6);
      if (slanted) { pen.rotate(-Math.PI / 3); pen.textAlign = "left"; } else { pen.textAlign = "center"; pen.textBaseline = "bottom"; pen.translate(0, 4); }
      pen.fillText(name, 0, 0);
      pen.restore();
    });
  }
  function at(event) {
    const box = canvas.getBoundingClientRect();
    const c = Math.floor((event.clientX - box.left - left) / size), r = Math.floor((event.clientY - box.top - above) / size);
    return r >= 0 && r < rows.length && c >= 0 && c < columns.length ? [r, c] : null;
  }
  canvas.addEventListener("mousemove", (event) => {
    const cell = at(event);
    canvas.style.cursor = cell && pick ? "pointer" : "default";
    if (!cell) { hint(null); return; }
    const value = values[cell[0]][cell[1]];
    hint(options.hover ? options.hover(...cell) : `${rows[cell[0]]} → ${columns[cell[1]]}: ${say(value, 3)}`, event);
  });
  canvas.addEventListener("mouseleave", () => hint(null));
  canvas.addEventListener("click", (event) => { const cell = at(event); if (cell && pick) pick(...cell); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  paint();
  return {
    element: el("div", { class: "scroll" }, canvas), canvas,
    update(newer, newTop = top) { values = newer; top = newTop; paint(); },
    mark(row = null, column = null) { marked = [row, column]; paint(); },
  };
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
    const group = svg("g", {}, svg("polyline", { points: points.map(([value, place]) => `${x(place)},${y(value)}`).join(" "),
      fill: "none", stroke: ink, "stroke-width": 2, "stroke-dasharray": one.dashed ? "5 4" : null }),
    points.map(([value, place]) => svg("circle", { cx: x(place), cy: y(value), r: 4, fill: ink,
      onmousemove: (event) => hint(`${one.name}, ${names[place]}: ${say(value, 3)}`, event), onmouseleave: () => hint(null) })));
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
      spans.forEach((span, place) => {
        const value = values ? values[place] : null;
        span.style.background = value === null || value === undefined ? "" : shade(value, signed);
        span.style.color = value !== null && value !== undefined && Math.abs(value) > 0.45 ? "var(--paper)" : "";
      });
    },
    mark(place) { spans.forEach((span, other) => span.classList.toggle("picked", other === place)); },
  };
}
