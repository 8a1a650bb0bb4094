// Maps: matrices with names along both sides that stay in sight, small pictures of them, and the key of their colours.
import { channels, choice, colour, el, formatNumber, hint, onTheme, shader } from "./kit.js";

/** Columns from which on a map opens with each row on its own scale: spread over so many, absolute weights are all faint. */
export const MANY = 24;

/** Values (rows of numbers, null for an empty cell) as a picture with one dot for each; `tops` has the value of the full colour of each row. */
function bitmap(values, tops, signed, curve) {
  const rows = values.length, columns = rows ? values[0].length : 0;
  const made = document.createElement("canvas");
  made.width = Math.max(1, columns); made.height = Math.max(1, rows);
  const pen = made.getContext("2d", { willReadFrequently: true }), dots = pen.createImageData(made.width, made.height);
  const [zero, over, under] = ["--cell-0", signed ? "--cell-plus" : "--cell-1", "--cell-minus"].map((name) => channels(colour(name)));
  for (let r = 0, place = 0; r < rows; r++) {
    const top = tops[r] || 1;
    for (let c = 0; c < columns; c++, place += 4) {
      const value = values[r][c];
      if (value === null || value === undefined || Number.isNaN(value)) continue;
      const share = Math.min(1, Math.abs(value / top)) ** curve, full = signed && value < 0 ? under : over;
      for (let part = 0; part < 3; part++) dots.data[place + part] = zero[part] + (full[part] - zero[part]) * share;
      dots.data[place + 3] = 255;
    }
  }
  pen.putImageData(dots, 0, 0);
  return made;
}
/** The largest absolute value of a row; 0 of an empty one. */
export const largest = (row) => row.reduce((most, value) => Math.max(most, Math.abs(value ?? 0)), 0);
/** The value of the full colour of each row: its own largest value, or one for all. */
export const rowTops = (values, perRow, top = 1) => values.map((row) => (perRow ? largest(row) : top) || 1);

/**
 * The key of a map: a bar of its colours with ticks. options: top (the value of the full colour), signed, curve as in the map,
 * perRow (each row has its own scale: ticks are shares of the largest value in a row), unit.
 */
export function key(options = {}) {
  const { top = 1, signed = false, curve = 0.8, perRow = false, unit = "" } = options, wide = 200;
  const caption = perRow ? "share of the largest value in its row" : unit;
  const shares = signed ? [-1, -0.5, 0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
  const mark = (share) => (perRow ? `${100 * share} %` : formatNumber(share * top));
  const bar = el("canvas", { width: wide, height: 10, role: "img", "aria-label": `colours from ${mark(shares[0])} to ${mark(1)} ${caption}`.trim() });
  const paint = () => {
    const pen = bar.getContext("2d"), shadeOf = shader(signed, curve);
    for (let x = 0; x < wide; x++) { pen.fillStyle = shadeOf(signed ? (x / (wide - 1)) * 2 - 1 : x / (wide - 1)); pen.fillRect(x, 0, 1, 10); }
  };
  onTheme(bar, paint);
  paint();
  return el("span", { class: "key" }, el("span", { class: "key-bar" }, bar,
    el("span", { class: "key-ticks", "aria-hidden": "true" }, shares.map((share, place) => el("i", { style: `left:${(100 * place) / (shares.length - 1)}%` }, mark(share))))),
  caption ? el("span", {}, caption) : null);
}
/** The choice between one colour scale for all cells and one for each row, and what it means in words. */
export function scalingChoice(perRow, changed) {
  return choice("Colours", [[false, "absolute"], [true, "per row"]], perRow, changed);
}
export function scalingNote(perRow) {
  return perRow ? "Each row has its own colour scale: the strongest colour is the largest value of that row, so compare colours within a row only."
    : "All rows share one colour scale: equal colours are equal values anywhere on the map.";
}

/**
 * A matrix on a canvas; fast at hundreds of tokens. The names of rows and columns stay in sight when it scrolls. Arrow keys
 * move from cell to cell.
 * options: rows, columns (names), values[row][column] (arrays or typed arrays), top (value of the full colour, default 1),
 * perRow (each row is coloured by its own largest value), tops (the value of the full colour of each row, instead), signed,
 * hover(row, column) → text of the hint, pick(row, column), over(row, column) and out() as the pointer or the keys move,
 * size (of a cell in pixels), room (pixels across; default the page's), emphasis(row, column) → whether a cell is framed,
 * curve (how fast colours become strong, default 0.8), label (what the map is), overName(row, column) and
 * pickName(row, column) for a name along the side (one of the two is null).
 * Returns { element, canvas, update(values, {top, tops, perRow}), mark(row, column) }.
 */
export function heatmap(options) {
  const { rows, columns, pick, signed = false, curve = 0.8 } = options;
  let { values, top = 1, tops = null, perRow = false } = options;
  let marked = [null, null], cursor = null;
  const room = options.room || document.querySelector("main")?.clientWidth || document.body.clientWidth;
  const size = options.size || Math.max(11, Math.min(26, Math.floor(900 / Math.max(rows.length, columns.length)),
    Math.floor((room - 100) / Math.max(1, columns.length))));
  const font = Math.max(10, Math.min(13, size - 1)), gap = size > 8 ? 1 : 0;
  const wide = columns.length * size, high = rows.length * size;
  const canvas = el("canvas", { class: "cells", role: "img", tabindex: 0,
    "aria-label": `${options.label || "map"}: ${rows.length} rows, ${columns.length} columns; arrow keys read the cells` });
  const pen = canvas.getContext("2d"), sheet = document.createElement("canvas");  // the cells; marks are drawn over them
  pen.font = `${font}px system-ui, sans-serif`;
  const level = columns.every((name) => pen.measureText(name).width <= size - 2);
  const name = (text, row, column) => el("span", { title: text,
    style: row === null && level ? `width:${size}px;line-height:${font + 6}px` : row === null ? `width:${size}px;line-height:${size}px` : `height:${size}px;line-height:${size}px`,
    onmouseenter: () => options.overName && options.overName(row, column), onmouseleave: () => options.out && options.out(),
    onclick: () => options.pickName && options.pickName(row, column) }, text);
  const rowNames = rows.map((text, row) => name(text, row, null)), columnNames = columns.map((text, column) => name(text, null, column));
  const scroll = el("div", { class: "map", style: `--font:${font}px` }, el("div", { class: "map-sheet" },
    el("div", { class: "map-corner" }), el("div", { class: `map-columns${level ? " level" : ""}`, "aria-hidden": "true" }, columnNames),
    el("div", { class: "map-rows", "aria-hidden": "true" }, rowNames), canvas));
  if (options.pickName) scroll.classList.add("picks-names");

  function fresh() {
    const ratio = window.devicePixelRatio || 1;
    for (const one of [canvas, sheet]) { one.width = Math.max(1, Math.ceil((wide + 1) * ratio)); one.height = Math.max(1, Math.ceil((high + 1) * ratio)); }
    canvas.style.width = `${wide + 1}px`; canvas.style.height = `${high + 1}px`;
    const ground = sheet.getContext("2d");
    ground.setTransform(ratio, 0, 0, ratio, 0, 0);
    ground.imageSmoothingEnabled = false;
    if (rows.length && columns.length) ground.drawImage(bitmap(values, tops || rowTops(values, perRow, top), signed, curve), 0, 0, wide, high);
    for (let c = 1; gap && c <= columns.length; c++) ground.clearRect(c * size - gap, 0, gap, high);
    for (let r = 1; gap && r <= rows.length; r++) ground.clearRect(0, r * size - gap, wide, gap);
    ground.strokeStyle = colour("--line");
    ground.strokeRect(0.5, 0.5, wide - gap, high - gap);
    if (options.emphasis) {
      ground.strokeStyle = colour("--accent");
      values.forEach((row, r) => row.forEach((_, c) => {
        if (options.emphasis(r, c)) ground.strokeRect(c * size + 1, r * size + 1, size - 3, size - 3);
      }));
    }
    paint();
  }
  function paint() {
    const ratio = window.devicePixelRatio || 1, [row, column] = marked;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(sheet, 0, 0);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.strokeStyle = colour("--accent");
    if (row !== null) pen.strokeRect(0.5, row * size + 0.5, wide - 1, size - 1);
    if (column !== null) pen.strokeRect(column * size + 0.5, 0.5, size - 1, high - 1);
    if (cursor) { pen.lineWidth = 2; pen.strokeRect(cursor[1] * size, cursor[0] * size, size, size); pen.lineWidth = 1; }
    rowNames.forEach((one, r) => one.classList.toggle("now", r === row || Boolean(cursor) && r === cursor[0]));
    columnNames.forEach((one, c) => one.classList.toggle("now", c === column || Boolean(cursor) && c === cursor[1]));
  }
  function at(event) {
    const box = canvas.getBoundingClientRect();
    const c = Math.floor((event.clientX - box.left) / size), r = Math.floor((event.clientY - box.top) / size);
    return r >= 0 && r < rows.length && c >= 0 && c < columns.length ? [r, c] : null;
  }
  function go(cell, place) {
    const moved = String(cell) !== String(cursor);
    cursor = cell;
    if (moved) paint();
    if (moved && cell && options.over) options.over(...cell);
    if (moved && !cell && options.out) options.out();
    hint(cell && (options.hover ? options.hover(...cell) : `${rows[cell[0]]} → ${columns[cell[1]]}: ${formatNumber(values[cell[0]][cell[1]], 3)}`), place);
  }
  /** Scroll so that a cell is in sight, to the right of and below the names. */
  function reveal([r, c]) {
    const left = canvas.offsetLeft, above = canvas.offsetTop;
    scroll.scrollLeft = Math.min(c * size, Math.max(scroll.scrollLeft, left + (c + 1) * size - scroll.clientWidth));
    scroll.scrollTop = Math.min(r * size, Math.max(scroll.scrollTop, above + (r + 1) * size - scroll.clientHeight));
  }
  canvas.addEventListener("mousemove", (event) => {
    const cell = at(event);
    canvas.style.cursor = cell && pick ? "pointer" : "default";
    go(cell, event);
  });
  canvas.addEventListener("mouseleave", () => go(null));
  canvas.addEventListener("blur", () => go(null));
  canvas.addEventListener("click", (event) => { const cell = at(event); if (cell && pick) pick(...cell); });
  canvas.addEventListener("keydown", (event) => {
    if ((event.key === "Enter" || event.key === " ") && cursor && pick) { event.preventDefault(); pick(...cursor); return; }
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [];
    if (down === undefined || !rows.length || !columns.length) return;
    event.preventDefault();
    const [r, c] = cursor || [-down, -right];
    const next = [Math.max(0, Math.min(rows.length - 1, r + down)), Math.max(0, Math.min(columns.length - 1, c + right))];
    reveal(next);
    const box = canvas.getBoundingClientRect();
    go(next, { clientX: box.left + (next[1] + 0.5) * size, clientY: box.top + (next[0] + 0.5) * size });
  });
  onTheme(canvas, fresh);
  fresh();
  return {
    element: scroll, canvas,
    update(newer, change = {}) {
      values = newer; top = change.top ?? top; tops = change.tops ?? tops; perRow = change.perRow ?? perRow;
      fresh();
    },
    mark(row = null, column = null) { marked = [row, column]; paint(); },
  };
}
/** A matrix as a picture of at most `side` pixels, without names; where cells share a pixel it shows the largest. */
export function thumbnail(values, options = {}) {
  const { side = 64, top = 1, perRow = false, signed = false, curve = 0.8 } = options;
  const rows = values.length, columns = rows ? values[0].length : 0;
  const high = Math.max(1, Math.min(rows, side)), wide = Math.max(1, Math.min(columns, side));
  const canvas = el("canvas", { class: "thumbnail", width: wide, height: high, role: "presentation", "aria-hidden": "true" });
  const tops = rowTops(values, perRow, top);
  let shares = values.map((row, r) => Float32Array.from(row, (value) => value / tops[r]));
  if (high < rows || wide < columns) {
    const strongest = Array.from({ length: high }, () => new Float32Array(wide));
    for (let r = 0; r < rows; r++) {
      const into = strongest[Math.floor((r * high) / rows)];
      for (let c = 0; c < columns; c++) {
        const place = Math.floor((c * wide) / columns);
        if (Math.abs(shares[r][c]) > Math.abs(into[place])) into[place] = shares[r][c];
      }
    }
    shares = strongest;
  }
  const paint = () => canvas.getContext("2d", { willReadFrequently: true }).drawImage(bitmap(shares, shares.map(() => 1), signed, curve), 0, 0);
  onTheme(canvas, paint);
  paint();
  return canvas;
}
