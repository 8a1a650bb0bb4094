// What all views share: elements, controls, colours, numbers, tables. No library, no network.

/** Fill every panel of a page: `modules[name].show(root, data)` for each. */
export function showAll(modules, panels) {
  const roots = document.querySelectorAll("section.panel > .view");
  panels.forEach((panel, place) => {
    try {
      modules[panel.view].show(roots[place], panel.data);
    } catch (error) {  // the other panels can still be read
      console.error(error);
      roots[place].append(el("p", { class: "quiet" }, `This part cannot be shown: ${error.message}`));
    }
  });
  document.body.dataset.ready = "true";
}
/**
 * What Python's `pack(tensor)` packed (the upper three bytes of each 32-bit float), as nested arrays whose innermost are
 * typed: a tensor of shape [2, 3, 4] becomes two arrays of three Float32Arrays of four. Plain arrays are returned as they are.
 */
export function unpack(given) {
  if (Array.isArray(given)) return given;
  const { shape, packed } = given, bytes = atob(packed), bits = new Uint32Array(bytes.length / 3);
  for (let place = 0, at = 0; place < bits.length; place++, at += 3) {
    bits[place] = (bytes.charCodeAt(at) | (bytes.charCodeAt(at + 1) << 8) | (bytes.charCodeAt(at + 2) << 16)) << 8;
  }
  const whole = new Float32Array(bits.buffer), last = shape[shape.length - 1];
  let rows = [];
  for (let at = 0; last && at < whole.length; at += last) rows.push(whole.subarray(at, at + last));
  for (const size of shape.slice(1, -1).reverse()) {
    rows = Array.from({ length: rows.length / size }, (_, place) => rows.slice(place * size, (place + 1) * size));
  }
  return rows;
}

/** An element; text given as a child is text, never HTML. `on…` attributes are listeners. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}
/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}
function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") made.style.cssText = value;  // an attribute would be refused by the page's policy
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** A heading inside a view, one level below that of its panel. */
export function heading(root, attributes = {}, ...children) {
  const titled = root.closest("section.panel")?.querySelector(":scope > h2, :scope > h3");
  const level = (root.closest("article") ? 3 : 2) + (titled ? 1 : 0);
  return el(`h${level}`, { ...attributes, class: `view-heading ${attributes.class || ""}`.trim() }, ...children);
}

// --- hints that follow the pointer ---
let tip = null;
/** Show a text next to the pointer (or at `event.clientX`, `event.clientY`); without a text, hide it. */
export function hint(text, event) {
  if (!text) { if (tip) tip.hidden = true; return; }
  if (!tip) { tip = el("div", { id: "tip", role: "status" }); document.body.append(tip); }
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? Math.max(4, event.clientY - box.height - 10) : event.clientY + 18}px`;
}

// --- controls ---
/** A row of controls. */
export function controls(...children) { return el("div", { class: "controls" }, children); }
/**
 * Buttons of which one is pressed (a list to pull down, if there are many): `options` are [value, text].
 * What it returns has `choose(value)`, which shows another choice without calling `changed`.
 */
export function choice(name, options, chosen, changed, { list: asList = options.length > 7 } = {}) {
  if (asList) {
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
  const made = el("span", { class: "choice", role: "group", "aria-label": name }, el("span", { class: "name" }, name), el("span", { class: "buttons" }, buttons));
  made.choose = (value) => buttons.forEach((one, place) => one.setAttribute("aria-pressed", String(options[place][0] === value)));
  return made;
}
/** Arrow keys, Home and End go from one element to the next (Tab stops once for all); `step` elements up and down. */
export function roving(elements, step = 1) {
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
export function toggle(name, on, changed) {
  const box = el("input", { type: "checkbox", checked: on, onchange: () => changed(box.checked) });
  return el("label", {}, box, name);
}
/** A part that scrolls if it is too wide or too high; then the keyboard can reach it. */
export function scroller(label, ...children) {
  const made = el("div", { class: "scroll" }, children);
  new ResizeObserver(() => {
    const needed = made.scrollWidth > made.clientWidth + 1 || made.scrollHeight > made.clientHeight + 1;
    for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", label]]) {
      if (needed) made.setAttribute(name, value); else made.removeAttribute(name);
    }
  }).observe(made);
  return made;
}

// --- colours ---
export function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
export const PALETTE = ["#2f5fae", "#c0504d", "#4f8f5b", "#e0a030", "#7a5ea8", "#3a9ea5", "#b0608f", "#7f7f3f"];
/** The n-th colour of curves and legends, light or dark with the page. */
export const hue = (n) => `var(--hue-${n % 8})`;
export function channels(hex) { return [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16)); }
export function mix(from, to, share) {
  const [a, b] = [channels(from), channels(to)];
  return `rgb(${a.map((value, place) => Math.round(value + (b[place] - value) * share)).join(",")})`;
}
/** Black or white, whichever can be read on a colour (`#rrggbb` or `rgb(…)`): one of them always has a contrast of 4.5. */
export function inkOn(ground) {
  const values = ground.startsWith("#") ? channels(ground) : ground.match(/\d+/g).slice(0, 3).map(Number);
  const [r, g, b] = values.map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}
/** A function from values (0 to 1; with `signed` −1 to 1) to colours; a smaller `curve` shows small values better. */
export function shader(signed = false, curve = 0.8) {
  const zero = colour("--cell-0");
  const ramp = (full) => Array.from({ length: 256 }, (_, step) => mix(zero, full, (step / 255) ** curve));
  const over = ramp(colour(signed ? "--cell-plus" : "--cell-1")), under = signed ? ramp(colour("--cell-minus")) : over;
  return (value) => (value < 0 ? under : over)[Math.round(Math.min(1, Math.abs(value)) * 255)];
}
/** Give an element the colour of a value, and a text colour that can be read on it; without a colour, neither. */
export function tint(element, ground) {
  element.style.background = ground || "";
  element.style.color = ground ? inkOn(ground) : "";
}
/** `paint()` is called whenever the page turns dark or light, as long as the element lives. */
const PAINTERS = new Set();
export function onTheme(element, paint) { element.paint = paint; PAINTERS.add(new WeakRef(element)); }
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => PAINTERS.forEach((one) => {
  if (one.deref()) one.deref().paint(); else PAINTERS.delete(one);
}));

// --- numbers ---
/** What search sums: log P of the decoder, or its mixture with CTC. */
export const measureOfSearch = (ctc) => (ctc ? `log P, ${formatNumber(1 - ctc)} decoder + ${formatNumber(ctc)} CTC:` : "log P");

/** A number for people, with `digits` decimals but at least two significant digits: 0.42, 0.0042, 3.9e-5, 12.30, 1,234. */
export function formatNumber(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 999.5) return Math.round(value).toLocaleString("en");
  if (size === 0) return "0";
  if (digits === 0 && Number.isInteger(value)) return String(value);
  if (size >= 10 ** (1 - digits)) return Number(value).toFixed(digits);
  return size >= 1e-4 ? String(Number(Number(value).toPrecision(2))) : Number(value).toExponential(1);
}
/** A share of 1 in per cent: 43 %, 0.12 %. */
export function formatPercent(share) {
  return share === null || share === undefined || Number.isNaN(share) ? "–" : `${formatNumber(100 * share, 0)} %`;
}

// --- tables and legends ---
/** A table that sorts by a click on its head; numbers stand right. rows: arrays of text or numbers. */
export function table(head, rows, options = {}) {
  const body = el("tbody");
  const show = options.show || ((value) => (typeof value === "number" ? formatNumber(value) : value ?? "–"));
  const put = (sorted) => body.replaceChildren(...sorted.map((row) => el("tr", {},
    row.map((value, place) => el("td", { class: typeof value === "number" ? "number" : null }, String(show(value, place)))))));
  const heads = head.map((name, place) => (name === "" ? el("td") : el("th", { scope: "col", class: rows.length && typeof rows[0][place] === "number" ? "number" : null },
    el("button", { type: "button", class: "sort", onclick: () => {
      const rising = heads[place].getAttribute("aria-sort") === "descending";
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      heads[place].setAttribute("aria-sort", rising ? "ascending" : "descending");
      const sorted = [...rows].sort((a, b) => (a[place] > b[place] ? 1 : a[place] < b[place] ? -1 : 0));
      put(rising ? sorted : sorted.reverse());
    } }, name))));
  put(rows);
  return scroller(options.label || "table", el("table", { class: "sortable" }, el("thead", {}, el("tr", {}, heads)), body));
}
/** Names and colours; a click switches a name off and on where `switched(place, on)` is given. */
export function legend(names, colours, switched = null) {
  return el("div", { class: "legend" }, names.map((name, place) => {
    const square = el("i", { style: `background:${colours[place % colours.length]}` });
    if (!switched) return el("span", {}, square, name);
    const button = el("button", { type: "button", "aria-pressed": "true", onclick: () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      switched(place, on);
    } }, square, name);
    return button;
  }));
}
