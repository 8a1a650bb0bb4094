// Pictures with their captions: where the model looked just before it wrote each word.
import { choice, controls, el, formatNumber, onTheme, roving, toggle, unpack } from "./kit.js";

const HEAT = [214, 64, 32], VEIL = [16, 20, 32];  // the veil is that of looks.py
const LARGE = 384, SMALL = 96;

export function show(root, looks) {
  root.append(...looks.map((look) => showLook(look, looks.length > 1)));
}

function showLook(look, several) {
  const [rows, columns] = look.grid, layers = look.layers.map(({ layer, weights }) => ({ layer, weights: unpack(weights) }));
  const state = { layer: null, head: null, way: "light", smooth: true };
  let seen = null, locked = null;
  const picture = new Image();
  const large = el("canvas", { role: "img", class: "look-large" });
  const readout = el("p", { class: "look-readout", "aria-live": "polite" });
  const tiles = look.words.map((word, place) => {
    const canvas = el("canvas", { "aria-hidden": "true" });
    const made = el("button", { type: "button", class: "tile look-word", "aria-pressed": "false",
      onmouseenter: () => show(place), onmouseleave: () => show(null), onfocus: () => show(place), onblur: () => show(null),
      onclick: () => { locked = locked === place ? null : place; show(seen); },
      onkeydown: (event) => { if (event.key === "Escape") { locked = null; show(null); } } },
    layers.length ? canvas : "", el("span", {}, word));
    return { made, canvas };
  });
  roving(tiles.map(({ made }) => made));

  /** The weights of every word, over the layers and heads that were chosen: words of places. */
  function maps() {
    const chosen = layers.filter(({ layer }) => state.layer === null || layer === state.layer)
      .flatMap(({ weights }) => (state.head === null ? weights : [weights[state.head]]));
    return look.words.map((_, word) => Float32Array.from({ length: rows * columns },
      (_, place) => chosen.reduce((sum, head) => sum + head[word][place], 0) / chosen.length));
  }
  let values = layers.length ? maps() : [];

  function overlay(weights) {
    const top = Math.max(...weights) || 1, sheet = document.createElement("canvas");
    sheet.width = columns; sheet.height = rows;
    const pen = sheet.getContext("2d"), dots = pen.createImageData(columns, rows);
    weights.forEach((weight, place) => {
      const share = weight / top, heat = state.way === "heat";
      dots.data.set([...(heat ? HEAT : VEIL), 255 * (heat ? 0.85 * share ** 0.8 : 0.8 * (1 - share))], 4 * place);
    });
    pen.putImageData(dots, 0, 0);
    return sheet;
  }
  function paint(canvas, side, weights) {
    const ratio = window.devicePixelRatio || 1, scale = side / Math.max(picture.naturalWidth, picture.naturalHeight);
    const wide = Math.max(1, Math.round(picture.naturalWidth * scale)), high = Math.max(1, Math.round(picture.naturalHeight * scale));
    canvas.width = wide * ratio; canvas.height = high * ratio;
    canvas.style.aspectRatio = `${wide} / ${high}`; canvas.style.width = `${wide}px`;
    const pen = canvas.getContext("2d");
    pen.imageSmoothingEnabled = scale < 3;
    pen.drawImage(picture, 0, 0, canvas.width, canvas.height);
    if (!weights) return;
    pen.imageSmoothingEnabled = state.smooth;
    pen.imageSmoothingQuality = "high";
    pen.drawImage(overlay(weights), 0, 0, canvas.width, canvas.height);
  }
  function show(place) {
    seen = place;
    const at = seen ?? locked;
    tiles.forEach(({ made }, word) => { made.classList.toggle("picked", word === at); made.setAttribute("aria-pressed", String(word === locked)); });
    if (picture.complete && picture.naturalWidth) paint(large, LARGE, at === null || !layers.length ? null : values[at]);
    large.setAttribute("aria-label", at === null || !layers.length ? `the picture ${look.picture}` : `the picture, with where the model looked for ${look.words[at]}`);
    if (!layers.length) { readout.textContent = ""; return; }
    if (at === null) { readout.replaceChildren(el("span", { class: "quiet" }, "Nothing is chosen: the picture as it is.")); return; }
    const order = [...values[at].keys()].sort((a, b) => values[at][b] - values[at][a]), best = order[0];
    let half = 0, count = 0;
    while (half < 0.5 && count < order.length) half += values[at][order[count++]];
    readout.replaceChildren(el("b", {}, look.words[at]), ` looked most at row ${Math.floor(best / columns)}, column ${best % columns} `,
      el("span", { class: "quiet" }, `(${formatNumber(values[at][best])}); half of its weight is on ${count} of ${rows * columns} places${locked === at && seen === null ? " (held)" : ""}`));
  }
  function repaint() {
    if (layers.length) { values = maps(); tiles.forEach(({ canvas }, word) => paint(canvas, SMALL, values[word])); }
    show(seen);
  }
  picture.addEventListener("load", repaint);
  picture.src = look.image;
  onTheme(large, repaint);

  const bar = [];
  if (layers.length) {
    const most = Math.max(...layers.map(({ weights }) => weights.length));
    bar.push(choice("Show", [["light", "light"], ["heat", "heat"]], state.way, (way) => { state.way = way; repaint(); }));
    if (layers.length > 1) bar.push(choice("Layer", [[null, "mean"], ...layers.map(({ layer }) => [layer, String(layer)])], null, (layer) => {
      state.layer = layer;
      if (layer === null) { state.head = null; heads.choose(null); }
      repaint();
    }));
    const heads = choice("Head", [[null, "mean"], ...Array.from({ length: most }, (_, head) => [head, String(head)])], null, (head) => { state.head = head; repaint(); });
    if (most > 1 && layers.every(({ weights }) => weights.length === most)) bar.push(heads);
    bar.push(toggle("smooth", true, (smooth) => { state.smooth = smooth; repaint(); }));
  }
  const others = look.others.length ? el("ul", { class: "quiet" }, look.others.map(({ text, score }) => el("li", {}, `${text}  ${formatNumber(score)}`))) : "";
  return el("article", { class: "look" },
    el("h2", { class: "look-caption" }, look.caption), el("p", { class: "quiet look-name" }, look.picture),
    bar.length ? controls(...bar) : "",
    el("div", { class: "look-pair" }, el("div", {}, large, readout), el("div", {}, el("div", { class: "look-words", role: "group", "aria-label": "where it looked, one after the other" }, tiles.map(({ made }) => made)), others)));
}
